"""Benchmarks by name: stored versions, and folders that are used as they lie."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.benchmark import TABLES, Average, Benchmark, BenchmarkInfo, Kind
from pipeline.errors import BenchmarkError
from pipeline.jobs.benchmark_spread import distributions_artifact
from pipeline.jobs.site import Site, open_site
from pipeline.kernel_cache import sources_hash
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.compiled_cache import FolderCache
from pipeline.scoring.version import COMPILER_VERSION
from store.access import benchmarks
from store.errors import StoreError
from store.models import BenchmarkVersion
from store.records import BenchmarkRecord

#: Compiled benchmarks kept in this process, by cache file.
_RECENT: dict[tuple[str, str], CompiledBenchmark] = {}
_RECENT_LIMIT = 8


@dataclass(frozen=True, eq=False)
class CheckedBenchmark:
    """A benchmark that was read again and found sound."""

    name: str
    benchmark: Benchmark


class Library:
    """Resolves what people type after ``--benchmark``: ``slug``, ``slug@version`` or a folder.

    A folder needs no database; the store is opened when a stored name is asked for.
    """

    def __init__(self, site: Site | None = None) -> None:
        """Use ``site``, or open the settings' own when it is needed."""
        self._site = site

    @cached_property
    def site(self) -> Site:
        """The site, with its tables and shipped data in place."""
        if self._site is not None:
            return self._site
        # first_start imports this module to load the demo benchmarks.
        from pipeline.jobs.first_start import prepared_site

        return prepared_site()

    @property
    def limits_site(self) -> Site:
        """A site for its settings alone; no database is opened."""
        return self._site or open_site()

    def compiled(self, name: str) -> CompiledBenchmark:
        """The labels of a benchmark, ready for scoring.

        Raises:
            NotFound: no such stored benchmark.
            BenchmarkError: the folder is not sound, or the stored benchmark has no content.
        """
        folder = _folder(name)
        if folder is None:
            return load_compiled(self.site, self._stored(name).id)
        from pipeline.jobs.folder_cache import compiled_folder

        return compiled_folder(folder, self.limits_site.settings.cache_folder / "folders")

    def benchmark(self, name: str) -> Benchmark:
        """The whole content; raises as ``compiled``."""
        folder = _folder(name)
        if folder is None:
            return load_benchmark(self.site, self._stored(name).id)
        from pipeline.formats.benchmark_folder import read_benchmark_folder

        return read_benchmark_folder(folder)

    def record(self, name: str) -> dict[str, Any]:
        """Counts, licence, hash and statistics in the shape of ``benchmark show --format json``."""
        if _folder(name) is None:
            return record_json(self._stored(name))
        return record_json(_version_row(self.benchmark(name)))

    def verify(self, name: str) -> CheckedBenchmark:
        """Read every row again and compare the stored hash.

        Raises:
            BenchmarkError: a row is not sound, or the content has another hash than the stored one.
        """
        from pipeline.formats.content_hash import content_hash

        benchmark = self.benchmark(name)
        label = f"{benchmark.info.slug}@{benchmark.info.version}"
        found = content_hash({table: getattr(benchmark, table) for table in TABLES})
        if found != benchmark.content_hash:
            raise BenchmarkError(
                f"{label} has changed: its content has the hash {found}, stored is {benchmark.content_hash}; "
                "restore its artifacts from a backup"
            )
        return CheckedBenchmark(label, benchmark)

    def identify(self, query_ids: Sequence[str], other_than: str) -> str | None:
        """The stored benchmark, other than ``other_than``, that most of these query ids belong to, if any."""
        try:
            site = self._site or _existing_site()
            if site is None:
                return None
            with site.database.reading() as session:
                records = [r for r in benchmarks.list_records(session) if r.has_content and r.name != other_than]
            for record in records:
                known = set(site.artifacts.get_frame(record.artifacts["queries"], ["query_id"])["query_id"])
                if sum(query in known for query in query_ids) * 2 > len(query_ids):
                    return record.name
        except StoreError:
            # Naming the right benchmark is a courtesy; the refusal stands without it.
            return None
        return None

    def _stored(self, name: str) -> BenchmarkRecord:
        with self.site.database.reading() as session:
            return benchmarks.get(session, name)


def load_benchmark(site: Site, version_id: int) -> Benchmark:
    """The content of a stored version.

    Raises:
        NotFound: no such version.
        BenchmarkError: it carries reported figures only.
        ArtifactMissing, ArtifactDamaged: a table's file is not whole.
    """
    record = _with_content(site, version_id)
    # Beside the tables lies what was computed from them.
    frames = {name: site.artifacts.get_frame(digest) for name, digest in record.artifacts.items() if name in TABLES}
    info = BenchmarkInfo(
        slug=record.slug,
        title=record.title,
        kind=Kind(record.kind),
        version=record.version,
        licence=record.licence,
        source=record.source,
        revision=record.revision,
        parents=record.parents,
        headline=Average(record.headline),
    )
    empty = {table: pl.DataFrame(schema=schema) for table, schema in TABLES.items() if table not in frames}
    assert record.content_hash is not None
    return Benchmark(info=info, **frames, **empty, content_hash=record.content_hash, notes=record.notes)


