"""From old to new labels across retrievers: who moves, and what sub-queries add."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from pipeline.scoring.rank_agreement import kendall_tau


@dataclass(frozen=True, eq=False)
class RankSlopes:
    """Ranks under old and new labels.

    Attributes:
        runs: the rows that have both figures, by new rank, with ``rank_old``, ``rank_new`` (from 1, equal figures
            share the better rank) and ``rank_change`` (2 means two places up).
        tau: Kendall's τ-b of the old and new figures; None with fewer than two runs or all equal.
    """

    runs: pl.DataFrame
    tau: float | None


def rank_slopes(board: pl.DataFrame) -> RankSlopes:
    """Rank the runs of one level by their old and by their new figure.

    Args:
        board: columns ``run_id``, ``old`` and ``new`` (null where not known) and any others, which are kept. Pass runs
            of one level only: sub-query runs do not compete with query runs.
    """
    runs = board.filter(pl.col("old").is_not_null() & pl.col("new").is_not_null())
    runs = runs.with_columns(
        pl.col(view).rank("min", descending=True).cast(pl.Int64).alias(f"rank_{view}") for view in ("old", "new")
    ).with_columns((pl.col("rank_old") - pl.col("rank_new")).alias("rank_change"))
    tau = kendall_tau(runs["old"].to_list(), runs["new"].to_list())
    return RankSlopes(runs.sort("rank_new", "rank_old", "run_id"), tau)


def headroom(
    board: pl.DataFrame, *, query_method: str = "full-doc", subquery_method: str = "sub-query"
) -> pl.DataFrame:
    """What each retriever would gain if every need came as a query of its own.

    Args:
        board: columns ``retriever_key``, ``retriever``, ``method``, ``level`` (``query`` or ``sub-query``),
            ``provenance``, ``old``, ``new``; the first row of a retriever, provenance and level counts, so pass a
            board in rank order.
        query_method: method of the runs that see the whole query.
        subquery_method: method of the runs that search for each sub-query.

    Returns:
        One row a retriever and provenance that has both: ``retriever_key``, ``retriever``, ``provenance``, and for
        each view ``query_{view}``, ``subquery_{view}`` and ``headroom_{view}`` (sub-query minus query, null where
        either is), largest new (else old) headroom first.
    """
    keys = ["retriever_key", "provenance"]

    def first_of(level: str, method: str) -> pl.DataFrame:
        chosen = board.filter((pl.col("level") == level) & (pl.col("method") == method))
        return chosen.unique(keys, keep="first", maintain_order=True)

    joined = (
        first_of("query", query_method)
        .select(*keys, "retriever", query_old="old", query_new="new")
        .join(
            first_of("sub-query", subquery_method).select(*keys, subquery_old="old", subquery_new="new"),
            on=keys,
            how="inner",
            maintain_order="left",
        )
    )
    views = ("old", "new")
    return (
        joined.with_columns((pl.col(f"subquery_{v}") - pl.col(f"query_{v}")).alias(f"headroom_{v}") for v in views)
        .select(
            "retriever_key", "retriever", "provenance",
            *(f"{name}_{v}" for v in views for name in ("query", "subquery", "headroom")),
        )
        .sort(pl.coalesce("headroom_new", "headroom_old"), descending=True, nulls_last=True, maintain_order=True)
    )  # fmt: skip
