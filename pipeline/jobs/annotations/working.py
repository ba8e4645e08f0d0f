"""The work of an expansion, in chunks that can each be done again: what the job and the command line share.

A chunk is some queries through all stages. Its frames are stored before the row that names them, so whoever stops it,
and however, it goes on after its last finished chunk; within a chunk every answer is kept as it arrives.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import polars as pl

from pipeline.formats.messages import plural
from pipeline.jobs.annotations.following import CHUNK
from pipeline.jobs.annotations.pools import Library, library
from pipeline.jobs.benchmark_library import import_into_store
from pipeline.jobs.llm_answers import StoredAnswers, live_asker, site_budget
from pipeline.jobs.site import Site
from pipeline.llm.records import Asker
from pipeline.llm.stores import Budget
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.toolex.expand import Expansion, expand
from pipeline.toolex.frames import ExpansionFrames, frames_of, together
from pipeline.toolex.new_version import new_version
from pipeline.toolex.settings import Stage, ToolexSettings, settings_from_json
from store.access import annotations as stored
from store.access import benchmarks
from store.access.annotations import AnnotationRecord, ChunkRecord
from store.annotation_models import AnnotationChunk
from store.errors import Conflict
from store.locks import try_lock
from store.records import BenchmarkRecord

#: Frames of the whole that are kept beside the new version.
KEPT = ("provenance", "ranks", "states")


@dataclass(frozen=True)
class Chunk:
    """Some queries, by their places in the benchmark's order."""

    number: int
    start: int
    stop: int


@dataclass(frozen=True, eq=False)
class Work:
    """An expansion with what its chunks share."""

    site: Site
    record: AnnotationRecord
    settings: ToolexSettings
    library: Library

    @property
    def budget(self) -> Budget:
        """Its limits within the operator's; what earlier jobs spent for it counts."""
        record = self.record
        return site_budget(self.site.settings, record.id, max_cost=record.max_cost, max_calls=record.max_calls)

    @property
    def chunks(self) -> list[Chunk]:
        """All its chunks."""
        return chunks(self.library.parent.queries.height, CHUNK)

    def query_ids(self, chunk: Chunk) -> list[str]:
        """The queries of a chunk."""
        ids: list[str] = self.library.parent.queries["query_id"][chunk.start : chunk.stop].to_list()
        return ids


def chunks(queries: int, size: int) -> list[Chunk]:
    """So many queries in chunks."""
    starts = range(0, queries, size)
    return [Chunk(number, start, min(start + size, queries)) for number, start in enumerate(starts)]


def open_work(site: Site, annotation_id: str) -> Work:
    """An expansion as it is stored now, with its parent and retrievers.

    Raises:
        BenchmarkError: the parent has no content.
        Conflict: it was begun with other prompts.
        ModelError: a retriever is unknown or not allowed.
        NotFound: there is no such expansion.
    """
    with site.database.reading() as session:
        record = stored.get(session, annotation_id)
    settings = settings_from_json(record.settings)
    if not record.done and settings.hash != record.settings_hash:
        raise Conflict(
            f"the expansion {record.id[:12]} was begun with other prompts than this program has, and one version must "
            "not hold answers to both: ask for the same expansion under another version name"
        )
    return Work(site, record, settings, library(site, record.benchmark_version_id, settings))


def remaining(work: Work, *, retry_failed: bool = False) -> list[Chunk]:
    """The chunks that are to be done: those that are not, and on request those with failures."""
    with work.site.database.reading() as session:
        known = stored.chunks(session, work.record.id)
    done = {chunk.number for chunk in known if not (retry_failed and any(chunk.failures.values()))}
    return [chunk for chunk in work.chunks if chunk.number not in done]


def chunk_asker(work: Work) -> Asker:
    """Asks live models within the budget.

    Raises:
        JudgeError: a setting cannot be used.
    """
    return live_asker(work.site.settings, work.site.database, work.budget)


