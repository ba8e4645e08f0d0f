"""What moved between two stored versions of a benchmark, worked out once for each pair of contents."""

from __future__ import annotations

import polars as pl

from pipeline.jobs.benchmark_library import load_benchmark
from pipeline.jobs.site import Site
from pipeline.scoring.version_changes import VersionChanges, version_changes
from store.cache import FileCache
from store.records import BenchmarkRecord

#: Raise it when ``version_changes`` could come out different.
_FORMAT = "1"


def changes_between(site: Site, before: BenchmarkRecord, after: BenchmarkRecord) -> VersionChanges:
    """The difference between two versions, from the cache or worked out into it.

    Args:
        site: where both are stored.
        before: the older version.
        after: the newer one.

    Raises:
        BenchmarkError: one of them has no content.
        ArtifactMissing, ArtifactDamaged: a table is not whole.
    """
    cache = FileCache.from_settings(site.settings, "changes")
    names = [f"{_FORMAT}-{before.content_hash}-{after.content_hash}-{part}" for part in ("counts", "queries")]
    keys = [f"{name}.parquet" for name in names]
    known = [cache.get(key) for key in keys]
    if known[0] is not None and known[1] is not None:
        try:
            return VersionChanges(pl.read_parquet(known[0]), pl.read_parquet(known[1]))
        except (OSError, pl.exceptions.PolarsError):
            for key in keys:
                cache.discard(key)
    found = version_changes(load_benchmark(site, before.id), load_benchmark(site, after.id))
    for key, frame in zip(keys, (found.counts, found.queries), strict=True):
        cache.put(key, frame.write_parquet)
    return found


def earlier_versions(record: BenchmarkRecord, known: list[BenchmarkRecord]) -> list[BenchmarkRecord]:
    """Versions with content that this one can be held against: its parents first, then others of its slug.

    Args:
        record: with content.
        known: every stored version.
    """
    if not record.has_content:
        return []
    others = [one for one in known if one.has_content and one.id != record.id]
    parents = [one for name in record.parents for one in others if one.name == name]
    rest = [one for one in others if one.slug == record.slug and one not in parents]
    # A version made later is last: people ask what a version changed, not what was changed about it.
    rest.sort(key=lambda one: (one.created_at > record.created_at, -one.created_at.timestamp(), -one.id))
    return parents + rest
