"""Expansions as people name them: by a benchmark and the version that is to be made of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import ModelError, UsageError
from pipeline.jobs.annotations.choices import Choices, differences, pool_models
from pipeline.jobs.annotations.here import refuse_beside_job
from pipeline.jobs.annotations.requests import AnnotationRequest, check_budget, define, require_limit, set_budget
from pipeline.jobs.annotations.working import alone
from pipeline.jobs.benchmark_library import Library, import_into_store
from pipeline.jobs.site import Site
from pipeline.retrieval.encoder import shared_encoder
from pipeline.retrieval.registry import Source
from pipeline.toolex.settings import ToolexSettings, settings_from_json
from store.access import annotations as stored
from store.access import benchmarks
from store.access.annotations import AnnotationRecord
from store.access.benchmarks import parse_name
from store.errors import NotFound
from store.records import BenchmarkRecord


@dataclass(frozen=True)
class Begun:
    """An expansion that is written down.

    Attributes:
        record: the expansion.
        parent: what is expanded.
        settings: how.
        notes: what was done on the way, in sentences.
    """

    record: AnnotationRecord
    parent: BenchmarkRecord
    settings: ToolexSettings
    notes: tuple[str, ...] = ()


def stored_parent(site: Site, name: str) -> tuple[BenchmarkRecord, tuple[str, ...]]:
    """The stored benchmark that a name means; a folder is stored under its own name first, and a note says so.

    Raises:
        BenchmarkError: the folder is not sound.
        Conflict: the folder's version is stored with other content.
        NotFound: no such stored benchmark.
    """
    library = Library(site)
    if not Path(name).expanduser().is_dir():
        # Says in words what is wrong with something that looks like a folder and is none.
        if "/" in name or name.startswith(("~", ".")):
            library.benchmark(name)
        with site.database.reading() as session:
            return benchmarks.get(session, name), ()
    record = import_into_store(site, library.benchmark(name))
    return record, (f"the folder is stored as {record.name}: name it so from now on",)


def begin(
    site: Site,
    benchmark: str,
    version: str,
    choices: Choices,
    *,
    max_cost: float | None = None,
    max_calls: int | None = None,
    live: bool = True,
) -> Begun:
    """Write down an expansion, or find the one that makes this version and go on with it.

    One that is known keeps its settings and its budget where nothing else is said; another budget is set, other
    settings are refused unless nothing of it is done. The retrievers of its pool are loaded first.

    Args:
        site: where it is stored.
        benchmark: ``slug``, ``slug@version`` or a folder.
        version: of the new version.
        choices: what was said of the settings.
        max_cost: the most it may cost in US dollars; None says nothing.
        max_calls: the most calls; None says nothing.
        live: whether models are asked now, which takes a budget.

    Raises:
        BenchmarkError, Conflict, ModelError, NotFound, UsageError: as ``define`` and ``stored_parent``; a live one
            has no budget.
    """
    parent, notes = stored_parent(site, benchmark)
    known = find(site, parent if "@" in benchmark or notes else parent.slug, version)
    base = ToolexSettings()
    if known is not None:
        base = settings_from_json(known.settings)
        with site.database.reading() as session:
            parent = benchmarks.get_by_id(session, known.benchmark_version_id)
    settings = choices.over(base)
    if known is None or not known.done:
        load_pool(site, settings)
    other = known if known is not None and settings != base else None
    if other is not None:
        known = None
    if known is not None:
        max_cost = known.max_cost if max_cost is None else max_cost
        max_calls = known.max_calls if max_calls is None else max_calls
    if live and (known is None or not known.done):
        require_limit(site, max_cost, max_calls)
    check_budget(max_cost, max_calls)
    if other is not None:
        # Last of all, so that whatever is refused leaves the earlier attempt as it was.
        _make_way(site, other, parent, differences(base, settings))
    record = define(site, AnnotationRequest(parent.name, version, settings, max_cost, max_calls))
    if (record.max_cost, record.max_calls) != (max_cost, max_calls) and not record.done:
        record = set_budget(site, record.id, max_cost, max_calls)
    return Begun(record, parent, settings, notes)


def _make_way(site: Site, known: AnnotationRecord, parent: BenchmarkRecord, differ: str) -> None:
    """Take away an attempt with other settings that came to nothing, such as one with a judge that cannot be asked.

    Raises:
        Conflict: something works on it.
        UsageError: something of it is done.
    """
    refuse_beside_job(site, known.id)
    with alone(site, known.id), site.database.session() as session:
        removed = stored.remove_unbegun(session, known.id)
    if not removed:
        raise UsageError(
            f"{parent.slug}@{known.version} is what an expansion with other settings makes ({differ}): leave these "
            "options out to go on with it, or give --version a name that is free"
        )


def find(site: Site, parent: BenchmarkRecord | str, version: str) -> AnnotationRecord | None:
    """The expansion that makes a version: of this parent, or of any version of this slug; None where there is none."""
    slug = parent if isinstance(parent, str) else parent.slug
    with site.database.reading() as session:
        for record in stored.list_records(session):
            if record.version != version:
                continue
            of = benchmarks.get_by_id(session, record.benchmark_version_id)
            if of.slug == slug and (isinstance(parent, str) or of.id == parent.id):
                return record
    return None


def found(site: Site, benchmark: str, version: str) -> AnnotationRecord:
    """The expansion of a benchmark that makes a version.

    Args:
        site: where it is stored.
        benchmark: ``slug``, ``slug@version`` or a folder that is stored.
        version: of the new version.

    Raises:
        BenchmarkError, Conflict: as ``stored_parent``.
        NotFound: there is none.
    """
    if Path(benchmark).expanduser().is_dir():
        parent: BenchmarkRecord | str = stored_parent(site, benchmark)[0]
    else:
        name = parse_name(benchmark)
        parent = name.slug
        if name.version is not None:
            with site.database.reading() as session:
                parent = benchmarks.get(session, benchmark)
    record = find(site, parent, version)
    if record is None:
        raise NotFound(
            f"no expansion of {benchmark} makes the version {version}; `equirank annotate list` shows them, and "
            "`equirank annotate run` or `export-batch` begins one"
        )
    return record


def load_pool(site: Site, settings: ToolexSettings) -> None:
    """Load the retrievers of the pool before anything is asked: without them, what stage 1 asks is paid for nothing.

    Raises:
        ModelError: one cannot be had here; the message says how to name others.
    """
    for model, member in zip(pool_models(site, settings), settings.pool, strict=True):
        if not model.entry.dense or model.entry.source is Source.ENDPOINT:
            continue
        try:
            shared_encoder(model, model.contract(member.preset))
        except ModelError as error:
            raise ModelError(
                f"{error}\nCandidates were to come from {model.entry.name}. Nothing was asked yet: name other "
                "retrievers with --pool, such as --pool bm25 --pool minilm, which come with EquiRank."
            ) from error


def free_version(site: Site, slug: str, version: str) -> str:
    """A name for one more version after this one: the next number, or the name with a number behind it."""
    with site.database.reading() as session:
        taken = {record.version for record in benchmarks.list_records(session) if record.slug == slug}
        for record in stored.list_records(session):
            if benchmarks.get_by_id(session, record.benchmark_version_id).slug == slug:
                taken.add(record.version)
    stem, number = ("", int(version)) if version.isdigit() else (f"{version}.", 1)
    while True:
        number += 1
        if f"{stem}{number}" not in taken:
            return f"{stem}{number}"
