"""Two runs query by query: who wins where, under old and new labels."""

from __future__ import annotations

import polars as pl

from pipeline.scoring.gain_table import check_same_queries

#: Differences up to this are rounding.
NO_CHANGE = 1e-12


def query_changes(base: pl.DataFrame, tuned: pl.DataFrame, metric: str = "NDCG", k: int = 10) -> pl.DataFrame:
    """The per-query scores of two runs side by side, for scatter plots and lists of wins and losses.

    Args:
        base: ``RunScores.per_query``.
        tuned: of the other run, same benchmark version.
        metric: ``NDCG``, ``Recall`` or ``Comp``.
        k: cutoff.

    Returns:
        One row a query: ``query_id``, ``domain``, ``source``, and for each view ``base_{view}``, ``tuned_{view}``,
        ``change_{view}`` (tuned minus base) and ``outcome_{view}`` (``win``, ``loss`` or ``tie`` of tuned).

    Raises:
        ValueError: the runs are not over the same queries.
    """
    check_same_queries(base, tuned)
    views = [
        pl.Series(f"{name}_{view}", run[f"{view}_{metric}@{k}"])
        for view in ("old", "new")
        for name, run in (("base", base), ("tuned", tuned))
    ]
    frame = base.select("query_id", "domain", "source").with_columns(views)
    frame = frame.with_columns(
        (pl.col(f"tuned_{view}") - pl.col(f"base_{view}")).alias(f"change_{view}") for view in ("old", "new")
    )
    return frame.with_columns(
        pl.when(pl.col(f"change_{view}") > NO_CHANGE)
        .then(pl.lit("win"))
        .when(pl.col(f"change_{view}") < -NO_CHANGE)
        .then(pl.lit("loss"))
        .otherwise(pl.lit("tie"))
        .alias(f"outcome_{view}")
        for view in ("old", "new")
    )


def wins_and_losses(changes: pl.DataFrame) -> pl.DataFrame:
    """How many queries each outcome has.

    Args:
        changes: of ``query_changes``.

    Returns:
        Columns ``view``, ``domain`` (null for all queries), ``wins``, ``losses``, ``ties``; all queries first.
    """
    rows: list[tuple[str, str | None, int, int, int]] = []
    domains = changes["domain"].unique().sort().to_list()
    for view in ("old", "new"):
        for domain in (None, *domains):
            outcomes = (changes if domain is None else changes.filter(pl.col("domain") == domain))[f"outcome_{view}"]
            counts = [int((outcomes == outcome).sum()) for outcome in ("win", "loss", "tie")]
            rows.append((view, domain, counts[0], counts[1], counts[2]))
    schema = {
        "view": pl.String,
        "domain": pl.String,
        "wins": pl.Int64,
        "losses": pl.Int64,
        "ties": pl.Int64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")
