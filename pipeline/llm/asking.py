"""Put many questions to a language model, in parts, and add up what that used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipeline.llm.records import Asker, Check, Outcome, Pending, Question, Usage
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback, Stage

#: Questions handed over at once: enough to keep every connection busy.
PART = 256


def ask_all(
    asker: Asker,
    questions: Sequence[Question],
    *,
    stage: str,
    check: Check | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> list[Outcome]:
    """One outcome a question, in their order.

    Args:
        asker: who answers.
        questions: what to ask.
        stage: the name that progress is reported under, in questions.
        check: see ``Asker.ask``.
        progress: see ``Progress``.
        cancelled: asked several times a second; calls in flight end first, and what was answered stays in the cache.

    Raises:
        BudgetExceeded: before a call that could exceed the budget.
        Cancelled: on request.
        JudgeError: the model cannot be asked at all.
    """
    counter = Stage(stage, len(questions), progress, cancelled)
    outcomes: list[Outcome] = []
    for start in range(0, len(questions), PART):
        part = questions[start : start + PART]
        outcomes += asker.ask(part, check=check, tell=counter.look)
        counter.advance(len(part))
    return outcomes


def pending_count(outcomes: Iterable[Outcome]) -> int:
    """How many distinct questions wait for a batch's answers."""
    return len({outcome.key for outcome in outcomes if isinstance(outcome, Pending)})


def usage_of(outcome: Outcome) -> Usage:
    """What the outcome used; nothing when it is still to come."""
    return Usage() if isinstance(outcome, Pending) else outcome.usage


def total_usage(usages: Iterable[Usage]) -> Usage:
    """The sum; its cost is None as soon as one is."""
    calls = prompt = completion = 0
    cost: float | None = 0.0
    seconds = 0.0
    for usage in usages:
        calls += usage.calls
        prompt += usage.prompt_tokens
        completion += usage.completion_tokens
        cost = None if cost is None or usage.cost is None else cost + usage.cost
        seconds += usage.seconds
    return Usage(calls, prompt, completion, cost, seconds)
