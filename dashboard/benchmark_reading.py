"""What the benchmark cards read beside the records: distributions and differences, kept by the hashes of contents."""

from __future__ import annotations

import polars as pl
import streamlit as st

from dashboard import reading
from dashboard.current_site import the_site
from pipeline.jobs.benchmark_history import changes_between
from pipeline.jobs.benchmark_spread import DISTRIBUTIONS_NAME
from pipeline.scoring.board_moves import board_moves
from pipeline.scoring.version_changes import VersionChanges
from store.records import BenchmarkRecord


def distributions(record: BenchmarkRecord) -> pl.DataFrame | None:
    """The distributions of a version; None until a job has made them."""
    digest = record.artifacts.get(DISTRIBUTIONS_NAME)
    return None if digest is None else _distributions(digest)


@st.cache_resource(max_entries=64, show_spinner=False)
def _distributions(artifact: str) -> pl.DataFrame:
    return the_site().artifacts.get_frame(artifact)


def changes(before: BenchmarkRecord, after: BenchmarkRecord) -> VersionChanges:
    """What moved from one version to another; both have content."""
    return _changes(before.content_hash or "", after.content_hash or "", before.id, after.id)


@st.cache_resource(max_entries=32, show_spinner="Comparing the two versions, once")
def _changes(before_hash: str, after_hash: str, before: int, after: int) -> VersionChanges:
    del before_hash, after_hash
    known = {record.id: record for record in reading.benchmarks()}
    return changes_between(the_site(), known[before], known[after])


def moves(before: BenchmarkRecord, after: BenchmarkRecord, metric: str, k: int) -> pl.DataFrame:
    """How the runs that are on both boards moved; see ``board_moves``. The average is the newer one's headline."""
    boards = [
        reading.board(record.id, reading.board_stamp(record.id), metric=metric, k=k, average=after.headline)
        for record in (before, after)
    ]
    return board_moves(boards[0], boards[1])
