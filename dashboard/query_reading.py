"""What the pages on single queries read: labels kept by benchmark version, runs by the hash of what is stored of them.

No frame is ever hashed. A ranking is scanned for one query at a time; only the draw of random items reads it whole,
once a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from dashboard import reading
from dashboard.current_site import the_site
from pipeline.benchmark import Benchmark
from pipeline.formats.paired_table import run_names
from pipeline.formats.ranking import run_of_frame
from pipeline.jobs.benchmark_library import load_benchmark, load_compiled
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.equivalent_ranks import negative_ranks
from pipeline.scoring.query_card import QueryCard, query_card
from pipeline.scoring.query_search import query_table
from store.access import retrievers, runs
from store.errors import NotFound
from store.records import BenchmarkRecord, RunRecord


@dataclass(frozen=True, eq=False)
class Content:
    """One benchmark version in memory.

    Attributes:
        queries: see ``query_search.QUERY_TABLE``.
    """

    benchmark: Benchmark
    compiled: CompiledBenchmark
    queries: pl.DataFrame


@dataclass(frozen=True)
class ReadRun:
    """A run with a ranking, as this reader may see it.

    Attributes:
        name: unique among the runs that are offered with it.
        private_token: of a run that is not public, for links to it; else empty.
    """

    id: str
    name: str
    family: str
    ranking: str
    per_query: str
    private_token: str = ""


def content(record: BenchmarkRecord) -> Content:
    """The labels of a benchmark version that has content."""
    # The API reads it too, where there is no page that could show a spinner.
    seen = get_script_run_ctx(suppress_warning=True) is not None
    with st.spinner("Reading the benchmark") if seen else nullcontext():
        return _content(the_site().database.url, record.id, record.content_hash or "")


@st.cache_resource(max_entries=4, show_spinner=False)
def _content(place: str, version_id: int, content_hash: str) -> Content:
    del place, content_hash
    site = the_site()
    benchmark, compiled = load_benchmark(site, version_id), load_compiled(site, version_id)
    return Content(benchmark, compiled, query_table(benchmark, compiled))


def offered_runs(record: BenchmarkRecord, wanted: Sequence[str], token: str | None) -> dict[str, ReadRun]:
    """Runs that a reader can choose: the board's public ones in rank order, then others that a link names.

    A link's run is offered only where ``get_shown`` lets this reader see it: published and public, or with its token.

    Args:
        record: the benchmark version.
        wanted: run ids in the address.
        token: of a private run among them.
    """
    stamp = reading.board_stamp(record.id)
    found = dict(_public_runs(the_site().database.url, record.id, stamp, record.headline))
    for run_id in wanted:
        if run_id in found:
            continue
        with the_site().database.reading() as session:
            try:
                run = runs.get_shown(session, run_id, token=token)
            except NotFound:
                continue
            retriever = retrievers.get_by_id(session, run.retriever_id)
        if run.benchmark_version_id == record.id and (read := _read(run, retriever.name, retriever.family)):
            taken = {other.name for other in found.values()}
            name = read.name if read.name not in taken else f"{read.name} ({run.id})"
            found[run_id] = ReadRun(read.id, name, read.family, read.ranking, read.per_query, read.private_token)
    return found


@st.cache_resource(max_entries=64, show_spinner=False)
def _public_runs(place: str, version_id: int, stamp: str, headline: str) -> dict[str, ReadRun]:
    del place
    board = reading.board(version_id, stamp, metric="NDCG", k=10, average=headline)
    board = board.with_columns(name=pl.Series(run_names(board), dtype=pl.String)).filter(
        pl.col("ranking_hash").is_not_null()
    )
    found: dict[str, ReadRun] = {}
    with the_site().database.reading() as session:
        for row in board.select("run_id", "name", "family").iter_rows(named=True):
            read = _read(runs.get(session, row["run_id"]), row["name"], row["family"])
            if read is not None:
                found[read.id] = read
    return found


def _read(run: RunRecord, name: str, family: str | None) -> ReadRun | None:
    if run.ranking_artifact is None or run.per_query_artifact is None:
        return None
    token = run.private_token if run.visibility == "private" or run.state != "published" else None
    return ReadRun(run.id, name, family or "", run.ranking_artifact, run.per_query_artifact, token or "")


def per_query(run: ReadRun) -> pl.DataFrame:
    """The scores of every query; see ``RunScores.per_query``."""
    return _per_query(run.per_query)


@st.cache_resource(max_entries=64, show_spinner=False)
def _per_query(artifact: str) -> pl.DataFrame:
    return the_site().artifacts.get_frame(artifact)


def card(version: Content, query_id: str, chosen: Sequence[ReadRun], k: int) -> QueryCard:
    """One query with what the chosen runs make of it, under their ids."""
    artifacts = the_site().artifacts
    return query_card(version.benchmark, query_id, {run.id: artifacts.scan(run.ranking) for run in chosen}, k=k)


def negatives(version: Content, run: ReadRun) -> npt.NDArray[np.int32]:
    """The rank of one random non-relevant item a query; see ``equivalent_ranks.negative_ranks``."""
    return _negatives(version.benchmark.content_hash, run.ranking, version)


@st.cache_resource(max_entries=256, show_spinner="Drawing at random from the ranking")
def _negatives(content_hash: str, artifact: str, _version: Content) -> npt.NDArray[np.int32]:
    del content_hash
    ranked = run_of_frame(the_site().artifacts.get_frame(artifact), _version.compiled.target)
    return negative_ranks(_version.compiled, ranked)
