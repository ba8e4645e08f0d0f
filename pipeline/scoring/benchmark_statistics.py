"""What a benchmark's labels hold, in numbers: Table 1 of the ToolEX paper, over all queries and by domain."""

from __future__ import annotations

import polars as pl

from pipeline.benchmark import Benchmark, Judgement

_NUL = "\x00"


def benchmark_statistics(benchmark: Benchmark) -> pl.DataFrame:
    """Annotation statistics of a benchmark.

    A verified item is a tool that serves a sub-query: its ground-truth tool or an equivalent judged valid. Without a
    table of sub-queries each ground-truth tool stands for one. Combinations are distinct sets, C* included.

    Returns:
        One row for all queries (``domain`` null), then one a domain in order of first appearance. Columns:
        ``domain``, ``queries``, ``tools_per_query`` (mean size of C*), ``subqueries``; null where the benchmark has
        no equivalents: ``verified_items``, ``items_per_subquery``, ``subqueries_with_equivalent`` (a share in
        [0, 1] with at least one item beyond the ground truth); null where it has no combinations:
        ``combinations``, ``combinations_per_query``, ``queries_with_alternative`` (a share with at least one
        combination beyond C*).
    """
    domains = benchmark.queries.select("query_id", "domain")
    per_query = (
        domains.join(benchmark.ground_truth, on="query_id", how="left", maintain_order="left")
        .select("query_id", "domain", tools=pl.col("tool_ids").list.n_unique())
        .join(_subqueries(benchmark), on="query_id", how="left", maintain_order="left")
        .join(combinations_per_query(benchmark), on="query_id", how="left", maintain_order="left")
    )
    groups = [
        per_query.with_columns(domain=pl.lit(None, dtype=pl.String)),
        per_query,
    ]
    figures = pl.concat([g.group_by("domain", maintain_order=True).agg(*_figures()) for g in groups])
    unknown = []
    if not benchmark.equivalents.height:
        unknown += ["verified_items", "items_per_subquery", "subqueries_with_equivalent"]
    if not benchmark.has_combinations:
        unknown += ["combinations", "combinations_per_query", "queries_with_alternative"]
    return figures.with_columns(pl.lit(None, dtype=figures.schema[name]).alias(name) for name in unknown)


def _figures() -> list[pl.Expr]:
    subqueries, items, combinations = pl.col("subqueries").sum(), pl.col("items").sum(), pl.col("combinations").sum()
    return [
        pl.len().cast(pl.Int64).alias("queries"),
        pl.col("tools").mean().alias("tools_per_query"),
        subqueries.cast(pl.Int64).alias("subqueries"),
        items.cast(pl.Int64).alias("verified_items"),
        (items / subqueries).alias("items_per_subquery"),
        (pl.col("served").sum() / subqueries).alias("subqueries_with_equivalent"),
        combinations.cast(pl.Int64).alias("combinations"),
        (combinations / pl.len()).alias("combinations_per_query"),
        (pl.col("combinations") > 1).mean().alias("queries_with_alternative"),
    ]


def items_per_subquery(benchmark: Benchmark) -> pl.DataFrame:
    """The verified items of each sub-query.

    Returns:
        One row a sub-query in no particular order: ``query_id``, ``position``, ``items`` (its ground-truth tools and
        valid equivalents, each once), ``extra`` (those beyond the ground truth).
    """
    keys = ["query_id", "position"]
    implied = (
        benchmark.ground_truth.join(benchmark.subqueries, on="query_id", how="anti")
        .explode("tool_ids", empty_as_null=False)
        .with_columns(position=pl.int_range(pl.len(), dtype=pl.Int32).over("query_id"))
        .select(*keys, tool_id="tool_ids")
    )
    truth = pl.concat([benchmark.subqueries.select(*keys, "tool_id"), implied])
    valid = benchmark.equivalents.filter(pl.col("verdict") == Judgement.VALID.value).select(*keys, "tool_id")
    return (
        pl.concat([truth.with_columns(extra=False), valid.with_columns(extra=True)])
        .group_by(*keys, "tool_id")
        .agg(pl.col("extra").all())
        .group_by(keys)
        .agg(items=pl.len(), extra=pl.col("extra").sum())
    )


def _subqueries(benchmark: Benchmark) -> pl.DataFrame:
    """For each query: sub-queries, verified items, and sub-queries with an item beyond the ground truth."""
    return (
        items_per_subquery(benchmark)
        .group_by("query_id")
        .agg(subqueries=pl.len(), items=pl.col("items").sum(), served=(pl.col("extra") > 0).sum())
    )


def combinations_per_query(benchmark: Benchmark) -> pl.DataFrame:
    """For each query: ``query_id`` and ``combinations``, distinct valid ones, C* always among them."""
    valid = benchmark.combinations.filter(pl.col("verdict") == Judgement.VALID.value).select("query_id", "tool_ids")
    # No id holds a NUL, so joined sorted ids are equal exactly when the sets are.
    as_set = pl.col("tool_ids").list.unique().list.sort().list.join(_NUL)
    return (
        pl.concat([benchmark.ground_truth.select("query_id", "tool_ids"), valid])
        .select("query_id", as_set)
        .group_by("query_id")
        .agg(combinations=pl.col("tool_ids").n_unique())
    )
