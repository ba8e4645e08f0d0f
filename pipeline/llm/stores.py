"""What answers and calls are kept in: implemented over SQL by ``pipeline.jobs``, in memory by ``memory``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from pipeline.errors import UsageError
from pipeline.llm.records import Usage

#: Money is counted in billionths of a US dollar: sums are exact and come out the same on every database.
NANO = 1_000_000_000
#: More than anybody spends, and few enough billionths for a database's integer.
_MOST_DOLLARS = 1e9


class CallState(StrEnum):
    """How a call ended; see ``store.llm_models.LlmCall``."""

    SENT = "sent"
    DONE = "done"
    REFUSED = "refused"
    LOST = "lost"
    BATCH = "batch"


@dataclass(frozen=True)
class Budget:
    """The most that a scope may use.

    Attributes:
        scope: what the budget is for, such as a job; calls of an earlier process with the same scope count.
        max_cost: US dollars, None for no limit.
        max_calls: requests, None for no limit.
    """

    scope: str
    max_cost: float | None = None
    max_calls: int | None = None

    def __post_init__(self) -> None:
        """Refuse what is no limit.

        Raises:
            UsageError: the money is negative or no number, or the calls are negative.
        """
        if self.max_cost is not None and not self.max_cost >= 0:
            raise UsageError(f"the budget is {self.max_cost} US dollars: give 0 or more, or none")
        if self.max_calls is not None and self.max_calls < 0:
            raise UsageError(f"the budget is {self.max_calls} calls: give 0 or more, or none")

    @property
    def max_nano(self) -> int | None:
        """The limit in money as the store counts it."""
        return None if self.max_cost is None else int(min(self.max_cost, _MOST_DOLLARS) * NANO)


@dataclass(frozen=True)
class PlannedCall:
    """A request about to be sent.

    Attributes:
        id: unique; an id that is already stored is not counted again.
        worst_nano: the most it can cost, None when its price is unknown.
    """

    id: str
    key: str
    purpose: str
    model: str
    attempt: int
    worst_nano: int | None


@dataclass(frozen=True)
class EndedCall:
    """What became of a request; ``cost`` counts in US dollars, None when its price is unknown."""

    id: str
    state: CallState
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    seconds: float


@dataclass(frozen=True)
class StoredOutcome:
    """An answer or, with ``value`` None, a recorded failure."""

    key: str
    value: Mapping[str, Any] | None
    reason: str
    model: str
    prompt: str
    purpose: str
    attempts: int
    usage: Usage


@dataclass(frozen=True)
class Spent:
    """What a scope has used, calls in flight (and those of processes that died) at their worst.

    Attributes:
        cost: US dollars of the calls with a known price.
        unpriced: calls whose price is unknown.
    """

    calls: int = 0
    cost: float = 0.0
    unpriced: int = 0


@dataclass(frozen=True)
class MeterLine:
    """What one purpose used with one model.

    Attributes:
        usage: over all calls that were sent; ``cost`` is None when a price is unknown.
        unfinished: calls of it whose end is not known: in flight now, or their process died.
        refused: calls of it that the provider turned away (rate limits, faults of the server).
        lost: calls of it that broke off; counted at the most they can have cost.
    """

    purpose: str
    model: str
    usage: Usage
    unfinished: int = 0
    refused: int = 0
    lost: int = 0


class AnswerStore(Protocol):
    """The answer cache with the ledger of calls; safe to use from several threads and processes."""

    def outcomes(self, keys: Collection[str]) -> dict[str, StoredOutcome]:
        """What is known of these questions."""
        ...

    def record(
        self,
        budget: Budget,
        *,
        ended: Sequence[EndedCall] = (),
        outcomes: Sequence[StoredOutcome] = (),
        planned: Sequence[PlannedCall] = (),
    ) -> int:
        """One transaction: ends of calls, then outcomes, then the calls that are about to be sent.

        A call that ended gives back what it did not cost. The first answer of a question stays, a failure gives way
        to an answer. Planned calls are taken in order, as long as the budget allows each at its worst.

        Returns:
            How many planned calls were taken; the first that was not could exceed the budget.
        """
        ...

    def record_batch(
        self, calls: Sequence[tuple[PlannedCall, EndedCall]], outcomes: Sequence[StoredOutcome], budget: Budget
    ) -> None:
        """Record imported calls (each once, by id) and their outcomes in one transaction; budgets do not stop it."""
        ...

    def spent(self, scope: str) -> Spent:
        """What the scope has used so far."""
        ...

    def meter(self, scope: str | None = None) -> list[MeterLine]:
        """Use by purpose and model, sorted; of everything when no scope is named."""
        ...
