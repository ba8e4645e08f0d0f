"""What the page on expansions reads, kept between reruns: estimates for a while, what is done for good."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import streamlit as st

from dashboard import pair_reading, reading
from dashboard.current_site import the_site
from pipeline.formats.method_labels import method_label
from pipeline.jobs.annotations import estimating, quartiles, rescoring
from pipeline.jobs.annotations import reading as stored
from pipeline.jobs.benchmark_library import load_benchmark
from pipeline.jobs.submission import LOCAL_PERSON
from pipeline.toolex.estimate import StageEstimate
from pipeline.toolex.pool_bias import PoolBias
from pipeline.toolex.settings import ToolexSettings
from pipeline.toolex.verified_file import write_verified_combinations
from store.access import annotations as expansions
from store.access import retrievers
from store.access.annotations import AnnotationRecord
from store.errors import NotFound
from store.records import BenchmarkRecord


def estimated(benchmark: str, settings: ToolexSettings) -> list[StageEstimate]:
    """What an expansion will ask and cost, by stage."""
    return _estimated(_place(), benchmark, settings)


@st.cache_data(ttl=30, max_entries=64, show_spinner="Counting what there is to ask")
def _estimated(place: str, benchmark: str, settings: ToolexSettings) -> list[StageEstimate]:
    del place
    return estimating.estimate(the_site(), benchmark, settings)


def _place() -> str:
    """Two sites in one process (tests) never share what is kept."""
    return the_site().database.url


def version(version_id: int) -> BenchmarkRecord:
    """A stored version by its id.

    Raises:
        NotFound: there is none.
    """
    for record in reading.benchmarks():
        if record.id == version_id:
            return record
    raise NotFound(f"no benchmark version has the id {version_id}")


def failures(record: AnnotationRecord) -> pl.DataFrame:
    """Questions without a valid answer so far; see ``pipeline.jobs.annotations.reading.failures``."""
    return stored.failures(the_site(), record.id)


def table_one(record: BenchmarkRecord) -> pl.DataFrame:
    """Table 1 over all queries and by domain; see ``pipeline.toolex.statistics.table_one``."""
    return _table_one(_place(), record.id, record.content_hash or "")


@st.cache_resource(max_entries=32, show_spinner="Counting labels")
def _table_one(place: str, version_id: int, content_hash: str) -> pl.DataFrame:
    del place, content_hash
    return stored.table1(the_site(), version_id)


def acceptance(record: BenchmarkRecord) -> pl.DataFrame:
    """Decisions on candidates by judge and rank; see ``pipeline.toolex.statistics.acceptance_by_rank``."""
    return _acceptance(_place(), record.id, record.content_hash or "")


@st.cache_resource(max_entries=16, show_spinner=False)
def _acceptance(place: str, version_id: int, content_hash: str) -> pl.DataFrame:
    del place, content_hash
    return stored.acceptance(the_site(), version_id)


def audits(record: BenchmarkRecord) -> pl.DataFrame:
    """Decisions on combinations by judge; see ``pipeline.toolex.statistics.audits_by_judge``."""
    return _audits(_place(), record.id, record.content_hash or "")


@st.cache_resource(max_entries=16, show_spinner=False)
def _audits(place: str, version_id: int, content_hash: str) -> pl.DataFrame:
    del place, content_hash
    return stored.audits(the_site(), version_id)


def states(record: AnnotationRecord) -> pl.DataFrame:
    """What became of each query of a finished expansion; see ``pipeline.toolex.provenance.QUERY_STATES``."""
    return _states(_place(), record.id)


@st.cache_resource(max_entries=16, show_spinner=False)
def _states(place: str, annotation_id: str) -> pl.DataFrame:
    del place
    return stored.states(the_site(), annotation_id)


def provenance(record: AnnotationRecord) -> pl.DataFrame:
    """Every question with its judge, tokens and cost; see ``pipeline.toolex.provenance.PROVENANCE``."""
    return stored.provenance(the_site(), record.id)


def verified_combinations(version_id: int) -> bytes:
    """The file ``query_combo_verified.jsonl`` of a version."""
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "combinations.jsonl"
        write_verified_combinations(load_benchmark(the_site(), version_id), path)
        return path.read_bytes()


def pool_bias(record: AnnotationRecord) -> PoolBias:
    """Which retriever found each valid tool."""
    return _pool_bias(_place(), record.id)


@st.cache_resource(max_entries=16, show_spinner="Counting who found what")
def _pool_bias(place: str, annotation_id: str) -> PoolBias:
    del place
    return stored.pool_bias(the_site(), annotation_id)


def without_each(record: AnnotationRecord, made: BenchmarkRecord) -> pl.DataFrame:
    """Every public run's new score without each retriever's own finds; ``run`` is its name on the board."""
    stamp = reading.board_stamp(made.id)
    found = _without_each(_place(), record.id, stamp)
    names = {run.id: run.name for run in pair_reading.pair_board(made, stamp).runs.values()}
    return found.with_columns(pl.col("run").replace(names))


@st.cache_resource(max_entries=16, show_spinner="Scoring every run without each retriever, once")
def _without_each(place: str, annotation_id: str, stamp: str) -> pl.DataFrame:
    del place, stamp
    return stored.leave_one_out(the_site(), annotation_id)


def rescorable(made: BenchmarkRecord) -> pl.DataFrame:
    """Runs of earlier versions that can be scored against this one: ``id`` and what a reader sees of them."""
    found = rescoring.rescorable(the_site(), made.id, person=LOCAL_PERSON)
    names: dict[int, str] = {}
    with the_site().database.reading() as session:
        for run in found:
            if run.retriever_id not in names:
                names[run.retriever_id] = retrievers.get_by_id(session, run.retriever_id).name
    versions = {record.id: record.name for record in reading.benchmarks()}
    return pl.DataFrame(
        {
            "id": [run.id for run in found],
            "Retriever": [names[run.retriever_id] for run in found],
            "Method": [method_label(run.method, run.contract or "") for run in found],
            "Scored on": [versions[run.benchmark_version_id] for run in found],
            "Seen by": ["everybody" if run.visibility == "public" else "you" for run in found],
        },
        schema_overrides={"id": pl.String},
    )


def length_quartiles(made: BenchmarkRecord) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Lift of every public run, and gain of every fine-tuned one over its base, by documentation length.

    A frame without rows stands for no runs, or no pairs.
    """
    return _length_quartiles(_place(), made.id, reading.board_stamp(made.id), made.name)


