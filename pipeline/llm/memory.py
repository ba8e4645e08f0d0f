"""Answers and calls kept in memory: for work without a database, and for tests."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Sequence

from pipeline.llm.records import Usage
from pipeline.llm.stores import NANO, Budget, CallState, EndedCall, MeterLine, PlannedCall, Spent, StoredOutcome


class MemoryAnswers:
    """An ``AnswerStore`` that ends with the process."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._lock = threading.Lock()
        self._outcomes: dict[str, StoredOutcome] = {}
        self._calls: dict[str, tuple[str, PlannedCall, EndedCall | None]] = {}
        self._count: Counter[str] = Counter()
        self._nano: Counter[str] = Counter()

    def outcomes(self, keys: Collection[str]) -> dict[str, StoredOutcome]:
        """See ``AnswerStore``."""
        with self._lock:
            return {key: self._outcomes[key] for key in keys if key in self._outcomes}

    def record(
        self,
        budget: Budget,
        *,
        ended: Sequence[EndedCall] = (),
        outcomes: Sequence[StoredOutcome] = (),
        planned: Sequence[PlannedCall] = (),
    ) -> int:
        """See ``AnswerStore``."""
        with self._lock:
            for end in ended:
                scope, call, before = self._calls[end.id]
                if before is None:
                    self._nano[scope] += _nano(call, end) - _nano(call, None)
                    self._calls[end.id] = (scope, call, end)
            self._keep(outcomes)
            scope = budget.scope
            for done, call in enumerate(planned):
                if budget.max_calls is not None and self._count[scope] + 1 > budget.max_calls:
                    return done
                if budget.max_nano is not None and (
                    call.worst_nano is None or self._nano[scope] + call.worst_nano > budget.max_nano
                ):
                    return done
                self._add(scope, call, None)
        return len(planned)

    def record_batch(
        self, calls: Sequence[tuple[PlannedCall, EndedCall]], outcomes: Sequence[StoredOutcome], budget: Budget
    ) -> None:
        """See ``AnswerStore``."""
        with self._lock:
            for call, end in calls:
                if call.id not in self._calls:
                    self._add(budget.scope, call, end)
            self._keep(outcomes)

    def spent(self, scope: str) -> Spent:
        """See ``AnswerStore``."""
        with self._lock:
            mine = [(call, end) for owner, call, end in self._calls.values() if owner == scope]
            unpriced = sum(_cost(call, end) is None for call, end in mine)
            return Spent(len(mine), self._nano[scope] / NANO, unpriced)

    def meter(self, scope: str | None = None) -> list[MeterLine]:
        """See ``AnswerStore``."""
        with self._lock:
            mine = [(call, end) for owner, call, end in self._calls.values() if scope in {None, owner}]
        groups: dict[tuple[str, str], list[tuple[PlannedCall, EndedCall | None]]] = {}
        for call, end in mine:
            groups.setdefault((call.purpose, call.model), []).append((call, end))
        lines = []
        for (purpose, model), group in sorted(groups.items()):
            ends = [end for _, end in group if end is not None]
            costs = [_cost(call, end) for call, end in group]
            known = [cost for cost in costs if cost is not None]
            usage = Usage(
                len(group),
                sum(end.prompt_tokens for end in ends),
                sum(end.completion_tokens for end in ends),
                sum(known) if len(known) == len(costs) else None,
                sum(end.seconds for end in ends),
            )
            states = [end.state for end in ends]
            counts = states.count(CallState.REFUSED), states.count(CallState.LOST)
            lines.append(MeterLine(purpose, model, usage, len(group) - len(ends), *counts))
        return lines

    def _keep(self, outcomes: Sequence[StoredOutcome]) -> None:
        for outcome in outcomes:
            known = self._outcomes.get(outcome.key)
            if known is None or known.value is None:
                self._outcomes[outcome.key] = outcome

    def _add(self, scope: str, call: PlannedCall, end: EndedCall | None) -> None:
        self._calls[call.id] = (scope, call, end)
        self._count[scope] += 1
        self._nano[scope] += _nano(call, end)


def _cost(call: PlannedCall, end: EndedCall | None) -> float | None:
    if end is not None:
        return end.cost
    return None if call.worst_nano is None else call.worst_nano / NANO


def _nano(call: PlannedCall, end: EndedCall | None) -> int:
    return round((_cost(call, end) or 0.0) * NANO)
