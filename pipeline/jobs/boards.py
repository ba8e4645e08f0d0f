"""A board as pages, the API and the command line read it: its figures with the tie groups of its runs."""

from __future__ import annotations

import polars as pl

from pipeline.jobs.site import Site
from store.access import leaderboard, statistics


def read_board(
    site: Site, version_id: int, *, metric: str, k: int, average: str, domain: str | None = None
) -> pl.DataFrame:
    """The board of one figure; columns of ``store.access.leaderboard.leaderboard`` and, once computed, tie groups.

    Raises:
        NotFound: there is no such benchmark version.
        ArtifactMissing, ArtifactDamaged: the tie groups are not whole.
    """
    with site.database.reading() as session:
        found = leaderboard.leaderboard(session, version_id, metric=metric, k=k, average=average, domain=domain)
        computed = statistics.of_board(session, version_id)
    if computed is None:
        return found
    groups = site.artifacts.get_frame(computed.tie_groups_artifact)
    return with_tie_groups(found, groups, metric=metric, k=k, average=average, domain=domain)


def with_tie_groups(
    board: pl.DataFrame, groups: pl.DataFrame, *, metric: str, k: int, average: str, domain: str | None
) -> pl.DataFrame:
    """A board with ``tie_old`` and ``tie_new``: the group of each scored run in the order of either view.

    Groups were computed over all ranked runs of a level. Where the board has other runs by now, nothing is shown until
    they are computed anew.

    Args:
        board: of ``store.access.leaderboard.leaderboard``, whole.
        groups: columns of ``pipeline.jobs.statistics.BOARD_TIE_GROUPS``.
        metric, k, average, domain: the board's figure.
    """
    here = groups.filter(
        pl.col("metric") == metric,
        pl.col("k") == k,
        pl.col("average") == average,
        pl.col("domain") == (domain or ""),
    )
    ranked = board.filter(
        pl.col("ranking_hash").is_not_null(), pl.col("rank").is_not_null(), ~pl.col("flags").list.contains("partial")
    )
    if set(ranked["run_id"]) != set(here["run_id"]):
        here = here.clear()
    for view in ("old", "new"):
        of_view = here.filter(pl.col("view") == view).select("run_id", pl.col("group").alias(f"tie_{view}"))
        board = board.join(of_view, on="run_id", how="left", maintain_order="left")
    return board
