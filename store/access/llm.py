"""Answers of language models, the calls for them and what they cost."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import bindparam, case, delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, col

from store.database import exclusive
from store.llm_models import LlmAnswer, LlmCall, LlmScope
from store.models import utc_now

#: SQLite takes at most 32,766 parameters in a statement.
_KEYS_AT_ONCE = 10_000
_ROWS_AT_ONCE = 1_000


@dataclass(frozen=True)
class AnswerRecord:
    """A stored answer or failure; see ``LlmAnswer``."""

    key: str
    state: str
    value: str | None
    reason: str
    model: str
    prompt: str
    purpose: str
    attempts: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    seconds: float


@dataclass(frozen=True)
class NewCall:
    """A call about to be made; see ``LlmCall``."""

    id: str
    key: str
    purpose: str
    model: str
    attempt: int
    reserved_nano: int | None


@dataclass(frozen=True)
class CallEnd:
    """How a call ended; ``cost_nano`` is None when its price is unknown."""

    id: str
    state: str
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    cost_nano: int | None
    seconds: float


@dataclass(frozen=True)
class SpentRecord:
    """What a scope has spent; see ``LlmScope``."""

    calls: int = 0
    spent_nano: int = 0
    unpriced: int = 0


@dataclass(frozen=True)
class UsageRecord:
    """Use of one purpose with one model; ``cost`` is None when the price of any call is unknown."""

    purpose: str
    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    seconds: float
    unfinished: int
    refused: int
    lost: int


_ANSWER_COLUMNS = tuple(field.name for field in fields(AnswerRecord))
_END_COLUMNS = ("state", "prompt_tokens", "completion_tokens", "cost", "seconds")


def answers(session: Session, keys: Collection[str]) -> list[AnswerRecord]:
    """What is stored of these keys, in no order."""
    table = LlmAnswer.__table__  # type: ignore[attr-defined]
    wanted = list(dict.fromkeys(keys))
    found: list[AnswerRecord] = []
    for start in range(0, len(wanted), _KEYS_AT_ONCE):
        chunk = wanted[start : start + _KEYS_AT_ONCE]
        query = select(*(table.c[name] for name in _ANSWER_COLUMNS)).where(table.c.key.in_(chunk))
        found += [AnswerRecord(*row) for row in session.execute(query)]
    return found


def reserve(
    session: Session, scope: str, calls: Sequence[NewCall], *, max_nano: int | None = None, max_calls: int | None = None
) -> int:
    """Record calls as sent, in order, as long as the scope stays within its limits when each costs its worst.

    Returns:
        How many were recorded. Without a limit in money, calls with an unknown price are recorded too; with one,
        they are not.
    """
    exclusive(session, f"llm scope {scope}")
    spent = spent_of(session, scope)
    total, count, unpriced = spent.spent_nano, spent.calls, spent.unpriced
    accepted: list[NewCall] = []
    for call in calls:
        if max_calls is not None and count + 1 > max_calls:
            break
        if max_nano is not None and (call.reserved_nano is None or total + call.reserved_nano > max_nano):
            break
        count += 1
        total += call.reserved_nano or 0
        unpriced += call.reserved_nano is None
        accepted.append(call)
    if accepted:
        _insert_new(session, LlmCall, [_call_row(scope, call) for call in accepted])
        _set_spent(session, scope, SpentRecord(count, total, unpriced))
    return len(accepted)


def settle(session: Session, scope: str, ends: Sequence[CallEnd]) -> None:
    """Record how calls ended: the scope gets back what they did not cost. A call that ended is not ended again."""
    if not ends:
        return
    exclusive(session, f"llm scope {scope}")
    by_id = {end.id: end for end in ends}
    query = select(col(LlmCall.id), col(LlmCall.reserved_nano)).where(
        col(LlmCall.id).in_(by_id), col(LlmCall.scope) == scope, col(LlmCall.state) == "sent"
    )
    reserved: dict[str, int | None] = {row[0]: row[1] for row in session.execute(query)}
    if not reserved:
        return
    table = LlmCall.__table__  # type: ignore[attr-defined]
    # On the connection: an update of many rows by a condition of our own is not what the session's one is for.
    session.connection().execute(
        update(table)
        .where(table.c.id == bindparam("call_id"))
        .values({name: bindparam(f"new_{name}") for name in _END_COLUMNS}),
        [
            {"call_id": end.id} | {f"new_{name}": getattr(end, name) for name in _END_COLUMNS}
            for end in by_id.values()
            if end.id in reserved
        ],
    )
    spent = spent_of(session, scope)
    total, unpriced = spent.spent_nano, spent.unpriced
    for call_id, before in reserved.items():
        after = by_id[call_id].cost_nano
        total += (after or 0) - (before or 0)
        unpriced += (after is None) - (before is None)
    _set_spent(session, scope, SpentRecord(spent.calls, total, unpriced))


def add_ended(session: Session, scope: str, calls: Sequence[tuple[NewCall, CallEnd]]) -> int:
    """Record calls that were made elsewhere, each once by its id; returns how many were new."""
    if not calls:
        return 0
    exclusive(session, f"llm scope {scope}")
    ids = [call.id for call, _ in calls]
    known = set(session.scalars(select(col(LlmCall.id)).where(col(LlmCall.id).in_(ids))))
    new = [(call, end) for call, end in calls if call.id not in known]
    _insert_new(
        session,
        LlmCall,
        [_call_row(scope, call) | {name: getattr(end, name) for name in _END_COLUMNS} for call, end in new],
    )
    spent = spent_of(session, scope)
    if new:
        _set_spent(
            session,
            scope,
            SpentRecord(
                spent.calls + len(new),
                spent.spent_nano + sum(end.cost_nano or 0 for _, end in new),
                spent.unpriced + sum(end.cost_nano is None for _, end in new),
            ),
        )
    return len(new)


def put_answers(session: Session, records: Sequence[AnswerRecord]) -> None:
    """Keep answers and failures: the first answer of a key stays, a failure gives way to an answer."""
    if not records:
        return
    now = utc_now()
    table = LlmAnswer.__table__  # type: ignore[attr-defined]
    statement = _insert(session)(table)
    changed = {name: statement.excluded[name] for name in (*_ANSWER_COLUMNS[1:], "created_at")}
    # By key: two writers of the same answers must not wait for each other in a circle.
    rows = [
        {name: getattr(item, name) for name in _ANSWER_COLUMNS} | {"created_at": now}
        for item in sorted(records, key=lambda item: item.key)
    ]
    session.execute(
        statement.on_conflict_do_update(index_elements=["key"], set_=changed, where=table.c.state == "failure"), rows
    )


def forget_failures(session: Session, purpose: str | None = None, *, keys: Collection[str] | None = None) -> int:
    """Take recorded failures away, so that those questions are asked again; returns how many.

    Args:
        session: of ``Database.session``.
        purpose: only those of this purpose.
        keys: only those of these questions.
    """
    statement = delete(LlmAnswer).where(col(LlmAnswer.state) == "failure")
    if purpose is not None:
        statement = statement.where(col(LlmAnswer.purpose) == purpose)
    if keys is None:
        return int(session.execute(statement).rowcount)  # type: ignore[attr-defined]
    wanted, forgotten = sorted(set(keys)), 0
    for start in range(0, len(wanted), _KEYS_AT_ONCE):
        some = statement.where(col(LlmAnswer.key).in_(wanted[start : start + _KEYS_AT_ONCE]))
        forgotten += int(session.execute(some).rowcount)  # type: ignore[attr-defined]
    return forgotten


def spent_of(session: Session, scope: str) -> SpentRecord:
    """What the scope has spent so far; nothing when it is unknown."""
    row = session.execute(
        select(col(LlmScope.calls), col(LlmScope.spent_nano), col(LlmScope.unpriced)).where(
            col(LlmScope.scope) == scope
        )
    ).first()
    return SpentRecord(*row) if row else SpentRecord()


def usage(session: Session, scope: str | None = None) -> list[UsageRecord]:
    """Use by purpose and model, sorted; of everything when no scope is named. Calls without a known end count."""
    state, cost, reserved = col(LlmCall.state), col(LlmCall.cost), col(LlmCall.reserved_nano)
    # A call without an end counts at its worst.
    known = case((state == "sent", reserved / 1e9), else_=cost)
    query = select(
        col(LlmCall.purpose),
        col(LlmCall.model),
        func.count(),
        func.sum(col(LlmCall.prompt_tokens)),
        func.sum(col(LlmCall.completion_tokens)),
        case((func.count() > func.count(known), None), else_=func.sum(known)),
        func.sum(col(LlmCall.seconds)),
        *(func.sum(case((state == name, 1), else_=0)) for name in ("sent", "refused", "lost")),
    ).group_by(col(LlmCall.purpose), col(LlmCall.model))
    if scope is not None:
        query = query.where(col(LlmCall.scope) == scope)
    rows = session.execute(query.order_by(col(LlmCall.purpose), col(LlmCall.model)))
    return [UsageRecord(*row) for row in rows]


def _call_row(scope: str, call: NewCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "scope": scope,
        "key": call.key,
        "purpose": call.purpose,
        "model": call.model,
        "attempt": call.attempt,
        "state": "sent",
        "reserved_nano": call.reserved_nano,
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "cost": None,
        "seconds": 0.0,
        "sent_at": utc_now(),
    }


def _insert(session: Session) -> Any:
    return postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert


def _insert_new(session: Session, model: type[LlmCall], rows: Sequence[Mapping[str, Any]]) -> None:
    table = model.__table__  # type: ignore[attr-defined]
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        session.execute(_insert(session)(table).on_conflict_do_nothing(), list(rows[start : start + _ROWS_AT_ONCE]))


def _set_spent(session: Session, scope: str, spent: SpentRecord) -> None:
    table = LlmScope.__table__  # type: ignore[attr-defined]
    values = {"calls": spent.calls, "spent_nano": spent.spent_nano, "unpriced": spent.unpriced}
    statement = _insert(session)(table).values(scope=scope, **values)
    session.execute(statement.on_conflict_do_update(index_elements=["scope"], set_=values))