def load_compiled(site: Site, version_id: int) -> CompiledBenchmark:
    """The labels of a stored version, compiled once and cached; raises as ``load_benchmark``."""
    record = _with_content(site, version_id)
    # The sources' hash, so that arrays of another compiler are never used, whether its version was raised or not.
    key = f"{record.slug}-{record.version}-{record.headline}-{record.content_hash}-{COMPILER_VERSION}-{sources_hash()}"
    folder = site.settings.cache_folder / "compiled"
    place = (str(folder), key)
    found = _RECENT.get(place)
    if found is None:
        found = FolderCache(folder).compiled(key, lambda: _compile(load_benchmark(site, version_id)))
        while len(_RECENT) >= _RECENT_LIMIT:
            _RECENT.pop(next(iter(_RECENT)), None)
        _RECENT[place] = found
    return found


def _compile(benchmark: Benchmark) -> CompiledBenchmark:
    from pipeline.scoring.compiler import compile_benchmark

    return compile_benchmark(benchmark)


def import_into_store(site: Site, benchmark: Benchmark, *, is_demo: bool = False) -> BenchmarkRecord:
    """Store a benchmark as an immutable version; storing the same content again changes nothing.

    Raises:
        Conflict: the version is stored with other content.
    """
    row = _version_row(benchmark, is_demo=is_demo)
    with site.database.reading() as session:
        known = benchmarks.with_content(session, benchmark.content_hash)
    for record in known:
        if record.name == f"{row.slug}@{row.version}":
            return record
    row.artifacts = {
        table: site.artifacts.put_frame(getattr(benchmark, table))
        for table in TABLES
        if getattr(benchmark, table).height
    } | distributions_artifact(site, benchmark)
    with site.database.session() as session:
        return benchmarks.add_version(session, row, artifacts=site.artifacts)


def list_records(site: Site) -> list[dict[str, Any]]:
    """Every stored version in the shape of ``benchmark list --format json``."""
    with site.database.reading() as session:
        return [record_json(record) for record in benchmarks.list_records(session)]


def _version_row(benchmark: Benchmark, *, is_demo: bool = False) -> BenchmarkVersion:
    from pipeline.scoring.benchmark_statistics import benchmark_statistics

    info = benchmark.info
    valid = benchmark.combinations.filter(pl.col("verdict") == "valid").height
    return BenchmarkVersion(
        slug=info.slug,
        version=info.version,
        title=info.title,
        kind=info.kind.value,
        licence=info.licence,
        source=info.source,
        revision=info.revision,
        headline=info.effective_headline.value,
        parents=list(info.parents),
        content_hash=benchmark.content_hash,
        queries=benchmark.queries.height,
        tools=benchmark.tools.height,
        subqueries=benchmark.subqueries.height,
        equivalents=benchmark.equivalents.filter(pl.col("verdict") == "valid").height,
        combinations=valid or benchmark.queries.height,
        domains=_counted(benchmark.queries["domain"]),
        sources=_counted(benchmark.queries["source"]),
        statistics=_statistics(benchmark_statistics(benchmark)),
        notes=list(benchmark.notes),
        is_demo=is_demo,
    )


def _statistics(frame: pl.DataFrame) -> dict[str, Any]:
    """Table 1 for all queries and by domain, as ``{"all": {…}, "domains": {name: {…}}}``."""
    rows = frame.to_dicts()
    figures = {row.pop("domain"): row for row in rows}
    return {"all": figures.pop(None), "domains": figures}


def _counted(column: pl.Series) -> list[dict[str, Any]]:
    counted = column.to_frame("name").group_by("name", maintain_order=True).len("n")
    return counted.to_dicts()


def record_json(record: BenchmarkRecord | BenchmarkVersion) -> dict[str, Any]:
    """A version in the shape of ``benchmark show --format json``."""

    def counted(values: Any) -> dict[str, int]:
        return {
            item["name"] if isinstance(item, dict) else item.name: item["n"] if isinstance(item, dict) else item.n
            for item in values
        }

    return {
        "slug": record.slug,
        "version": record.version,
        "title": record.title,
        "kind": record.kind,
        "hash": record.content_hash,
        "licence": record.licence,
        "source": record.source,
        "revision": record.revision,
        "parents": list(record.parents),
        "headline": record.headline,
        "queries": record.queries,
        "tools": record.tools,
        "subqueries": record.subqueries,
        "equivalents": record.equivalents,
        "combinations": record.combinations,
        "domains": counted(record.domains),
        "sources": counted(record.sources),
        "statistics": dict(record.statistics),
        "notes": list(record.notes),
    }


def _with_content(site: Site, version_id: int) -> BenchmarkRecord:
    with site.database.reading() as session:
        record = benchmarks.get_by_id(session, version_id)
    if not record.has_content:
        raise BenchmarkError(
            f"{record.name} carries only figures printed in a paper; no run can be scored against it. "
            "Import its queries, tools and labels with `equirank benchmark import`"
        )
    return record


def _folder(name: str) -> Path | None:
    """The folder that ``name`` means, or None for the name of a stored benchmark."""
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if os.sep in name or name.startswith(("~", ".")):
        raise BenchmarkError(
            f"there is no folder {name!r}: give a benchmark folder (with benchmark.toml), "
            "or a stored slug or slug@version"
        )
    return None


def _existing_site() -> Site | None:
    """The settings' own site if it has been set up; nothing is made."""
    site = open_site()
    if site.database.kind == "sqlite" and not (site.settings.home / "equirank.sqlite3").is_file():
        return None
    return site
