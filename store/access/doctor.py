"""Whether every row's artifacts are there and whole, and which artifacts no row names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import select
from sqlmodel import Session, col

from store.annotation_models import Annotation, AnnotationChunk
from store.artifacts import ArtifactStore, StoredArtifact
from store.downstream_models import DownstreamStudy
from store.errors import ArtifactDamaged, ArtifactMissing
from store.field_analysis_models import FieldAnalysis
from store.field_text_models import FieldTexts
from store.models import BenchmarkVersion, Run, utc_now
from store.statistics_models import BoardStatistics


@dataclass(frozen=True)
class Damage:
    """An artifact that is missing or whose bytes changed, and the rows that need it (in words)."""

    hash: str
    problem: str
    owners: tuple[str, ...]


@dataclass(frozen=True)
class IntegrityReport:
    """What the check found.

    Attributes:
        checked: artifacts that rows name.
        missing, damaged: those that cannot be read.
        orphans: artifacts that no row names and that are older than the grace time.
    """

    checked: int
    missing: tuple[Damage, ...]
    damaged: tuple[Damage, ...]
    orphans: tuple[StoredArtifact, ...]

    @property
    def ok(self) -> bool:
        """Whether every row has its artifacts; orphans are no harm."""
        return not self.missing and not self.damaged


def referenced(session: Session) -> dict[str, tuple[str, ...]]:
    """Every artifact hash that a row names, with the rows in words."""
    owners: defaultdict[str, list[str]] = defaultdict(list)
    for version in session.scalars(select(BenchmarkVersion).order_by(col(BenchmarkVersion.id))):
        for table, digest in version.artifacts.items():
            owners[digest].append(f"{table} of benchmark {version.slug}@{version.version}")
    columns = {
        "ranking": col(Run.ranking_artifact),
        "per-query scores": col(Run.per_query_artifact),
        "raw file": col(Run.raw_artifact),
        "statistics": col(Run.statistics_artifact),
    }
    for run_id, *digests in session.execute(select(col(Run.id), *columns.values()).order_by(col(Run.id))):
        for what, digest in zip(columns, digests, strict=True):
            if digest is not None:
                owners[digest].append(f"{what} of run {run_id}")
    for board in session.scalars(select(BoardStatistics).order_by(col(BoardStatistics.benchmark_version_id))):
        owners[board.tie_groups_artifact].append(f"tie groups of benchmark version {board.benchmark_version_id}")
        owners[board.gains_artifact].append(f"gains of benchmark version {board.benchmark_version_id}")
    for texts in session.scalars(select(FieldTexts).order_by(col(FieldTexts.created_at), col(FieldTexts.id))):
        owners[texts.artifact].append(f"{texts.kind} in fields ({texts.source}) {texts.id}")
    analyses = select(FieldAnalysis).order_by(col(FieldAnalysis.run_id), col(FieldAnalysis.kind))
    for analysis in session.scalars(analyses):
        owners[analysis.artifact].append(f"analysis of {analysis.kind} of run {analysis.run_id}")
    for study in session.scalars(select(DownstreamStudy).order_by(col(DownstreamStudy.label))):
        owners[study.artifact].append(f"downstream study {study.label}")
    for expansion in session.scalars(select(Annotation).order_by(col(Annotation.created_at), col(Annotation.id))):
        for name, digest in expansion.artifacts.items():
            owners[digest].append(f"{name} of expansion {expansion.id}")
        for name in ("batch", "answers"):
            for digest in getattr(expansion, name):
                owners[digest].append(f"{name} file of expansion {expansion.id}")
    parts = select(AnnotationChunk).order_by(col(AnnotationChunk.annotation_id), col(AnnotationChunk.number))
    for part in session.scalars(parts):
        for name, digest in part.artifacts.items():
            owners[digest].append(f"{name} of chunk {part.number} of expansion {part.annotation_id}")
    return {digest: tuple(rows) for digest, rows in owners.items()}


def check_integrity(
    session: Session,
    artifacts: ArtifactStore,
    *,
    deep: bool = True,
    needed: Mapping[str, tuple[str, ...]] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> IntegrityReport:
    """Look at every artifact that a row names.

    Args:
        session: of ``Database.reading``.
        artifacts: the store they should be in.
        deep: read every file and compare its hash; otherwise only look whether it is there.
        needed: further artifacts, with who needs them in words: jobs keep theirs outside these tables.
        progress: called with (checked, total).
    """
    owners = {**(needed or {}), **referenced(session)}
    missing, damaged = [], []
    for number, (digest, rows) in enumerate(owners.items(), start=1):
        try:
            if deep:
                artifacts.verify(digest)
            elif not artifacts.exists(digest):
                raise ArtifactMissing(f"artifact {digest} is not in {artifacts.url}")
        except ArtifactMissing as error:
            missing.append(Damage(digest, str(error), rows))
        except ArtifactDamaged as error:
            damaged.append(Damage(digest, str(error), rows))
        if progress is not None:
            progress(number, len(owners))
    unnamed = orphans(session, artifacts, needed=needed or ())
    return IntegrityReport(len(owners), tuple(missing), tuple(damaged), tuple(unnamed))


def orphans(
    session: Session,
    artifacts: ArtifactStore,
    *,
    older_than: timedelta = timedelta(hours=1),
    needed: Collection[str] = (),
) -> list[StoredArtifact]:
    """Artifacts that no row names: left by a process that was killed before its row.

    Args:
        session: of ``Database.reading``.
        artifacts: the store to look through.
        older_than: younger ones may be about to get their row and are left out.
        needed: hashes that something other than a row needs.
    """
    # The files are listed before the rows are read, so that a row written in between is seen.
    limit = utc_now() - older_than
    stored = [item for item in artifacts.stored() if item.modified is None or item.modified <= limit]
    named = {*referenced(session), *needed}
    return sorted((item for item in stored if item.hash not in named), key=lambda item: item.hash)