def work_chunk(
    work: Work,
    chunk: Chunk,
    asker: Asker,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> ChunkRecord | None:
    """Take a chunk through all stages and store it; None while a question of it waits for a batch's answers.

    Raises:
        BudgetExceeded, Cancelled, JudgeError, ModelError: as ``expand_chunk``.
        Conflict: the expansion was finished meanwhile.
    """
    expansion = expand_chunk(work, chunk, asker, progress=progress, cancelled=cancelled)
    if not expansion.complete:
        return None
    frames = frames_of(expansion)
    artifacts = work.site.artifacts
    row = AnnotationChunk(
        annotation_id=work.record.id,
        number=chunk.number,
        start=chunk.start,
        stop=chunk.stop,
        artifacts={name: artifacts.put_frame(frame) for name, frame in frames.tables.items()},
        failures=failures_of(frames),
    )
    with work.site.database.session() as session:
        return stored.put_chunk(session, row, artifacts=artifacts)


def expand_chunk(
    work: Work,
    chunk: Chunk,
    asker: Asker,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Expansion:
    """Take a chunk as far through the stages as the asker answers; nothing is stored but answers.

    Raises:
        BudgetExceeded: before a call that could exceed the budget; what was answered is kept.
        Cancelled: on request.
        JudgeError: a judge cannot be asked at all.
        ModelError: a retriever cannot be used.
    """
    return expand(
        work.library.parent,
        work.settings,
        asker,
        work.library.pool,
        query_ids=work.query_ids(chunk),
        documents=work.library.documents,
        progress=progress,
        cancelled=cancelled,
    )


def failures_of(frames: ExpansionFrames) -> dict[str, int]:
    """What got no valid answer: queries whose decomposition failed, and questions of the later stages."""
    failed = frames.provenance.filter(pl.col("failure") != "")
    return {
        Stage.DECOMPOSE.value: frames.states.filter("decomposition_failed").height,
        **{stage.value: failed.filter(pl.col("stage") == stage.value).height for stage in (Stage.VERIFY, Stage.AUDIT)},
    }


def chunk_frames(site: Site, chunk: ChunkRecord, names: Collection[str] | None = None) -> dict[str, pl.DataFrame]:
    """The frames of a stored chunk by name, all or some.

    Raises:
        ArtifactMissing, ArtifactDamaged: a frame is not whole.
    """
    wanted = chunk.artifacts if names is None else names
    return {name: site.artifacts.get_frame(chunk.artifacts[name]) for name in wanted}


def finish(work: Work) -> BenchmarkRecord:
    """Store the new version once every chunk is done; doing so again changes nothing.

    Raises:
        BenchmarkError: a chunk is missing.
        Conflict: its name was taken meanwhile by another benchmark.
    """
    site, parent = work.site, work.library.parent
    with site.database.reading() as session:
        known = stored.chunks(session, work.record.id)
    frames = [ExpansionFrames(**chunk_frames(site, chunk)) for chunk in known]
    if not frames:
        raise Conflict(f"no part of the expansion {work.record.id[:12]} is done yet")
    whole = together(frames, parent)
    named = {name: site.artifacts.put_frame(whole.tables[name]) for name in KEPT}
    made = import_into_store(site, new_version(parent, work.settings, whole, work.record.version))
    with site.database.session() as session:
        stored.finish(session, work.record.id, made.id, named, artifacts=site.artifacts)
    return made


def finish_stored(work: Work) -> Work:
    """The expansion, finished where its version is stored and a kill came before that was written down.

    Call it alone and before anything is done for the expansion: failures that are asked for once more would make other
    content than the stored version has, and the expansion could never be finished.

    Raises:
        Conflict: the version's name was taken by another benchmark of these settings.
    """
    record, slug = work.record, work.library.parent.info.slug
    if record.done:
        return work
    with work.site.database.reading() as session:
        named = [one for one in benchmarks.list_records(session, slug) if one.version == record.version]
    if not any(f"toolex {record.settings_hash[:16]}" in one.revision for one in named) or remaining(work):
        return work
    finish(work)
    with work.site.database.reading() as session:
        return replace(work, record=stored.get(session, record.id))


def require_open(record: AnnotationRecord, *, retry_failed: bool = False) -> None:
    """Refuse to go on with an expansion whose version is made.

    Raises:
        Conflict: it is.
    """
    if not record.done:
        return
    if retry_failed:
        raise Conflict(
            f"version {record.version} is made, and a version never changes: expand its parent once more under "
            "another version name with the same settings and ask failed questions again; every valid answer comes "
            "from the cache"
        )
    raise Conflict(f"version {record.version} is made; there is nothing left to do")


def made_version(site: Site, record: AnnotationRecord) -> BenchmarkRecord | None:
    """The version that an expansion made; None while it has not."""
    if record.made_version_id is None:
        return None
    with site.database.reading() as session:
        return benchmarks.get_by_id(session, record.made_version_id)


def chunk_words(work: Work, done: ChunkRecord) -> str:
    """How far an expansion is after a chunk and what it cost so far, for a log."""
    said = f"queries {done.start + 1:,} to {done.stop:,} of {work.library.parent.queries.height:,} are done"
    failures = sum(done.failures.values())
    if failures:
        said += f", {plural(failures, 'question')} without a valid answer"
    return f"{said}; {spent_words(work)}"


def spent_words(work: Work) -> str:
    """What an expansion used so far."""
    spent = StoredAnswers(work.site.database).spent(work.record.id)
    said = f"{plural(spent.calls, 'call')}, {spent.cost:,.4f} US dollars so far"
    if spent.unpriced:
        said += f" and {plural(spent.unpriced, 'call')} of unknown price"
    return said


@contextmanager
def alone(site: Site, annotation_id: str, *, wait: Callable[[], object] | None = None) -> Generator[None]:
    """Keep other processes and threads off an expansion, on PostgreSQL those of other machines too.

    Args:
        site: where it is stored.
        annotation_id: the expansion.
        wait: called several times a second while somebody else works on it; None refuses instead.

    Raises:
        Conflict: somebody works on it.
        DatabaseUnavailable: the database cannot be reached.
    """
    while True:
        with try_lock(site.database, site.settings, f"expansion-{annotation_id}") as held:
            if held:
                yield
                return
        if wait is None:
            raise Conflict(
                f"something else works on the expansion {annotation_id[:12]}: wait until it is done, or stop it"
            )
        wait()
        time.sleep(0.2)
