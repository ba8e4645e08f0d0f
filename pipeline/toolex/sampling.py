"""Which accepted combinations people check (ToolEX paper, appendix B).

Items are the accepted combinations other than C*. They are drawn without replacement, stratified by domain and number
of sub-queries: each stratum gets its share of the sample, rounded by largest remainder. The order within a stratum is
that of a hash of seed and item, so that the same seed gives the same sample everywhere, and a larger sample of the
same seed holds the smaller one's items of each stratum whose share did not shrink.
"""

from __future__ import annotations

import hashlib

import polars as pl

from pipeline.benchmark import Benchmark, Judgement
from pipeline.errors import UsageError
from pipeline.scoring.benchmark_statistics import items_per_subquery

#: Columns of ``sample_items``: ``item`` is a hash of query and set, ``stratum_items`` how many items the stratum has.
ITEMS = {
    "item": pl.String,
    "query_id": pl.String,
    "tool_ids": pl.List(pl.String),
    "domain": pl.String,
    "subqueries": pl.Int32,
    "stratum_items": pl.Int64,
    "reason": pl.String,
    "judge": pl.String,
}


def item_key(query_id: str, tool_ids: list[str]) -> str:
    """The name of an item: 16 hex digits of a hash over the query and the set."""
    content = "\x00".join([query_id, *sorted(tool_ids, key=str.encode)])
    return hashlib.sha256(f"equirank validation item 1\n{content}".encode()).hexdigest()[:16]


def validation_items(benchmark: Benchmark) -> pl.DataFrame:
    """Every accepted combination besides C*; columns of ``ITEMS``, in the benchmark's order."""
    steps = items_per_subquery(benchmark).group_by("query_id").agg(subqueries=pl.len().cast(pl.Int32))
    frame = (
        benchmark.combinations.filter(~pl.col("is_ground_truth") & (pl.col("verdict") == Judgement.VALID.value))
        .join(benchmark.queries.select("query_id", "domain"), on="query_id", maintain_order="left")
        .join(steps, on="query_id", how="left", maintain_order="left")
    )
    keys = [item_key(query_id, tools) for query_id, tools in frame.select("query_id", "tool_ids").iter_rows()]
    return frame.with_columns(
        pl.Series("item", keys, dtype=pl.String),
        pl.len().over("domain", "subqueries").cast(pl.Int64).alias("stratum_items"),
    ).select(ITEMS.keys())


def sample_items(benchmark: Benchmark, size: int, *, seed: int) -> pl.DataFrame:
    """The items to review, in a mixed order.

    Args:
        benchmark: the expanded version.
        size: how many; all of them where there are fewer.
        seed: of the draw.

    Raises:
        UsageError: the size is below 1.
    """
    if size < 1:
        raise UsageError(f"The sample is to have {size} items; it must have at least 1.")
    items = validation_items(benchmark)
    hashed = [hashlib.sha256(f"{seed}\n{item}".encode()).hexdigest() for item in items["item"]]
    items = items.with_columns(pl.Series("order", hashed, dtype=pl.String))
    strata = items.group_by("domain", "subqueries").agg(n=pl.len()).sort("domain", "subqueries")
    quotas = _quotas(strata["n"].to_list(), min(size, items.height))
    drawn = (
        items.join(strata.with_columns(pl.Series("quota", quotas, dtype=pl.Int64)), on=["domain", "subqueries"])
        .with_columns(place=pl.col("order").rank("ordinal").over("domain", "subqueries"))
        .filter(pl.col("place") <= pl.col("quota"))
    )
    return drawn.sort("order").select(ITEMS.keys())


def _quotas(sizes: list[int], wanted: int) -> list[int]:
    """Shares of ``wanted`` in proportion to ``sizes``, in whole numbers: largest remainder, the first of equals."""
    total = sum(sizes)
    if not total:
        return []
    exact = [size * wanted for size in sizes]
    quotas = [value // total for value in exact]
    by_remainder = sorted(range(len(sizes)), key=lambda i: (-(exact[i] % total), i))
    for i in by_remainder[: wanted - sum(quotas)]:
        quotas[i] += 1
    return quotas
