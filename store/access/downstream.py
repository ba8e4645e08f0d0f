"""Downstream studies: imported once under a label of their own, listed and read; nothing changes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlmodel import Session, col

from store.access.texts import has_unseen
from store.artifacts import ArtifactStore
from store.database import exclusive
from store.downstream_models import DownstreamStudy
from store.errors import Conflict, InvalidRecord, NotFound
from store.models import BenchmarkVersion
from store.records import record

_LONGEST_LABEL = 120
_LONGEST_NOTE = 1_000


@dataclass(frozen=True)
class DownstreamStudyRecord:
    """One study; see ``store.downstream_models.DownstreamStudy``."""

    id: str
    label: str
    benchmark_version_id: int | None
    artifact: str
    settings: tuple[str, ...]
    tasks: int
    note: str
    created_at: datetime


def free_label(session: Session, label: str) -> str:
    """The label as it is kept, spaces made single.

    Raises:
        InvalidRecord: it is empty, too long, or cannot be shown in one line.
        Conflict: a study has it.
    """
    shown = " ".join(label.split())
    if not shown or len(shown) > _LONGEST_LABEL or has_unseen(shown):
        raise InvalidRecord(f"a label is 1 to {_LONGEST_LABEL} characters without control or invisible characters")
    if session.scalars(select(col(DownstreamStudy.id)).where(col(DownstreamStudy.label) == shown)).first() is not None:
        raise Conflict(f"a downstream study is called {shown!r} already, and studies are not replaced: choose another")
    return shown


def add(
    session: Session,
    *,
    label: str,
    artifact: str,
    settings: Sequence[str],
    tasks: int,
    artifacts: ArtifactStore,
    benchmark_version_id: int | None = None,
    note: str = "",
) -> DownstreamStudyRecord:
    """Store a study.

    Args:
        session: of ``Database.session``.
        label: the owner's words; no other study has them.
        artifact: hash of the frame.
        settings: in order.
        tasks: distinct tasks.
        artifacts: where the frame is.
        benchmark_version_id: whose queries the tasks are.
        note: agent, judge and date, in words.

    Raises:
        InvalidRecord: the label or the note cannot be shown, or there is no setting.
        Conflict: a study has the label.
        ArtifactMissing, ArtifactDamaged: the frame is not whole.
    """
    shown = " ".join(note.split())
    if len(shown) > _LONGEST_NOTE or has_unseen(shown):
        raise InvalidRecord(f"a note is at most {_LONGEST_NOTE:,} characters without control or invisible characters")
    if not settings or tasks < 1:
        raise InvalidRecord("a downstream study needs a setting and a task")
    artifacts.require(artifact)
    exclusive(session, "downstream studies")
    row = DownstreamStudy(
        label=free_label(session, label),
        benchmark_version_id=benchmark_version_id,
        artifact=artifact,
        settings=list(settings),
        tasks=tasks,
        note=shown,
    )
    session.add(row)
    session.flush()
    return record(DownstreamStudyRecord, row)


def get(session: Session, name: str) -> DownstreamStudyRecord:
    """The study with this label or id.

    Raises:
        NotFound: there is none; the message lists what there is.
    """
    shown = " ".join(name.split())
    query = select(DownstreamStudy).where((col(DownstreamStudy.label) == shown) | (col(DownstreamStudy.id) == shown))
    # A label that is another study's id is that label.
    rows = sorted(session.scalars(query), key=lambda row: row.label != shown)
    if not rows:
        known = [study.label for study in list_studies(session)]
        listed = ", ".join(map(repr, known[:20])) + (" …" if len(known) > 20 else "") if known else "none yet"
        raise NotFound(f"no downstream study is called {name!r}; stored are: {listed}")
    return record(DownstreamStudyRecord, rows[0])


def list_studies(session: Session, *, slug: str | None = None) -> list[DownstreamStudyRecord]:
    """Studies, the newest first.

    Args:
        session: of ``Database.reading``.
        slug: only those of any version of this benchmark, and those that name no benchmark.
    """
    query = select(DownstreamStudy)
    if slug is not None:
        versions = select(col(BenchmarkVersion.id)).where(col(BenchmarkVersion.slug) == slug)
        of_none = col(DownstreamStudy.benchmark_version_id).is_(None)
        query = query.where(of_none | col(DownstreamStudy.benchmark_version_id).in_(versions))
    rows = session.scalars(query.order_by(col(DownstreamStudy.created_at).desc(), col(DownstreamStudy.id)))
    return [record(DownstreamStudyRecord, row) for row in rows]
