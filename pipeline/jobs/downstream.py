"""Downstream studies between the store and people: task files out, results in, reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.benchmark import Benchmark
from pipeline.downstream.outcomes import Outcomes, outcomes_of, read_outcomes
from pipeline.downstream.report import DownstreamReport, downstream_report
from pipeline.downstream.task_file import CategoryFrom, only_tasks, task_records
from pipeline.downstream.tool_sets import Choice, Setting, ToolSets, annotated_sets, expanded_sets, retrieved_sets
from pipeline.errors import RunFileError, UsageError
from pipeline.formats.messages import listing, quote
from pipeline.formats.ranking import ranking_frame
from pipeline.jobs.benchmark_library import Library
from pipeline.jobs.site import Site
from pipeline.jobs.submission import read_submitted
from pipeline.mftr.schema import Json
from store.access import benchmarks, downstream, runs
from store.access.downstream import DownstreamStudyRecord
from store.errors import NotFound

#: As many APIs as ToolBench's own retriever hands over.
RETRIEVED = 5
#: Cutoff of NDCG where a run chooses among combinations: the papers'.
CUTOFF = 10


@dataclass(frozen=True)
class TaskRequest:
    """Which tasks with which tools.

    Attributes:
        benchmark: stored name or folder.
        run: id of a stored run, or path of a run file; for ``retriever``, and for ``expanded`` under ``run``.
        k: tools a task under ``retriever``, cutoff of NDCG under ``run``; None takes ``RETRIEVED`` and ``CUTOFF``.
        keep_label: see ``expanded_sets``.
        tasks: a file of query ids, one a line; None takes every query.
        name: of the setting in the file; "" takes ``oracle``, ``retriever`` or ``expanded``.
    """

    benchmark: str
    setting: Setting
    run: str = ""
    k: int | None = None
    choose: Choice = Choice.SCORE
    keep_label: bool = False
    category: CategoryFrom = CategoryFrom.DOMAIN
    tasks: Path | None = None
    name: str = ""


@dataclass(frozen=True)
class Tasks:
    """What goes into a task file.

    Attributes:
        records: objects of the file, made one after another.
        notes: of ``ToolSets``.
    """

    setting: str
    records: Iterator[dict[str, Json]]
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ImportedStudy:
    """A stored study and what its file said."""

    record: DownstreamStudyRecord
    outcomes: Outcomes


def make_tasks(library: Library, request: TaskRequest) -> Tasks:
    """The tasks of one setting.

    Raises:
        UsageError: options do not fit together, or the run is not of this benchmark.
        NotFound: there is no such benchmark, run or file.
        BenchmarkError: the benchmark has no content or no combinations, or a task is none of its queries.
        RunFileError: the run file is refused.
    """
    if request.setting is Setting.ORACLE and request.run:
        raise UsageError("the annotated set needs no run: leave out --run, or export the setting retriever")
    if request.setting is Setting.RETRIEVER and not request.run:
        raise UsageError("the setting retriever needs --run, the id of a stored run or a run file")
    by_run = request.setting is Setting.EXPANDED and request.choose is Choice.RUN
    if request.setting is Setting.EXPANDED and by_run != bool(request.run):
        raise UsageError("--choose run and --run go together: the run says which combination it ranks best")
    benchmark = library.benchmark(request.benchmark)
    ranking = _ranking(library, request, benchmark) if request.run else None
    if request.tasks is not None:
        benchmark = only_tasks(benchmark, _listed(request.tasks))
    sets = _tool_sets(benchmark, request, ranking)
    return Tasks(sets.setting, task_records(benchmark, sets, category=request.category), sets.notes)


def _tool_sets(benchmark: Benchmark, request: TaskRequest, ranking: pl.DataFrame | None) -> ToolSets:
    name = request.name or request.setting.value
    if request.setting is Setting.ORACLE:
        return annotated_sets(benchmark, name)
    if request.setting is Setting.RETRIEVER:
        assert ranking is not None
        return retrieved_sets(benchmark, ranking, RETRIEVED if request.k is None else request.k, name)
    return expanded_sets(
        benchmark,
        choose=request.choose,
        ranking=ranking,
        k=CUTOFF if request.k is None else request.k,
        keep_label=request.keep_label,
        name=name,
    )


def _ranking(library: Library, request: TaskRequest, benchmark: Benchmark) -> pl.DataFrame:
    path = Path(request.run)
    if path.exists():
        compiled = library.compiled(request.benchmark)
        reading = read_submitted(library, path, compiled)
        if reading.run is None:
            raise RunFileError(
                f"{path.name} is refused on {compiled.name}: {reading.report.problems[0].message}. "
                "`equirank validate` lists everything"
            )
        return ranking_frame(reading.run, compiled.target)
    with library.site.database.reading() as session:
        try:
            run = runs.get(session, request.run)
        except NotFound:
            raise NotFound(
                f"{request.run!r} is neither a file nor a stored run: `equirank runs list` names the runs"
            ) from None
    if run.ranking_artifact is None:
        raise UsageError(f"run {run.id} is a printed figure without a ranking: take a measured or uploaded run")
    ranking = library.site.artifacts.get_frame(run.ranking_artifact)
    # A run of the version before the expansion ranks the same tools for the same queries.
    for column, table in (("query_id", benchmark.queries), ("tool_id", benchmark.tools)):
        unknown = sorted(set(ranking[column].unique()) - set(table[column]))
        if unknown:
            name = f"{benchmark.info.slug}@{benchmark.info.version}"
            raise UsageError(f"run {run.id} is not of {name}: it names {listing(unknown, 3)}, which are not in it")
    return ranking


def _listed(path: Path) -> list[str]:
    """Ids of a file, one a line; blank lines are passed over."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--tasks: {quote(str(path))} cannot be read as UTF-8 text ({error})") from None
    listed = [line for line in lines if line.strip()]
    if not listed:
        raise UsageError(f"--tasks: {path.name} names no query id; write one a line")
    return listed