@st.cache_resource(max_entries=16, show_spinner="Measuring documents")
def _length_quartiles(place: str, version_id: int, stamp: str, name: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    del place, name
    board = pair_reading.pair_board(version(version_id), stamp)
    scored: Mapping[str, str] = {run.name: run.per_query for run in board.runs.values() if run.per_query}
    pairs = {}
    for base, tuned in board.pairs:
        before, after = board.runs[base], board.runs[tuned]
        if before.per_query and after.per_query:
            pairs[f"{after.name} over {before.name}"] = before.per_query, after.per_query
    nothing = pl.DataFrame()
    return (
        quartiles.lift_by_length(the_site(), version_id, scored) if scored else nothing,
        quartiles.gain_by_length(the_site(), version_id, pairs) if pairs else nothing,
    )


def claimed_versions(slug: str) -> list[str]:
    """Versions of a benchmark that expansions made or are to make."""
    of = {record.id: record.slug for record in reading.benchmarks()}
    with the_site().database.reading() as session:
        found = expansions.list_records(session)
    return [record.version for record in found if of.get(record.benchmark_version_id) == slug]


def made_versions() -> set[int]:
    """Ids of the versions that expansions made."""
    with the_site().database.reading() as session:
        found = expansions.list_records(session)
    return {record.made_version_id for record in found if record.made_version_id is not None}
