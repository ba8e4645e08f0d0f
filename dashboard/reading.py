"""What pages read, kept between reruns and sessions until the store says that it changed.

Frames are kept by (benchmark version, stamp of its runs, figure), never by hashing a frame.
"""

from __future__ import annotations

import polars as pl
import streamlit as st

from dashboard.components.cost import with_costs
from dashboard.current_site import the_site
from pipeline.jobs.boards import with_tie_groups
from pipeline.jobs.method_board import method_board as read_method_board
from store.access import benchmarks as benchmark_access
from store.access import efficiency, field_analyses, freshness, statistics
from store.access import leaderboard as board_access
from store.records import BenchmarkRecord

_KEPT = 256


def board_stamp(version_id: int) -> str:
    """What the boards of a benchmark version are kept under."""
    with the_site().database.reading() as session:
        return freshness.board_stamp(session, version_id)


def benchmarks() -> list[BenchmarkRecord]:
    """All benchmark versions, by slug and then newest first."""
    with the_site().database.reading() as session:
        stamp = freshness.library_stamp(session)
    return _benchmarks(_place(), stamp)


def board(version_id: int, stamp: str, *, metric: str, k: int, average: str, domain: str | None = None) -> pl.DataFrame:
    """The board of one figure with what its runs cost; see ``store.access.leaderboard.leaderboard``."""
    return _board(_place(), version_id, stamp, metric, k, average, domain)


def available(version_id: int, stamp: str) -> pl.DataFrame:
    """Which figures the board has; see ``store.access.leaderboard.available``."""
    return _available(_place(), version_id, stamp)


def _place() -> str:
    """Two sites in one process (tests) never share what is kept."""
    return the_site().database.url


@st.cache_resource(max_entries=8, show_spinner=False)
def _benchmarks(place: str, stamp: str) -> list[BenchmarkRecord]:
    del place, stamp
    with the_site().database.reading() as session:
        return benchmark_access.list_records(session)


# Polars frames cannot be changed in place, so all sessions may share one: no pickling on every rerun.
@st.cache_resource(max_entries=_KEPT, show_spinner=False)
def _board(
    place: str, version_id: int, stamp: str, metric: str, k: int, average: str, domain: str | None
) -> pl.DataFrame:
    del place, stamp
    with the_site().database.reading() as session:
        found = board_access.leaderboard(session, version_id, metric=metric, k=k, average=average, domain=domain)
        costs = efficiency.efficiencies(session, found["run_id"].to_list())
        computed = statistics.of_board(session, version_id)
    if computed is not None:
        groups = _tie_groups(computed.tie_groups_artifact)
        found = with_tie_groups(found, groups, metric=metric, k=k, average=average, domain=domain)
    return with_costs(found, costs)


@st.cache_resource(max_entries=16, show_spinner=False)
def _tie_groups(artifact: str) -> pl.DataFrame:
    return the_site().artifacts.get_frame(artifact)


@st.cache_resource(max_entries=_KEPT, show_spinner=False)
def _available(place: str, version_id: int, stamp: str) -> pl.DataFrame:
    del place, stamp
    with the_site().database.reading() as session:
        return board_access.available(session, version_id)


def paired(version_id: int, stamp: str, k: int) -> pl.DataFrame:
    """The old-against-new table at one K; see ``store.access.leaderboard.paired_table``."""
    return _paired(_place(), version_id, stamp, k)


@st.cache_resource(max_entries=64, show_spinner=False)
def _paired(place: str, version_id: int, stamp: str, k: int) -> pl.DataFrame:
    del place, stamp
    with the_site().database.reading() as session:
        return board_access.paired_table(session, version_id, k=k)


def method_board() -> pl.DataFrame:
    """Methods beside each other over all benchmarks; see ``pipeline.jobs.method_board``."""
    with the_site().database.reading() as session:
        stamp = "|".join(
            (freshness.library_stamp(session), freshness.runs_stamp(session), field_analyses.stamp(session))
        )
    return _method_board(_place(), stamp)


@st.cache_resource(max_entries=4, show_spinner=False)
def _method_board(place: str, stamp: str) -> pl.DataFrame:
    del place, stamp
    return read_method_board(the_site())
