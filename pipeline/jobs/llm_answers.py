"""The answer cache and the ledger of calls in the site's database, and askers over them."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import TypeVar

from pipeline.llm.client import LiveAsker
from pipeline.llm.config import AskingConfig, ProviderLimit, parse_limits
from pipeline.llm.prices import parse_prices
from pipeline.llm.records import Usage
from pipeline.llm.stores import NANO, Budget, EndedCall, MeterLine, PlannedCall, Spent, StoredOutcome
from store.access import llm
from store.database import Database
from store.settings import Settings

N = TypeVar("N", int, float)


class StoredAnswers:
    """An ``AnswerStore`` over the database."""

    def __init__(self, database: Database) -> None:
        """Nothing is read yet."""
        self._database = database

    def outcomes(self, keys: Collection[str]) -> dict[str, StoredOutcome]:
        """See ``AnswerStore``."""
        with self._database.reading() as session:
            return {row.key: _outcome(row) for row in llm.answers(session, keys)}

    def record(
        self,
        budget: Budget,
        *,
        ended: Sequence[EndedCall] = (),
        outcomes: Sequence[StoredOutcome] = (),
        planned: Sequence[PlannedCall] = (),
    ) -> int:
        """See ``AnswerStore``."""
        with self._database.session() as session:
            llm.settle(session, budget.scope, [_end(end) for end in ended])
            llm.put_answers(session, [_row(outcome) for outcome in outcomes])
            if not planned:
                return 0
            calls = [_call(call) for call in planned]
            return llm.reserve(session, budget.scope, calls, max_nano=budget.max_nano, max_calls=budget.max_calls)

    def record_batch(
        self, calls: Sequence[tuple[PlannedCall, EndedCall]], outcomes: Sequence[StoredOutcome], budget: Budget
    ) -> None:
        """See ``AnswerStore``."""
        with self._database.session() as session:
            llm.add_ended(session, budget.scope, [(_call(call), _end(end)) for call, end in calls])
            llm.put_answers(session, [_row(outcome) for outcome in outcomes])

    def spent(self, scope: str) -> Spent:
        """See ``AnswerStore``."""
        with self._database.reading() as session:
            row = llm.spent_of(session, scope)
        return Spent(row.calls, row.spent_nano / NANO, row.unpriced)

    def meter(self, scope: str | None = None) -> list[MeterLine]:
        """See ``AnswerStore``."""
        with self._database.reading() as session:
            rows = llm.usage(session, scope)
        return [
            MeterLine(
                row.purpose,
                row.model,
                Usage(row.calls, row.prompt_tokens, row.completion_tokens, row.cost, row.seconds),
                row.unfinished,
                row.refused,
                row.lost,
            )
            for row in rows
        ]


def asking_config(settings: Settings) -> AskingConfig:
    """How this site asks models.

    Raises:
        JudgeError: limits or prices are written in another way than theirs.
    """
    return AskingConfig(
        base_url=settings.llm_base_url,
        api_key=settings.llm_api_key.get_secret_value(),
        limit=ProviderLimit(settings.llm_concurrency, settings.llm_requests_per_minute),
        limits=parse_limits(settings.llm_limits),
        connect_seconds=settings.llm_connect_seconds,
        read_seconds=settings.llm_read_seconds,
        call_seconds=settings.llm_call_seconds,
        attempts=settings.llm_attempts,
        retries=settings.llm_retries,
        prices=parse_prices(settings.llm_prices),
    )


def site_budget(
    settings: Settings, scope: str, *, max_cost: float | None = None, max_calls: int | None = None
) -> Budget:
    """A budget for one piece of work: what is asked for, within what the operator allows."""
    return Budget(
        scope,
        _least(max_cost, settings.llm_budget_dollars or None),
        _least(max_calls, settings.llm_budget_calls or None),
    )


def live_asker(
    settings: Settings,
    database: Database,
    budget: Budget,
    *,
    retry_failed: bool = False,
) -> LiveAsker:
    """An asker over the site's cache, set up as the site's settings say.

    Raises:
        JudgeError: a setting cannot be used.
    """
    return LiveAsker(StoredAnswers(database), asking_config(settings), budget, retry_failed=retry_failed)


def _least(wanted: N | None, allowed: N | None) -> N | None:
    if wanted is None or allowed is None:
        return wanted if allowed is None else allowed
    return min(wanted, allowed)


def _outcome(row: llm.AnswerRecord) -> StoredOutcome:
    usage = Usage(row.attempts, row.prompt_tokens, row.completion_tokens, row.cost, row.seconds)
    value = None if row.value is None else json.loads(row.value)
    return StoredOutcome(row.key, value, row.reason, row.model, row.prompt, row.purpose, row.attempts, usage)


def _row(outcome: StoredOutcome) -> llm.AnswerRecord:
    usage = outcome.usage
    return llm.AnswerRecord(
        outcome.key,
        "failure" if outcome.value is None else "answer",
        # ASCII: PostgreSQL takes neither NUL nor halves of surrogate pairs in a text.
        None if outcome.value is None else json.dumps(outcome.value, separators=(",", ":")),
        outcome.reason,
        outcome.model,
        outcome.prompt,
        outcome.purpose,
        outcome.attempts,
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.cost,
        usage.seconds,
    )


def _call(call: PlannedCall) -> llm.NewCall:
    return llm.NewCall(call.id, call.key, call.purpose, call.model, call.attempt, call.worst_nano)


def _end(end: EndedCall) -> llm.CallEnd:
    nano = None if end.cost is None else round(end.cost * NANO)
    return llm.CallEnd(end.id, end.state.value, end.prompt_tokens, end.completion_tokens, end.cost, nano, end.seconds)
