"""Analyses beside runs over fields: stored once for what they were computed from, and read by pages."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlmodel import Session, col

from store.artifacts import ArtifactStore
from store.database import exclusive
from store.errors import InvalidRecord, NotFound
from store.field_analysis_models import AnalysisKind, FieldAnalysis
from store.models import Run, utc_now
from store.records import record


@dataclass(frozen=True)
class FieldAnalysisRecord:
    """One analysis; see ``store.field_analysis_models.FieldAnalysis``."""

    run_id: str
    kind: str
    computed_from: str
    artifact: str
    made_at: datetime


def put(
    session: Session,
    run_id: str,
    kind: AnalysisKind | str,
    *,
    computed_from: str,
    artifact: str,
    artifacts: ArtifactStore,
) -> FieldAnalysisRecord:
    """Store an analysis in the place of the run's last one of this kind.

    Raises:
        ArtifactMissing, ArtifactDamaged: the frame is not whole.
        InvalidRecord: there is no such kind.
        NotFound: there is no such run.
    """
    if kind not in list(AnalysisKind):
        raise InvalidRecord(f"there is no analysis of kind {kind!r}")
    if session.get(Run, run_id) is None:
        raise NotFound(f"no run has the id {run_id!r}")
    artifacts.require(artifact)
    exclusive(session, f"analysis {kind} of run {run_id}")
    row = session.get(FieldAnalysis, (run_id, str(kind)))
    if row is None:
        row = FieldAnalysis(run_id=run_id, kind=str(kind), computed_from=computed_from, artifact=artifact)
    row.computed_from, row.artifact, row.made_at = computed_from, artifact, utc_now()
    session.add(row)
    session.flush()
    return record(FieldAnalysisRecord, row)


def of_run(session: Session, run_id: str) -> dict[str, FieldAnalysisRecord]:
    """Kind → the run's analysis."""
    query = select(FieldAnalysis).where(col(FieldAnalysis.run_id) == run_id)
    return {row.kind: record(FieldAnalysisRecord, row) for row in session.scalars(query)}


def of_kind(
    session: Session, kind: AnalysisKind | str, run_ids: Collection[str]
) -> dict[str, FieldAnalysisRecord]:  # fmt: skip
    """Run id → its analysis of this kind, of those runs that have one."""
    query = select(FieldAnalysis).where(
        col(FieldAnalysis.kind) == str(kind), col(FieldAnalysis.run_id).in_(list(run_ids))
    )
    return {row.run_id: record(FieldAnalysisRecord, row) for row in session.scalars(query)}


def stamp(session: Session) -> str:
    """A text that changes when an analysis is stored."""
    found = session.execute(select(func.count(), func.max(col(FieldAnalysis.made_at)))).one()
    return "|".join(str(value) for value in found)
