"""What the pages on pairs of runs read: who is whose base, gains, and per-query changes, kept by what is stored."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import streamlit as st

from dashboard import reading
from dashboard.current_site import the_site
from pipeline.formats.paired_table import run_names
from pipeline.jobs.pair_gains import PairGains, pair_gains
from pipeline.scoring.fine_tuning_pairs import fine_tuning_pairs
from pipeline.scoring.query_changes import query_changes
from store.access import runs
from store.records import BenchmarkRecord


@dataclass(frozen=True)
class PairedRun:
    """A published run of a board.

    Attributes:
        name: unique on its board.
        per_query: artifact of its per-query scores; None for figures from a paper.
    """

    id: str
    name: str
    retriever: str
    family: str
    level: str
    place: str
    per_query: str | None


@dataclass(frozen=True, eq=False)
class PairBoard:
    """The runs of a board, in rank order, and which of them are a base and its fine-tuned retriever."""

    runs: dict[str, PairedRun]
    pairs: list[tuple[str, str]]


def pair_board(record: BenchmarkRecord, stamp: str) -> PairBoard:
    """The published runs of a benchmark version."""
    return _pair_board(the_site().database.url, record.id, stamp, record.headline)


@st.cache_resource(max_entries=64, show_spinner=False)
def _pair_board(place: str, version_id: int, stamp: str, headline: str) -> PairBoard:
    del place
    board = reading.board(version_id, stamp, metric="NDCG", k=10, average=headline)
    found: dict[str, PairedRun] = {}
    with the_site().database.reading() as session:
        for row, name in zip(board.iter_rows(named=True), run_names(board), strict=True):
            run = runs.get(session, row["run_id"])
            found[run.id] = PairedRun(
                run.id, name, row["retriever"], row["family"] or "", run.level, run.place, run.per_query_artifact
            )
    return PairBoard(found, fine_tuning_pairs(board).select("base_run", "tuned_run").rows())


def gains(stamp: str, base: str, tuned: str, k: int, *, compute: bool) -> PairGains:
    """The gain of a run over another; see ``pipeline.jobs.pair_gains``."""
    if compute:
        return _computed_gains(the_site().database.url, stamp, base, tuned, k)
    return _gains(the_site().database.url, stamp, base, tuned, k)


@st.cache_resource(max_entries=512, show_spinner=False)
def _gains(place: str, stamp: str, base: str, tuned: str, k: int) -> PairGains:
    del place, stamp
    return _read(base, tuned, k, compute=False)


@st.cache_resource(max_entries=512, show_spinner="Computing intervals and tests of this pair, once")
def _computed_gains(place: str, stamp: str, base: str, tuned: str, k: int) -> PairGains:
    del place, stamp
    return _read(base, tuned, k, compute=True)


def _read(base: str, tuned: str, k: int, *, compute: bool) -> PairGains:
    with the_site().database.reading() as session:
        before, after = runs.get_shown(session, base), runs.get_shown(session, tuned)
    return pair_gains(the_site(), before, after, k, compute=compute)


def changes(base: PairedRun, tuned: PairedRun, metric: str, k: int) -> pl.DataFrame:
    """Both runs query by query; see ``query_changes``. Both have per-query scores."""
    return _changes(base.per_query or "", tuned.per_query or "", metric, k)


@st.cache_resource(max_entries=32, show_spinner=False)
def _changes(base: str, tuned: str, metric: str, k: int) -> pl.DataFrame:
    artifacts = the_site().artifacts
    columns = ["query_id", "domain", "source", f"old_{metric}@{k}", f"new_{metric}@{k}"]
    return query_changes(artifacts.get_frame(base, columns), artifacts.get_frame(tuned, columns), metric, k)


@st.cache_resource(max_entries=8, show_spinner=False)
def query_texts(artifact: str) -> pl.DataFrame:
    """``query_id`` and ``text`` of a benchmark's queries, by the artifact of its queries."""
    return the_site().artifacts.get_frame(artifact, ["query_id", "text"])
