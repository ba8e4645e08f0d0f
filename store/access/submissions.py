"""Submitted files and what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import func, select
from sqlmodel import Session, col

from store.errors import Conflict, NotFound
from store.models import Submission, SubmissionState, utc_now
from store.records import SubmissionRecord, record


def add(session: Session, submission: Submission) -> SubmissionRecord:
    """Store a submission that has no run (yet): received, validated, refused or failed."""
    session.add(submission)
    session.flush()
    return record(SubmissionRecord, submission)


def update(
    session: Session,
    submission_id: int,
    *,
    state: SubmissionState | None = None,
    report: Mapping[str, Any] | None = None,
    last_error: str | None = None,
) -> SubmissionRecord:
    """Note how a submission goes on; None leaves a field as it is.

    Raises:
        NotFound: there is no such submission.
    """
    row = session.get(Submission, submission_id, with_for_update=True)
    if row is None:
        raise NotFound(f"no submission has the id {submission_id}")
    if state is not None:
        row.state = SubmissionState(state).value
    if report is not None:
        row.report = dict(report)
    if last_error is not None:
        row.last_error = last_error
    row.updated_at = utc_now()
    session.flush()
    return record(SubmissionRecord, row)


def of_run(session: Session, run_id: str) -> SubmissionRecord | None:
    """The submission that became this run, None for reported and measured runs."""
    row = session.scalars(select(Submission).where(col(Submission.run_id) == run_id)).first()
    return None if row is None else record(SubmissionRecord, row)


def list_of(session: Session, person: str, *, limit: int = 200) -> list[SubmissionRecord]:
    """A person's submissions, newest first."""
    query = (
        select(Submission)
        .where(col(Submission.person) == person)
        .order_by(col(Submission.created_at).desc(), col(Submission.id).desc())
        .limit(limit)
    )
    return [record(SubmissionRecord, row) for row in session.scalars(query)]


def check_daily_limit(session: Session, person: str, limit: int) -> None:
    """Refuse a person's next submission when they made ``limit`` in the last 24 hours.

    Raises:
        Conflict: the limit is reached; the message states it.
    """
    since = utc_now() - timedelta(days=1)
    query = select(func.count()).select_from(Submission)
    made = session.scalar(query.where(col(Submission.person) == person, col(Submission.created_at) > since)) or 0
    if made >= limit:
        raise Conflict(
            f"{made} submissions in the last 24 hours; the limit is {limit} "
            "(EQUIRANK_LIMIT_SUBMISSIONS_PER_DAY). Try again later"
        )