def import_study(
    site: Site, path: Path, label: str, *, benchmark: str | None = None, settings: Sequence[str] = (), note: str = ""
) -> ImportedStudy:
    """Read results and store them under a label; refused files store nothing.

    Args:
        site: where to.
        path: CSV, TSV or JSON lines with task, category, setting and passed.
        label: no other study's.
        benchmark: a stored benchmark whose queries the tasks must be.
        settings: their order, where the usual one is not wanted.
        note: agent, judge and date, in words.

    Raises:
        OutcomeFileError: the file is refused.
        Conflict: a study has the label.
        InvalidRecord: the label or note cannot be shown.
        NotFound: there is no such benchmark.
    """
    with site.database.reading() as session:
        downstream.free_label(session, label)
        version = None if benchmark is None else benchmarks.get(session, benchmark)
    if version is not None:
        known = set(Library(site).benchmark(version.name).queries["query_id"])
        outcomes = read_outcomes(path, settings=settings, known=known, of=version.name)
    else:
        outcomes = read_outcomes(path, settings=settings)
    artifact = site.artifacts.put_frame(outcomes.frame)
    with site.database.session() as session:
        stored = downstream.add(
            session,
            label=label,
            artifact=artifact,
            settings=outcomes.settings,
            tasks=outcomes.tasks,
            artifacts=site.artifacts,
            benchmark_version_id=None if version is None else version.id,
            note=note,
        )
    return ImportedStudy(stored, outcomes)


def study_report(site: Site, study: DownstreamStudyRecord) -> DownstreamReport:
    """The figures of a stored study.

    Raises:
        ArtifactMissing, ArtifactDamaged: its results are not whole.
    """
    return downstream_report(outcomes_of(site.artifacts.get_frame(study.artifact), study.settings))


def get_study(site: Site, name: str) -> DownstreamStudyRecord:
    """A study by label or id; raises NotFound."""
    with site.database.reading() as session:
        return downstream.get(session, name)


def study_json(site: Site, study: DownstreamStudyRecord) -> dict[str, Any]:
    """A study in the shape of ``downstream list --format json``."""
    version = None
    if study.benchmark_version_id is not None:
        with site.database.reading() as session:
            version = benchmarks.get_by_id(session, study.benchmark_version_id).name
    return {
        "id": study.id,
        "label": study.label,
        "benchmark": version,
        "settings": list(study.settings),
        "tasks": study.tasks,
        "note": study.note,
        "created": study.created_at.isoformat(timespec="seconds"),
    }


def list_studies(site: Site) -> list[dict[str, Any]]:
    """Every study, the newest first."""
    with site.database.reading() as session:
        found = downstream.list_studies(session)
    return [study_json(site, study) for study in found]
