from __future__ import annotations

from collections.abc import Sequence

import pytest

from pipeline.errors import UsageError
from pipeline.llm.estimate import estimate, seen_answer_tokens
from pipeline.llm.prices import Price, parse_prices, price_of
from pipeline.llm.records import Usage
from pipeline.llm.stores import Budget, MeterLine, StoredOutcome
from pipeline.llm.tokens import most_prompt_tokens
from tests.pipeline.llm.conftest import make_question as question

PRICES = {"openai/gpt-4o-mini": Price(1e-6, 2e-6)}


def test_calls_tokens_and_prices(answers):
    questions = [question("a" * 400), question("b" * 400), question("a" * 400)]
    key = questions[0].key
    answers.record_batch([], [StoredOutcome(key, {"echo": "a"}, "", "m", "p", "test", 1, Usage(1))], Budget("job"))
    (line,) = estimate(questions, store=answers, prices=PRICES, answer_tokens={"test": 30})
    assert (line.questions, line.calls, line.sampled) == (2, 1, False)
    most = most_prompt_tokens(questions[1])
    assert line.prompt_tokens == round(most / 4) and line.completion_tokens == 30
    assert line.expected_cost == most / 4 * 1e-6 + 30 * 2e-6
    assert line.worst_cost == most * 1e-6 + 100 * 2e-6


def test_an_unknown_price_is_not_zero():
    (line,) = estimate([question("a", model="hosted_vllm/own")])
    assert line.expected_cost is None and line.worst_cost is None


def test_toolex_size_is_estimated_from_a_sample():
    looked_at = 0

    class Verifications(Sequence):
        def __len__(self):
            return 270_120

        def __getitem__(self, position):
            nonlocal looked_at
            looked_at += 1
            return question(f"{position} " + "a tool's document " * (100 + position % 200), purpose="verify")

    (line,) = estimate(Verifications(), prices=PRICES)
    assert looked_at <= 5_000  # each takes some microseconds: a small part of the two seconds that it may take
    assert line.calls == 270_120 and line.sampled
    exact = sum(most_prompt_tokens(Verifications()[100_000 + p]) for p in range(200)) / 200 * 270_120 / 4
    assert abs(line.prompt_tokens / exact - 1) < 0.02


def test_prices_come_from_the_operator_then_from_the_table_then_from_nobody():
    assert price_of("openai/gpt-4o-mini", {}) == Price(1.5e-7, 6e-7, 7.5e-8, 3e-7)
    assert price_of("openai/gpt-4o-mini", PRICES) == Price(1e-6, 2e-6)
    long = price_of("gemini/gemini-2.5-pro", {})
    assert long is not None and long.long[0][0] == 200_000
    assert long.cost(200_000, 10) == pytest.approx(200_000 * 1.25e-6 + 10 * 1e-5)
    assert long.cost(200_001, 10) == pytest.approx(200_001 * 2.5e-6 + 10 * 1.5e-5), "all tokens of a long prompt"
    assert long.cost(200_001, 10, batch=True) == pytest.approx(200_001 * 1.25e-6 + 10 * 7.5e-6)
    # Where a batch of long prompts has no price of its own, it costs what a call does.
    tiers = Price(1.0, 2.0, 0.5, 1.0, long=((100, Price(9.0, 8.0)), (10, Price(3.0, 4.0))))
    assert [tiers.cost(tokens, 1, batch=True) for tokens in (10, 11, 101)] == [6.0, 37.0, 917.0]
    # Lengths as entries of their own, with a short one beside them or among them.
    beside, among = price_of("opencode_go/claude-haiku-5-5", {}), price_of("dashscope/qwen-flash", {})
    assert beside is not None and beside.long and beside.cost(beside.long[0][0] + 1, 0) > beside.prompt * 1e5
    assert among is not None and (among.prompt, among.long[0][0], among.long[0][1].prompt) == (5e-8, 256_000, 2.5e-7)
    assert beside.cost(100, 100) < beside.cost(10**6, 100)
    # Calls that search cost a fee; what could search, and is not asked to, does not.
    searching, able = price_of("perplexity/sonar", {}), price_of("gemini/gemini-2.5-pro", {})
    assert searching is not None and searching.fee == 0.012 and able is not None and able.fee == 0
    assert searching.cost(0, 0) == searching.fee
    assert price_of("hosted_vllm/gpt-4o-mini", {}) is None
    assert parse_prices("hosted_vllm/a=0.1/0.4, ollama/b=0/0") == {
        "hosted_vllm/a": Price(0.1 / 1e6, 0.4 / 1e6),
        "ollama/b": Price(0, 0),
    }


def test_a_stored_answer_keeps_its_usage(answers):
    usage = Usage(2, 10, 20, None, 0.5)
    stored = StoredOutcome("k" * 64, {"echo": "\x00 \ud800 ä"}, "", "m", "p", "test", 2, usage)
    answers.record_batch([], [stored], Budget("job"))
    assert answers.outcomes(["k" * 64, "unknown"]) == {"k" * 64: stored}


def test_lengths_that_were_seen():
    lines = [
        MeterLine("verify", "a/m", Usage(10, 0, 90), unfinished=1, refused=2, lost=1),
        MeterLine("verify", "b/m", Usage(4, 0, 10)),
        MeterLine("audit", "a/m", Usage(1), refused=1),
    ]
    assert seen_answer_tokens(lines) == {"verify": 10.0}


def test_a_limit_is_a_number_that_can_be_kept():
    assert Budget("job", 1e308).max_nano == 10**18 and Budget("job", float("inf")).max_nano == 10**18
    for wrong in ({"max_cost": float("nan")}, {"max_cost": -0.01}, {"max_calls": -1}):
        with pytest.raises(UsageError, match="the budget is"):
            Budget("job", **wrong)
