"""Ask live models: from the cache what is known, the rest over the network, within a budget."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import wait

from pipeline.errors import BudgetExceeded, JudgeError
from pipeline.llm.answer_text import check_schema
from pipeline.llm.cached import distinct, in_order, look_up
from pipeline.llm.config import AskingConfig
from pipeline.llm.conversation import Asking, ask_model
from pipeline.llm.event_loop import asking_loop
from pipeline.llm.ledger import Ledger
from pipeline.llm.prices import price_of
from pipeline.llm.providers import provider_of
from pipeline.llm.records import Check, Outcome, Question, Tell
from pipeline.llm.stores import AnswerStore, Budget
from pipeline.llm.transport import prepare, require_bound

#: Questions looked up once more just before they are sent: another process may have asked them meanwhile.
_WINDOW = 128
#: Between two looks at whether the work is done or to be stopped.
_LOOK_SECONDS = 0.2


class LiveAsker:
    """An ``Asker`` over any model that litellm knows; safe to use from several threads.

    Args:
        store: the answer cache with the ledger of calls.
        config: where and how models are asked.
        budget: the most that this piece of work may use; its scope names the work.
        retry_failed: ask questions again that are recorded as failed.
    """

    def __init__(
        self,
        store: AnswerStore,
        config: AskingConfig | None = None,
        budget: Budget | None = None,
        *,
        retry_failed: bool = False,
    ) -> None:
        """Nothing is imported or sent yet."""
        self._store = store
        self._config = config or AskingConfig()
        self._budget = budget or Budget("unlimited")
        self._retry_failed = retry_failed

    def ask(
        self, questions: Sequence[Question], *, check: Check | None = None, tell: Tell | None = None
    ) -> list[Outcome]:
        """See ``Asker``.

        Every answer is committed as it arrives. ``check`` is called on the thread that asks: it should be quick.

        Raises:
            BudgetExceeded: the next call could exceed the budget; calls in flight have ended and are kept.
            JudgeError: a model cannot be asked: unknown, no key, no price under a budget in money, or no reply to
                many questions in a row. What was answered is kept.
        """
        unique = distinct(questions)
        outcomes: dict[str, Outcome] = {}
        rest: list[Question] = []
        for question, known in look_up(self._store, unique.values(), check, retry_failed=self._retry_failed):
            if known is None:
                rest.append(question)
            else:
                outcomes[question.key] = known
        if rest:
            self._require(rest)
            _Work(self, rest, check, outcomes, len(unique)).run(tell)
        return in_order(questions, outcomes)

    def _require(self, questions: Sequence[Question]) -> None:
        """Refuse what can never be answered before anything is sent."""
        for schema in {question.schema_name: question.schema for question in questions}.values():
            check_schema(schema)
        models = sorted({question.model for question in questions})
        unpriced = [model for model in models if price_of(model, self._config.prices) is None]
        if unpriced and self._budget.max_cost is not None:
            raise JudgeError(
                f"a budget in money cannot be kept: nobody states a price for {', '.join(unpriced)}. Set it with "
                f"EQUIRANK_LLM_PRICES={unpriced[0]}=PROMPT/COMPLETION (dollars a million tokens; 0/0 if it costs "
                "nothing), or limit the number of calls instead"
            )
        for model in models:
            prepare(model, self._config)
            if self._budget.max_cost is not None:
                require_bound(model)


class _Work:
    """One call of ``ask``: workers take questions in order until all are done or something stops them."""

    def __init__(
        self, asker: LiveAsker, questions: list[Question], check: Check | None, outcomes: dict[str, Outcome], total: int
    ) -> None:
        self._asker, self._questions, self._check = asker, questions, check
        self._outcomes, self._total = outcomes, total
        self._position = 0
        self._window: list[Question] = []
        self._stopped = False

    def run(self, tell: Tell | None) -> None:
        """Do the work; an interrupt, or what ``tell`` raises, lets calls in flight end, a second one does not."""
        loop = asking_loop()
        future = asyncio.run_coroutine_threadsafe(self._all(), loop)
        try:
            # In short waits: not every system wakes a waiting main thread for a signal.
            while not wait([future], timeout=_LOOK_SECONDS).done:
                if tell is not None:
                    tell(len(self._outcomes))
        except BaseException:
            self._stopped = True
            try:
                while not wait([future], timeout=_LOOK_SECONDS).done:
                    pass
            except KeyboardInterrupt:
                future.cancel()
            raise
        future.result()

    async def _all(self) -> None:
        asker = self._asker
        config, budget = asker._config, asker._budget
        self._lock = asyncio.Lock()
        self._asking = Asking(asker._store, config, Ledger(asker._store, budget), self._check, asker._retry_failed)
        providers = {provider_of(question.model) for question in self._questions}
        workers = min(len(self._questions), sum(config.limit_of(name).concurrency for name in providers))
        ends = await asyncio.gather(*(self._worker() for _ in range(workers)), return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException):
                raise end
        if self._asking.over_budget:
            raise BudgetExceeded(self._budget_message())

    async def _worker(self) -> None:
        try:
            while not self._stopped and not self._asking.over_budget:
                question = await self._next()
                if question is None:
                    return
                outcome = await ask_model(question, self._asking)
                if outcome is None:
                    return
                self._done(question, outcome)
        except BaseException:
            self._stopped = True
            raise

    async def _next(self) -> Question | None:
        async with self._lock:
            while not self._window:
                chunk = self._questions[self._position : self._position + _WINDOW]
                if not chunk:
                    return None
                self._position += len(chunk)
                if self._position <= _WINDOW:
                    self._window = chunk[::-1]  # looked up a moment ago
                    break
                found = await asyncio.to_thread(self._look_up, chunk)
                for question, known in found:
                    if known is None:
                        self._window.append(question)
                    else:
                        self._done(question, known)
                self._window.reverse()
            return self._window.pop()

    def _look_up(self, questions: Sequence[Question]) -> list[tuple[Question, Outcome | None]]:
        asker = self._asker
        return list(look_up(asker._store, questions, self._check, retry_failed=asker._retry_failed))

    def _done(self, question: Question, outcome: Outcome) -> None:
        self._outcomes[question.key] = outcome

    def _budget_message(self) -> str:
        budget = self._asker._budget
        spent = self._asker._store.spent(budget.scope)
        limits = [f"${budget.max_cost:,.4f}"] if budget.max_cost is not None else []
        limits += [f"{budget.max_calls:,} calls"] if budget.max_calls is not None else []
        return (
            f"the next call could exceed the budget of {' and '.join(limits)}: {spent.calls:,} calls used "
            f"${spent.cost:,.4f}. {len(self._outcomes):,} of {self._total:,} questions are done and kept; raise the "
            "budget and start again to go on"
        )
