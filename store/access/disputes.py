"""Disputed verdicts: somebody says that one is wrong, a keeper decides. No stored version ever changes by it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlmodel import Session, col

from store.access.texts import has_unseen
from store.database import exclusive
from store.errors import Conflict, InvalidRecord, NotFound
from store.models import BenchmarkVersion, utc_now
from store.records import record
from store.validation_models import Dispute, DisputeState

#: Disputes of one query that wait at a time: one visitor cannot use up the day's limit at one place.
MOST_OPEN_OF_QUERY = 20
LONGEST_REASON = 1_000
LONGEST_NAME = 100


@dataclass(frozen=True)
class DisputeRecord:
    """One dispute; see ``store.validation_models.Dispute``."""

    id: str
    benchmark_version_id: int
    query_id: str
    subject: str
    position: int | None
    tool_ids: tuple[str, ...]
    claimed_valid: bool
    reason: str
    person: str
    state: str
    resolution: str
    resolved_by: str
    created_at: datetime
    resolved_at: datetime | None


def open_dispute(session: Session, dispute: Dispute, *, limit: int) -> DisputeRecord:
    """Store a dispute.

    Args:
        session: of ``Database.session``.
        dispute: a new row; its texts are made one line.
        limit: disputes that the site takes in 24 hours.

    Raises:
        NotFound: the benchmark version is not stored.
        InvalidRecord: a text is missing, too long or has invisible characters.
        Conflict: the same verdict is disputed and not decided yet, too many of its query are, or the limit is reached.
    """
    if session.get(BenchmarkVersion, dispute.benchmark_version_id) is None:
        raise NotFound(f"no benchmark version has the id {dispute.benchmark_version_id}")
    dispute.reason = _text("reason", dispute.reason, LONGEST_REASON)
    dispute.person = _text("name", dispute.person, LONGEST_NAME, empty=True)
    exclusive(session, "disputes")
    since = utc_now() - timedelta(days=1)
    lately = session.scalar(select(func.count()).select_from(Dispute).where(col(Dispute.created_at) > since)) or 0
    if lately >= limit:
        raise Conflict(
            f"{lately} verdicts were disputed in the last 24 hours; the limit is {limit} "
            "(EQUIRANK_LIMIT_DISPUTES_PER_DAY). Try again later"
        )
    waiting = list_disputes(
        session, dispute.benchmark_version_id, query_id=dispute.query_id, states=[DisputeState.OPEN]
    )
    for other in waiting:
        same = (other.subject, other.position) == (dispute.subject, dispute.position)
        if same and set(other.tool_ids) == set(dispute.tool_ids):
            raise Conflict("this verdict is disputed already, and waits for the keeper's decision")
    if len(waiting) >= MOST_OPEN_OF_QUERY:
        raise Conflict(
            f"{len(waiting)} verdicts on this query are disputed and wait for the keeper's decision; that is the most "
            "at a time. Try again once some are decided"
        )
    session.add(dispute)
    session.flush()
    return record(DisputeRecord, dispute)


def resolve(session: Session, dispute_id: str, *, upheld: bool, words: str, by: str) -> DisputeRecord:
    """Decide a dispute, or decide it anew.

    Args:
        session: of ``Database.session``.
        dispute_id: of the dispute.
        upheld: whether the verdict was wrong.
        words: why.
        by: who decides.

    Raises:
        NotFound: there is no such dispute.
        InvalidRecord: the words are missing, too long or have invisible characters.
    """
    row = session.get(Dispute, dispute_id, with_for_update=True)
    if row is None:
        raise NotFound(f"no dispute has the id {dispute_id!r}: `equirank dispute list` names them")
    row.resolution = _text("decision", words, LONGEST_REASON)
    row.resolved_by = _text("name", by, LONGEST_NAME, empty=True)
    row.state = (DisputeState.UPHELD if upheld else DisputeState.REJECTED).value
    row.resolved_at = utc_now()
    session.flush()
    return record(DisputeRecord, row)


def list_disputes(
    session: Session,
    benchmark_version_id: int | None = None,
    *,
    query_id: str | None = None,
    states: Collection[DisputeState] | None = None,
) -> list[DisputeRecord]:
    """Disputes, those that wait for a decision first, then the newest.

    Args:
        session: of ``Database.reading`` or ``session``.
        benchmark_version_id: only on verdicts of this version.
        query_id: only on verdicts of this query.
        states: only in these states.
    """
    query = select(Dispute)
    if benchmark_version_id is not None:
        query = query.where(col(Dispute.benchmark_version_id) == benchmark_version_id)
    if query_id is not None:
        query = query.where(col(Dispute.query_id) == query_id)
    if states is not None:
        query = query.where(col(Dispute.state).in_([DisputeState(state).value for state in states]))
    query = query.order_by(
        col(Dispute.state) != DisputeState.OPEN.value, col(Dispute.created_at).desc(), col(Dispute.id)
    )
    return [record(DisputeRecord, row) for row in session.scalars(query)]


def _text(what: str, value: str, longest: int, *, empty: bool = False) -> str:
    shown = " ".join(value.split())
    if not (shown or empty) or len(shown) > longest or has_unseen(shown):
        least = 0 if empty else 1
        raise InvalidRecord(f"the {what} is {least} to {longest} characters, without control or invisible characters")
    return shown
