"""A parent's content and its retrievers, opened once in a process whatever number of chunks asks for them."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.benchmark import Benchmark
from pipeline.jobs.benchmark_library import load_benchmark
from pipeline.jobs.evaluation_request import permissions
from pipeline.jobs.measuring import embedding_cache
from pipeline.jobs.site import Site
from pipeline.retrieval.models import resolve_model
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.toolex.candidates import CandidatePool, library_pool
from pipeline.toolex.expand import documents_of
from pipeline.toolex.records import Candidate, Subquery
from pipeline.toolex.settings import PoolMember, ToolexSettings

#: Parents kept in this process; each holds its documents and, once searched, its embeddings.
_RECENT_LIMIT = 2
#: One search at a time: jobs of several expansions may run in one worker, and a model fills its processor.
_searching = threading.Lock()
_opening = threading.Lock()
_recent: dict[tuple[object, ...], Library] = {}


@dataclass(frozen=True, eq=False)
class Library:
    """What chunks of an expansion share.

    Attributes:
        parent: the benchmark that is expanded.
        documents: documentation by tool id.
        pool: where candidates come from.
    """

    parent: Benchmark
    documents: Mapping[str, str]
    pool: CandidatePool


class SharedPool(CandidatePool):
    """A pool that one thread searches at a time."""

    def __init__(self, pool: CandidatePool) -> None:
        """Take over a pool that nobody uses yet."""
        super().__init__(pool._target, pool._members, pool.depth)

    def candidates(
        self,
        subqueries: Sequence[Subquery],
        *,
        progress: ProgressCallback | None = None,
        cancelled: CancelledCallback | None = None,
    ) -> list[tuple[Candidate, ...]]:
        """See ``CandidatePool``."""
        with _searching:
            return super().candidates(subqueries, progress=progress, cancelled=cancelled)


def check_members(site: Site, members: Sequence[PoolMember]) -> None:
    """Refuse retrievers that may not be used here; nothing is loaded.

    Raises:
        ModelError: one is unknown or not allowed, or has no such preset.
    """
    for member in members:
        resolve_model(member.model, permissions=permissions(site.settings)).contract(member.preset)


def library(site: Site, version_id: int, settings: ToolexSettings) -> Library:
    """The content of a stored version and the retrievers of the settings over it.

    Raises:
        BenchmarkError: the version has no content.
        ModelError: a retriever is unknown or not allowed.
        NotFound: there is no such version.
    """
    allowed = permissions(site.settings)
    key = (site.database.url, site.artifacts.url, version_id, settings.pool, settings.depth, allowed)
    with _opening:
        found = _recent.pop(key, None)
        if found is None:
            parent = load_benchmark(site, version_id)
            cache = embedding_cache(site)
            pool = library_pool(parent, settings.pool, settings.depth, permissions=allowed, cache=cache)
            found = Library(parent, documents_of(parent), SharedPool(pool))
            while len(_recent) >= _RECENT_LIMIT:
                _recent.pop(next(iter(_recent)))
        _recent[key] = found
        return found
