"""What questions will cost, before any is asked."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.llm.cached import distinct, look_up
from pipeline.llm.prices import Price, price_of
from pipeline.llm.records import Answer, Question
from pipeline.llm.stores import AnswerStore, MeterLine
from pipeline.llm.tokens import most_prompt_tokens

#: Bytes of English prompts with JSON in them to a token, over the usual tokenizers; texts in other scripts have fewer
#: characters but about as many bytes to a token.
BYTES_PER_TOKEN = 4.0
#: Up to so many questions are all looked at; of more, a seeded random sample of this size is.
SAMPLE = 2_000
#: Share of ``max_tokens`` that an answer is expected to have where nothing is known of it.
ANSWER_SHARE = 0.1


@dataclass(frozen=True)
class EstimateLine:
    """What one purpose is expected to use with one model.

    Attributes:
        questions: how many there are, equal ones once (as far as the sample shows).
        calls: questions without a stored answer; retries come on top.
        prompt_tokens, completion_tokens: expected.
        expected_cost: US dollars when each is asked once; None when the price is unknown.
        worst_cost: US dollars when each is asked once and is as long as it can be; None when the price is unknown.
            This is what a budget reserves before a call, not what it books.
        sampled: whether the figures are scaled up from a sample.
    """

    purpose: str
    model: str
    questions: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    expected_cost: float | None
    worst_cost: float | None
    sampled: bool


def estimate(
    questions: Sequence[Question],
    *,
    store: AnswerStore | None = None,
    prices: Mapping[str, Price] | None = None,
    answer_tokens: Mapping[str, float] | None = None,
    total: int | None = None,
) -> list[EstimateLine]:
    """Calls, tokens and price by purpose and model.

    Tokens are bytes divided by ``BYTES_PER_TOKEN``: within about a fifth for English documents, and fast. Of more than
    ``SAMPLE`` questions a seeded random sample is looked at, so ``questions`` may be a lazy sequence whose items are
    made when they are read: 270,120 take well under 2 s.

    Args:
        questions: all of them, or a representative part when ``total`` is given.
        store: answers that are there need no call.
        prices: registered prices; see ``AskingConfig.prices``.
        answer_tokens: expected length of an answer by purpose, see ``seen_answer_tokens``;
            else a tenth of ``max_tokens``.
        total: how many questions there are, when ``questions`` is only a part of them.
    """
    size = len(questions)
    count = size if total is None else total
    if not size or not count:
        return []
    # By chance, not evenly: questions come in rounds (queries times candidates) that an even step would fall in with.
    positions = range(size) if size <= SAMPLE else sorted(random.Random(0).sample(range(size), SAMPLE))
    looked_at = [questions[position] for position in positions]
    sampled = len(looked_at) < count
    unique = distinct(looked_at)
    missing = set(unique)
    if store is not None:
        for question, known in look_up(store, unique.values(), None, retry_failed=True):
            if isinstance(known, Answer):
                missing.discard(question.key)
    scale = count / len(looked_at)
    groups: dict[tuple[str, str], list[Question]] = {}
    for question in unique.values():
        groups.setdefault((question.purpose, question.model), []).append(question)
    return [
        _line(purpose, model, group, missing, scale, sampled, prices or {}, answer_tokens or {})
        for (purpose, model), group in sorted(groups.items())
    ]


def seen_answer_tokens(meter: Sequence[MeterLine]) -> dict[str, float]:
    """Mean length of the answers that each purpose got so far, for ``estimate``."""
    tokens: dict[str, int] = {}
    calls: dict[str, int] = {}
    for line in meter:
        answered = line.usage.calls - line.unfinished - line.refused - line.lost
        tokens[line.purpose] = tokens.get(line.purpose, 0) + line.usage.completion_tokens
        calls[line.purpose] = calls.get(line.purpose, 0) + answered
    return {purpose: tokens[purpose] / count for purpose, count in calls.items() if count > 0}


def _line(
    purpose: str,
    model: str,
    group: Sequence[Question],
    missing: set[str],
    scale: float,
    sampled: bool,
    prices: Mapping[str, Price],
    answer_tokens: Mapping[str, float],
) -> EstimateLine:
    asked = [question for question in group if question.key in missing]
    most = sum(most_prompt_tokens(question) for question in asked) * scale
    longest = sum(question.sampling.max_tokens for question in asked) * scale
    prompt = most / BYTES_PER_TOKEN
    mean = answer_tokens.get(purpose)
    completion = longest * ANSWER_SHARE if mean is None else min(longest, mean * len(asked) * scale)
    price = price_of(model, prices)
    return EstimateLine(
        purpose,
        model,
        round(len(group) * scale),
        round(len(asked) * scale),
        round(prompt),
        round(completion),
        None if price is None else price.prompt * prompt + price.completion * completion,
        None if price is None else price.prompt * most + price.completion * longest,
        sampled,
    )
