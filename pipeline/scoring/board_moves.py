"""How scores and ranks moved between two versions of a benchmark, for the retrievers scored on both."""

from __future__ import annotations

import polars as pl

#: What makes two rows the same retriever, asked in the same way.
SAME_ROW = ("retriever_key", "method", "level", "contract", "provenance", "place")


def board_moves(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """Join two boards of one figure.

    Args:
        before: the older version's board in rank order: the columns of ``SAME_ROW``, ``retriever``, ``family``,
            ``run_id``, ``ranking_hash``, ``flags``, ``old`` and ``new`` (fractions, null where not known).
        after: the newer version's, likewise.

    Returns:
        One row a retriever that is on both boards with a figure and ranked there (``partial`` runs are not), by rank
        after: ``retriever``, ``family``,
        ``method``, ``level``, ``run_before``, ``run_after``, ``old_before``, ``old_after``, ``new_before``,
        ``new_after``, ``rank_before``, ``rank_after`` (from 1 among these rows of one level by the new figure, or the
        old one where a version has no new figures; equal figures share the better rank), ``rank_change`` (2 is two
        places up) and ``same_ranking`` (whether it is the very same ranking, scored twice; null where a figure has no
        ranking behind it).
    """
    kept = ["retriever", "family", "run_id", "ranking_hash", "old", "new"]
    sides = [
        board.filter(~pl.col("flags").list.contains("partial"))
        .select(*SAME_ROW, *kept)
        .unique(SAME_ROW, keep="first", maintain_order=True)
        for board in (before, after)
    ]
    both = sides[0].join(sides[1], on=list(SAME_ROW), how="inner", nulls_equal=True, suffix="_after")
    named = both.select(
        "retriever",
        "family",
        "method",
        "level",
        run_before="run_id",
        run_after="run_id_after",
        old_before="old",
        old_after="old_after",
        new_before="new",
        new_after="new_after",
        same_ranking=pl.col("ranking_hash") == pl.col("ranking_hash_after"),
    )
    for side in ("before", "after"):
        # One yardstick a version: a board with some new figures is ranked by them, as the leaderboard is.
        known = pl.col(f"new_{side}").is_not_null().any().over("level")
        named = named.with_columns(pl.when(known).then(f"new_{side}").otherwise(f"old_{side}").alias(f"_figure_{side}"))
    named = named.filter(pl.col("_figure_before").is_not_null() & pl.col("_figure_after").is_not_null())
    named = named.with_columns(
        pl.col(f"_figure_{side}").rank("min", descending=True).over("level").cast(pl.Int64).alias(f"rank_{side}")
        for side in ("before", "after")
    ).with_columns(rank_change=pl.col("rank_before") - pl.col("rank_after"))
    return named.sort(pl.col("level") != "query", "rank_after", "rank_before", "retriever", "run_after").select(
        "retriever", "family", "method", "level", "run_before", "run_after", "old_before", "old_after",
        "new_before", "new_after", "rank_before", "rank_after", "rank_change", "same_ranking",
    )  # fmt: skip
