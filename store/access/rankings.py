"""Runs with a stored ranking, each with who submitted it: what can be scored against another benchmark version."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import select
from sqlmodel import Session, col

from store.models import Run, Submission, Visibility
from store.records import RunRecord, record


@dataclass(frozen=True)
class OwnedRun:
    """A run and who submitted it; None for one that the site measured by itself."""

    run: RunRecord
    person: str | None

    @property
    def ranking(self) -> tuple[str | None, ...]:
        """What two runs share when one is the other scored again: ranking, method and who may see it."""
        run = self.run
        owner = self.person if run.visibility == Visibility.PRIVATE.value else None
        return (
            run.ranking_hash,
            str(run.retriever_id),
            run.method,
            run.level,
            run.contract,
            run.contract_hash,
            run.provenance,
            run.visibility,
            owner,
        )


def with_ranking(session: Session, benchmark_version_ids: Collection[int]) -> list[OwnedRun]:
    """Every run of these versions whose ranking is stored, whoever may see it, the oldest first."""
    query = (
        select(Run, col(Submission.person))
        .join(Submission, col(Submission.run_id) == col(Run.id), isouter=True)
        .where(
            col(Run.benchmark_version_id).in_(list(benchmark_version_ids)),
            col(Run.ranking_artifact).is_not(None),
            col(Run.ranking_hash).is_not(None),
        )
        .order_by(col(Run.created_at), col(Run.id))
    )
    return [OwnedRun(record(RunRecord, row), person) for row, person in session.execute(query)]
