"""One question until it has an answer or is recorded as failed: forms, tries, waits."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
from collections.abc import Set
from dataclasses import dataclass, field, replace

from pipeline.errors import JudgeError
from pipeline.llm.answer_text import InvalidAnswer, parsed_answer
from pipeline.llm.cached import stored_outcome
from pipeline.llm.config import AskingConfig
from pipeline.llm.gates import ProviderGate
from pipeline.llm.ledger import Ledger
from pipeline.llm.prices import Price, price_of
from pipeline.llm.providers import provider_of, redacted
from pipeline.llm.records import Answer, Check, Failure, Outcome, Question, Usage
from pipeline.llm.request import AnswerFormat, chat_body
from pipeline.llm.stores import NANO, AnswerStore, CallState, EndedCall, PlannedCall, StoredOutcome
from pipeline.llm.tokens import believable, most_prompt_tokens
from pipeline.llm.transport import CallFailed, Reply, Trouble, call
from pipeline.llm.waiting import wait_seconds

#: Turns by process, provider, address and limits; all on the one loop of the process.
_gates: dict[tuple[object, ...], ProviderGate] = {}
#: Questions that somebody in this process is asking now.
_in_flight: dict[str, asyncio.Future[None]] = {}
_jitter = random.Random()
#: Arguments that a model may refuse and that can be left out.
_OPTIONAL = ("temperature", "top_p", "top_k")


@dataclass
class _Form:
    """How a model takes questions, learned from what it refused."""

    answer_format: AnswerFormat = AnswerFormat.JSON_SCHEMA
    without: frozenset[str] = frozenset()


@dataclass
class Asking:
    """What the workers of one piece of work share.

    Attributes:
        over_budget: the budget has stopped the work.
        silent: questions in a row that failed without any reply.
    """

    store: AnswerStore
    config: AskingConfig
    ledger: Ledger
    check: Check | None
    retry_failed: bool
    over_budget: bool = False
    silent: int = 0
    forms: dict[str, _Form] = field(default_factory=dict)


async def ask_model(question: Question, asking: Asking) -> Outcome | None:
    """The outcome of one question; None when the budget does not allow its next call.

    Raises:
        JudgeError: the model cannot be asked at all.
    """
    key = question.key
    while (other := _in_flight.get(key)) is not None:
        await asyncio.wait({other})
        known = (await asyncio.to_thread(asking.store.outcomes, [key])).get(key)
        found = stored_outcome(question, known, asking.check, retry_failed=asking.retry_failed)
        if found is not None:
            return found
    mine = asyncio.get_running_loop().create_future()
    _in_flight[key] = mine
    try:
        return await _Conversation(question, asking).outcome()
    finally:
        del _in_flight[key]
        mine.set_result(None)


class _Conversation:
    """The calls for one question."""

    def __init__(self, question: Question, asking: Asking) -> None:
        self._question, self._asking = question, asking
        self._config = asking.config
        self._price = price_of(question.model, asking.config.prices)
        self._form = asking.forms.setdefault(question.model, _Form())
        self._most_prompt = most_prompt_tokens(question)
        self._worst = _worst_nano(self._price, self._most_prompt, question.sampling.max_tokens)
        self._used = Usage()
        self._calls = self._invalid = self._failed = self._refused_forms = 0

    async def outcome(self) -> Outcome | None:
        """Call until there is an outcome; see ``ask_model``."""
        gate = _gate(self._question.model, self._config)
        while True:
            planned = PlannedCall(
                secrets.token_hex(12),
                self._question.key,
                self._question.purpose,
                self._question.model,
                self._calls + 1,
                self._worst,
            )
            form = replace(self._form)
            try:
                async with gate.turn():
                    # In the turn, so that only what is about to be sent is recorded as sent.
                    if not await self._asking.ledger.reserve(planned):
                        self._asking.over_budget = True
                        return None
                    body = chat_body(self._question, form.answer_format, form.without)
                    reply = await call(self._question.model, body, self._config)
            except CallFailed as failure:
                result = await self._after_failure(planned, failure, form, gate)
            else:
                result = await self._after_reply(planned, reply, form)
            if result is not None:
                return result

    async def _after_reply(self, planned: PlannedCall, reply: Reply, form: _Form) -> Outcome | None:
        self._asking.silent = 0
        known = self._asking.forms[self._question.model]
        if form.answer_format > known.answer_format:
            known.answer_format = form.answer_format
        end = self._ended(planned, reply)
        self._count(end)
        try:
            if reply.problem:
                raise InvalidAnswer(reply.problem)
            value = parsed_answer(self._question, reply.text, reply.finish_reason, self._asking.check)
        except InvalidAnswer as problem:
            self._invalid += 1
            if self._invalid >= self._config.attempts:
                return await self._fail(end, f"no valid answer in {self._invalid} attempts; the last: {problem}")
            await self._asking.ledger.settle(end)
            return None
        except BaseException:
            await self._asking.ledger.settle(end)
            raise
        question = self._question
        stored = self._stored(value, "")
        await self._asking.ledger.settle(end, stored)
        return Answer(question.key, value, question.model, question.prompt, self._used, self._calls)

    async def _after_failure(
        self, planned: PlannedCall, failure: CallFailed, form: _Form, gate: ProviderGate
    ) -> Outcome | None:
        lost = failure.trouble is Trouble.BROKE_OFF
        cost = self._worst_cost() if lost else 0.0
        end = EndedCall(planned.id, CallState.LOST if lost else CallState.REFUSED, 0, 0, cost, failure.seconds)
        self._count(end)
        if failure.trouble is Trouble.MODEL_REFUSED:
            await self._asking.ledger.settle(end)
            raise JudgeError(
                f"{self._question.model} cannot be asked: {failure.reason}. Check the model's name, the key in the "
                "environment and what it may use"
            )
        if failure.trouble is Trouble.REDIRECTED:
            await self._asking.ledger.settle(end)
            raise JudgeError(f"{self._question.model} cannot be asked: {failure.reason}")
        if failure.trouble is Trouble.QUESTION_REFUSED:
            return await self._fail(end, f"refused: {failure.reason}")
        if failure.trouble is Trouble.FORM_REFUSED:
            if self._refused_forms >= len(_OPTIONAL) + 2 or not self._learn(form, failure.reason):
                return await self._fail(end, f"refused: {failure.reason}")
            self._refused_forms += 1
            await self._asking.ledger.settle(end)
            return None
        self._failed += 1
        if self._failed > self._config.retries:
            self._asking.silent += 1
            outcome = await self._fail(end, f"no reply in {self._failed} calls; the last: {failure.reason}")
            if self._asking.silent >= self._config.hopeless_after:
                raise JudgeError(
                    f"{self._question.model} did not reply to {self._asking.silent} questions in a row; the last: "
                    f"{failure.reason}. What was answered is kept; these questions are recorded as failed"
                )
            return outcome
        await self._asking.ledger.settle(end)
        if failure.retry_after is not None:
            gate.close_for(failure.retry_after)
        config = self._config
        await asyncio.sleep(
            wait_seconds(
                self._failed, config.backoff_seconds, config.longest_wait_seconds, failure.retry_after, _jitter
            )
        )
        return None

    def _learn(self, form: _Form, reason: str) -> bool:
        """Another form after one was refused; False when there is none."""
        known = self._asking.forms[self._question.model]
        if known.answer_format > form.answer_format or known.without - form.without:
            self._form = known  # another worker has found one meanwhile
            return True
        refused = _named(reason) - form.without
        if refused:
            known.without |= refused
            self._form = known
            return True
        if form.answer_format is AnswerFormat.JSON_SCHEMA:
            # Only for this question until the server has taken it: the fault may be the question's.
            self._form = _Form(AnswerFormat.JSON_OBJECT, form.without)
            return True
        return False

    async def _fail(self, end: EndedCall, reason: str) -> Failure:
        reason = redacted(reason, self._config.api_key, longest=600)
        await self._asking.ledger.settle(end, self._stored(None, reason))
        return Failure(self._question.key, reason, self._calls, self._used)

    def _stored(self, value: dict[str, object] | None, reason: str) -> StoredOutcome:
        question = self._question
        return StoredOutcome(
            question.key, value, reason, question.model, question.prompt, question.purpose, self._calls, self._used
        )

    def _ended(self, planned: PlannedCall, reply: Reply) -> EndedCall:
        """What the reply cost; where the provider's counts cannot be right, the most that it can be."""
        prompt, completion = reply.prompt_tokens, reply.completion_tokens
        if prompt is None or completion is None or not believable(self._question, prompt, completion, reply.text):
            length = len((reply.text or "").encode("utf-8", "surrogatepass"))
            return EndedCall(
                planned.id, CallState.DONE, self._most_prompt // 4, length // 4, self._worst_cost(), reply.seconds
            )
        cost = None if self._price is None else self._price.cost(prompt, completion)
        return EndedCall(planned.id, CallState.DONE, prompt, completion, cost, reply.seconds)

    def _count(self, end: EndedCall) -> None:
        self._calls += 1
        used = self._used
        cost = None if used.cost is None or end.cost is None else used.cost + end.cost
        self._used = Usage(
            used.calls + 1,
            used.prompt_tokens + end.prompt_tokens,
            used.completion_tokens + end.completion_tokens,
            cost,
            used.seconds + end.seconds,
        )

    def _worst_cost(self) -> float | None:
        return None if self._worst is None else self._worst / NANO


def _named(reason: str) -> Set[str]:
    """Optional arguments that a refusal names."""
    return frozenset(name for name in _OPTIONAL if name in reason)


def _worst_nano(price: Price | None, prompt_tokens: int, completion_tokens: int) -> int | None:
    if price is None:
        return None
    return int(price.cost(prompt_tokens, completion_tokens) * NANO) + 1


def _gate(model: str, config: AskingConfig) -> ProviderGate:
    provider = provider_of(model)
    limit = config.limit_of(provider)
    return _gates.setdefault((os.getpid(), provider, config.base_url_of(model), limit), ProviderGate(limit))
