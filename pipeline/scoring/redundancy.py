"""Lift against redundancy: do queries with more equivalents gain more from counting them?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from pipeline.scoring.compiled import CompiledBenchmark, EquivalentsBasis

#: Upper ends of the groups of mean equivalents per sub-query; a group for more than the last follows.
EDGES = (0.0, 1.0, 2.0, 4.0, 8.0)


def query_redundancy(compiled: CompiledBenchmark) -> pl.DataFrame:
    """How many equivalents each query has.

    An equivalent is a valid tool beyond the ground truth. With verdicts of sub-queries each counts for every sub-query
    it serves; without them the distinct tools of all combinations are spread over the tools of C*.

    Returns:
        One row a query in the order of the compiled benchmark: ``query_id``, ``domain``, ``subqueries``,
        ``equivalents``, ``redundancy`` (equivalents per sub-query).
    """
    subqueries = np.diff(compiled.subquery_offsets)
    if compiled.equivalents_basis is EquivalentsBasis.VERIFIED:
        equivalents = np.diff(compiled.equivalent_offsets[compiled.subquery_offsets])
    else:
        equivalents = np.diff(compiled.outside_offsets)
    return pl.DataFrame(
        {
            "query_id": pl.Series(compiled.queries.ids, dtype=pl.String),
            "domain": pl.Series(compiled.domain_names, dtype=pl.String).gather(compiled.domain_of),
            "subqueries": subqueries,
            "equivalents": equivalents,
            "redundancy": equivalents / subqueries,
        }
    )


def lift_by_redundancy(
    per_query: pl.DataFrame,
    redundancy: pl.DataFrame,
    metric: str = "NDCG",
    k: int = 10,
    edges: Sequence[float] = EDGES,
) -> pl.DataFrame:
    """Mean lift of one run over groups of queries with similar redundancy.

    Args:
        per_query: ``RunScores.per_query``.
        redundancy: of ``query_redundancy``.
        metric: ``NDCG``, ``Recall`` or ``Comp``.
        k: cutoff.
        edges: ascending upper ends of the groups.

    Returns:
        One row a group that has queries, in order: ``above`` (null for the first group) and ``up_to`` (null for the
        last), ``redundancy`` (mean), ``old``, ``new``, ``lift``, ``n``.
    """
    return _means(_joined(per_query, redundancy, metric, k), edges)


def lift_by_domain(
    per_query: pl.DataFrame, redundancy: pl.DataFrame, metric: str = "NDCG", k: int = 10
) -> pl.DataFrame:
    """Mean redundancy and lift of one run by domain: ``domain``, ``redundancy``, ``old``, ``new``, ``lift``, ``n``."""
    joined = _joined(per_query, redundancy, metric, k)
    return joined.group_by("domain", maintain_order=True).agg(*_FIGURES).sort("redundancy", "domain")


_FIGURES = [
    pl.col("redundancy").mean(),
    pl.col("old").mean(),
    pl.col("new").mean(),
    (pl.col("new") - pl.col("old")).mean().alias("lift"),
    pl.len().cast(pl.Int64).alias("n"),
]


def _joined(per_query: pl.DataFrame, redundancy: pl.DataFrame, metric: str, k: int) -> pl.DataFrame:
    scores = per_query.select("query_id", old=f"old_{metric}@{k}", new=f"new_{metric}@{k}")
    return redundancy.join(scores, on="query_id", how="inner", maintain_order="left")


def _means(joined: pl.DataFrame, edges: Sequence[float]) -> pl.DataFrame:
    ends = list(edges)
    group = np.searchsorted(np.array(ends), joined["redundancy"].to_numpy(), side="left")
    numbered = joined.with_columns(group=pl.Series(group))
    means = numbered.group_by("group").agg(*_FIGURES).sort("group")
    above = pl.Series("above", [None, *ends], dtype=pl.Float64)
    up_to = pl.Series("up_to", [*ends, None], dtype=pl.Float64)
    return means.select(
        above.gather(means["group"]), up_to.gather(means["group"]), "redundancy", "old", "new", "lift", "n"
    )
