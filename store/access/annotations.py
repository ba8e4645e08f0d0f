"""Expansions of benchmark versions: what was asked for, their chunks, and the version that each made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlmodel import Session, col

from store.annotation_models import Annotation, AnnotationChunk, AnnotationState
from store.artifacts import ArtifactStore
from store.database import exclusive
from store.errors import Conflict, NotFound
from store.llm_models import LlmCall
from store.models import BenchmarkVersion, utc_now
from store.records import record

#: State of a call that the provider turned away; see ``LlmCall``.
_REFUSED = "refused"


@dataclass(frozen=True)
class AnnotationRecord:
    """One expansion; see ``store.annotation_models.Annotation``."""

    id: str
    benchmark_version_id: int
    version: str
    settings: Mapping[str, Any]
    settings_hash: str
    max_cost: float | None
    max_calls: int | None
    state: str
    made_version_id: int | None
    artifacts: Mapping[str, str]
    batched: bool
    retry_failed: bool
    batch: tuple[str, ...]
    answers: tuple[str, ...]
    pending: int
    person: str
    created_at: datetime
    updated_at: datetime

    @property
    def done(self) -> bool:
        """Whether the new version is made."""
        return self.state == AnnotationState.DONE


@dataclass(frozen=True)
class ChunkRecord:
    """One chunk that is done; see ``store.annotation_models.AnnotationChunk``."""

    annotation_id: str
    number: int
    start: int
    stop: int
    artifacts: Mapping[str, str]
    failures: Mapping[str, int]
    made_at: datetime

    @property
    def queries(self) -> int:
        """How many queries it holds."""
        return self.stop - self.start


def add(session: Session, row: Annotation) -> AnnotationRecord:
    """Store an expansion that is asked for; the one that has its id, as it is, where there is one.

    Args:
        session: of ``Database.session``.
        row: new, open.

    Raises:
        Conflict: an open expansion is to make a version of the same name, or that version is stored.
        NotFound: there is no such parent.
    """
    parent = session.get(BenchmarkVersion, row.benchmark_version_id)
    if parent is None:
        raise NotFound(f"no benchmark version has the id {row.benchmark_version_id}")
    exclusive(session, f"expansions of {parent.slug}")
    known = session.get(Annotation, row.id)
    if known is not None:
        return record(AnnotationRecord, known)
    name = f"{parent.slug}@{row.version}"
    stored = select(col(BenchmarkVersion.id)).where(
        col(BenchmarkVersion.slug) == parent.slug, col(BenchmarkVersion.version) == row.version
    )
    if session.scalar(stored) is not None:
        raise Conflict(f"{name} is stored: an expansion makes a new version; give it a name that is free")
    same = (
        select(col(Annotation.id))
        .join(BenchmarkVersion, col(BenchmarkVersion.id) == col(Annotation.benchmark_version_id))
        .where(col(BenchmarkVersion.slug) == parent.slug, col(Annotation.version) == row.version)
    )
    other = session.scalar(same)
    if other is not None:
        raise Conflict(
            f"{name} is what the expansion {other[:12]} makes, which has other settings or another parent; give this "
            "one a name that is free"
        )
    session.add(row)
    session.flush()
    return record(AnnotationRecord, row)


def remove_unbegun(session: Session, annotation_id: str) -> bool:
    """Take an expansion away of which nothing is done: no chunk, no batch, no version, no call that a model took.

    Calls that were turned away, as by a model that does not exist, cost nothing and stay in the ledger.

    Returns:
        Whether it was.
    """
    exclusive(session, f"expansion {annotation_id}")
    row = session.get(Annotation, annotation_id, with_for_update=True)
    if row is None or row.made_version_id is not None or row.batch or row.answers:
        return False
    if session.scalar(select(func.count()).where(col(AnnotationChunk.annotation_id) == annotation_id)):
        return False
    taken = (col(LlmCall.scope) == annotation_id, col(LlmCall.state) != _REFUSED)
    if session.scalar(select(func.count()).where(*taken)):
        return False
    session.delete(row)
    session.flush()
    return True


def get(session: Session, annotation_id: str) -> AnnotationRecord:
    """The expansion with this id, or the only one whose id begins so (8 characters or more).

    Raises:
        NotFound: there is none, or more than one begins so.
    """
    row = session.get(Annotation, annotation_id)
    if row is not None:
        return record(AnnotationRecord, row)
    found = []
    if len(annotation_id) >= 8 and annotation_id.isalnum():
        query = select(Annotation).where(col(Annotation.id).startswith(annotation_id)).limit(2)
        found = list(session.scalars(query))
    if len(found) != 1:
        several = "several expansions have ids that begin" if found else "there is no expansion"
        raise NotFound(f"{several} {annotation_id!r}; `equirank annotate list` shows them")
    return record(AnnotationRecord, found[0])


def list_records(session: Session) -> list[AnnotationRecord]:
    """All expansions, the newest first."""
    query = select(Annotation).order_by(col(Annotation.created_at).desc(), col(Annotation.id))
    return [record(AnnotationRecord, row) for row in session.scalars(query)]


def that_made(session: Session, benchmark_version_id: int) -> AnnotationRecord | None:
    """The expansion that made a version; None for one that came otherwise."""
    query = select(Annotation).where(col(Annotation.made_version_id) == benchmark_version_id).limit(1)
    row = session.scalars(query).first()
    return None if row is None else record(AnnotationRecord, row)


def set_budget(session: Session, annotation_id: str, max_cost: float | None, max_calls: int | None) -> AnnotationRecord:
    """Change the budget in US dollars and in calls; null is no limit of its own.

    Raises:
        NotFound: there is no such expansion.
    """
    row = _locked(session, annotation_id)
    row.max_cost, row.max_calls, row.updated_at = max_cost, max_calls, utc_now()
    session.flush()
    return record(AnnotationRecord, row)


def set_way(session: Session, annotation_id: str, *, batched: bool, retry_failed: bool) -> AnnotationRecord:
    """Say how the next job asks. Asking live ends the waiting for a batch's answers.

    Raises:
        Conflict: it is done.
        NotFound: there is no such expansion.
    """
    row = _open(session, annotation_id)
    if not batched or retry_failed:
        # What the files answered is in the cache; read again, their failures would count again.
        row.batch, row.answers, row.pending = [], [], 0
    row.batched, row.retry_failed, row.updated_at = batched, retry_failed, utc_now()
    session.flush()
    return record(AnnotationRecord, row)


def set_batch(
    session: Session, annotation_id: str, pending: int, batch: Sequence[str], *, artifacts: ArtifactStore
) -> AnnotationRecord:
    """Say what a round of a batch left open.

    Args:
        session: of ``Database.session``.
        annotation_id: the expansion.
        pending: questions that wait for answers.
        batch: artifact hashes of the files that hold them.
        artifacts: where they are.

    Raises:
        ArtifactMissing, ArtifactDamaged: a file is not whole.
        Conflict: it is done.
        NotFound: there is no such expansion.
    """
    for digest in batch:
        artifacts.require(digest)
    row = _open(session, annotation_id)
    row.batched, row.pending, row.batch, row.updated_at = True, pending, list(batch), utc_now()
    session.flush()
    return record(AnnotationRecord, row)


def add_answers(session: Session, annotation_id: str, digest: str, *, artifacts: ArtifactStore) -> AnnotationRecord:
    """Keep an answers file; the same file again only becomes the newest.

    Raises:
        ArtifactMissing, ArtifactDamaged: the file is not whole.
        Conflict: it is done.
        NotFound: there is no such expansion.
    """
    artifacts.require(digest)
    row = _open(session, annotation_id)
    row.answers = [*(known for known in row.answers if known != digest), digest]
    row.updated_at = utc_now()
    session.flush()
    return record(AnnotationRecord, row)


def put_chunk(session: Session, chunk: AnnotationChunk, *, artifacts: ArtifactStore) -> ChunkRecord:
    """Store a chunk that is done, in the place of an earlier one of its number.

    Raises:
        ArtifactMissing, ArtifactDamaged: a frame is not whole.
        Conflict: the expansion is done.
        NotFound: there is no such expansion.
    """
    for digest in chunk.artifacts.values():
        artifacts.require(digest)
    row = _open(session, chunk.annotation_id)
    stored = session.merge(chunk)
    row.updated_at = utc_now()
    session.flush()
    return record(ChunkRecord, stored)


def chunks(session: Session, annotation_id: str) -> list[ChunkRecord]:
    """The chunks that are done, in order."""
    query = select(AnnotationChunk).where(col(AnnotationChunk.annotation_id) == annotation_id)
    return [record(ChunkRecord, row) for row in session.scalars(query.order_by(col(AnnotationChunk.number)))]


def finish(
    session: Session,
    annotation_id: str,
    made_version_id: int,
    named: Mapping[str, str],
    *,
    artifacts: ArtifactStore,
) -> AnnotationRecord:
    """Say which version it made; doing so again changes nothing.

    Args:
        session: of ``Database.session``.
        annotation_id: the expansion.
        made_version_id: the new version.
        named: ``provenance``, ``ranks``, ``states`` → hash of the frame.
        artifacts: where they are.

    Raises:
        ArtifactMissing, ArtifactDamaged: a frame is not whole.
        Conflict: it made another version.
        NotFound: there is no such expansion or version.
    """
    for digest in named.values():
        artifacts.require(digest)
    if session.get(BenchmarkVersion, made_version_id) is None:
        raise NotFound(f"no benchmark version has the id {made_version_id}")
    row = _locked(session, annotation_id)
    if row.made_version_id not in (None, made_version_id):
        raise Conflict(f"the expansion {annotation_id[:12]} made another version")
    if row.made_version_id is None:
        row.made_version_id, row.state, row.artifacts = made_version_id, AnnotationState.DONE.value, dict(named)
        row.batch, row.pending, row.updated_at = [], 0, utc_now()
        session.flush()
    return record(AnnotationRecord, row)


def stamp(session: Session) -> str:
    """A text that changes when an expansion is asked for, goes on or ends."""
    found = session.execute(select(func.count(), func.max(col(Annotation.updated_at)))).one()
    return "|".join(str(value) for value in found)


def _locked(session: Session, annotation_id: str) -> Annotation:
    exclusive(session, f"expansion {annotation_id}")
    row = session.get(Annotation, annotation_id, with_for_update=True)
    if row is None:
        raise NotFound(f"there is no expansion {annotation_id!r}")
    return row


def _open(session: Session, annotation_id: str) -> Annotation:
    row = _locked(session, annotation_id)
    if row.state == AnnotationState.DONE:
        raise Conflict(f"the expansion {annotation_id[:12]} is done and never changes again")
    return row
