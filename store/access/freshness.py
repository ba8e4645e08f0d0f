"""Whether anything that a board shows has changed: one small query, so that pages can keep what they made."""

from __future__ import annotations

from hashlib import sha256

from sqlalchemy import func, select
from sqlmodel import Session, col

from store.models import BenchmarkVersion, Provenance, Retriever, Run, State, Submission, Visibility
from store.statistics_models import BoardStatistics


def board_stamp(session: Session, benchmark_version_id: int) -> str:
    """A text that changes when a run of this version is published, withdrawn, hidden or edited, or gets statistics.

    Two different texts do not mean that a board differs; equal texts mean that nothing but a retriever's
    description, loaded at start, can.
    """
    shown = (col(Run.state) == State.PUBLISHED.value) & (col(Run.visibility) == Visibility.PUBLIC.value)
    of_version = col(Run.benchmark_version_id) == benchmark_version_id
    runs = session.execute(
        select(
            func.count(),
            func.max(col(Run.published_at)),
            func.max(col(Run.created_at)),
            func.count(col(Run.statistics_at)),
            func.max(col(Run.statistics_at)),
        ).where(of_version, shown)
    ).one()
    hidden = session.execute(select(func.count(), func.max(col(Run.withdrawn_at))).where(of_version, ~shown)).one()
    edited = session.execute(
        select(func.max(col(Submission.updated_at))).where(col(Submission.benchmark_version_id) == benchmark_version_id)
    ).one()
    computed = session.execute(
        select(func.max(col(BoardStatistics.made_at))).where(
            col(BoardStatistics.benchmark_version_id) == benchmark_version_id
        )
    ).one()
    retrievers = session.execute(select(func.count(), func.max(col(Retriever.created_at)))).one()
    said = _said_without_submission(session, benchmark_version_id)
    return "|".join(str(value) for value in (*runs, *hidden, *edited, *computed, *retrievers, said))


def _said_without_submission(session: Session, benchmark_version_id: int) -> str:
    """A hash of what can be edited of the runs that no submission dates: those that a command measured here.

    Reported rows have no submission either, but cannot be edited.
    """
    query = (
        select(
            col(Run.id),
            col(Run.retriever_id),
            col(Run.method),
            col(Run.contract),
            col(Run.trained_on_benchmark),
            col(Run.link),
            col(Run.licence),
        )
        .join(Submission, col(Submission.run_id) == col(Run.id), isouter=True)
        .where(
            col(Run.benchmark_version_id) == benchmark_version_id,
            col(Run.state) == State.PUBLISHED.value,
            col(Run.visibility) == Visibility.PUBLIC.value,
            col(Run.provenance) != Provenance.REPORTED.value,
            col(Submission.id).is_(None),
        )
        .order_by(col(Run.id))
    )
    return sha256(repr([tuple(row) for row in session.execute(query)]).encode()).hexdigest()[:16]


def library_stamp(session: Session) -> str:
    """A text that changes when a benchmark version is added, filled with content, or gets or loses a run."""
    versions = session.execute(
        select(func.count(), func.max(col(BenchmarkVersion.created_at)), func.count(col(BenchmarkVersion.content_hash)))
    ).one()
    runs = session.execute(
        select(func.count()).where(
            col(Run.state) == State.PUBLISHED.value, col(Run.visibility) == Visibility.PUBLIC.value
        )
    ).one()
    return "|".join(str(value) for value in (*versions, *runs))


def runs_stamp(session: Session) -> str:
    """A text that changes when a run lands, is published, hidden or withdrawn, on any board, or gets statistics."""
    runs = session.execute(
        select(
            func.count(),
            func.max(col(Run.created_at)),
            func.max(col(Run.published_at)),
            func.max(col(Run.withdrawn_at)),
            func.count(col(Run.private_token)),
            func.count(col(Run.statistics_at)),
        )
    ).one()
    states = session.execute(
        select(col(Run.state), col(Run.visibility), func.count())
        .group_by(col(Run.state), col(Run.visibility))
        .order_by(col(Run.state), col(Run.visibility))
    ).all()
    return "|".join(str(value) for value in (*runs, *(part for row in states for part in row)))
