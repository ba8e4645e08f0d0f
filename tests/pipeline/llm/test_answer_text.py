from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from pipeline.errors import JudgeError
from pipeline.llm.answer_text import InvalidAnswer, check_schema, extracted_object, parsed_answer
from pipeline.llm.config import ProviderLimit, parse_limits
from pipeline.llm.prices import parse_prices
from pipeline.llm.providers import providers_with_keys, redacted
from pipeline.llm.request import chat_body, takes_strict
from pipeline.llm.waiting import parse_retry_after, wait_seconds
from tests.pipeline.llm.conftest import make_question


@pytest.mark.parametrize(
    "text",
    [
        '{"echo": "x"}',
        ' \n{"echo": "x"}\n',
        '\ufeff{"echo": "x"}',
        '```json\n{"echo": "x"}\n```',
        'Sure:\n```\n{"echo": "x"}\n```\nDone.',
        'Here it is: {"echo": "x"}. I hope { that } helps {}',
        '<think>perhaps {"echo": "y"}?</think>{"echo": "x"}',
        '{"echo": "x"} and again {"echo": "x"}',
    ],
)
def test_the_one_object_is_found(text):
    assert extracted_object(text) == {"echo": "x"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no json", "no JSON object"),
        ('["echo"]', "no JSON object"),
        ('{"echo": "x"', "no JSON object"),
        ('{"echo": NaN}', "no JSON object"),
        ('{"echo": 1e999}', "no JSON object"),
        ('{"echo": "x"} {"echo": "y"}', "2 different JSON objects"),
        ('{"a":' * 100_000, "no JSON object"),
        ("{" * 1_000_000, "no JSON object"),
    ],
)
def test_what_is_no_single_object_is_refused(text, problem):
    with pytest.raises(InvalidAnswer, match=problem):
        extracted_object(text)


@pytest.mark.parametrize(
    ("text", "finish", "problem"),
    [
        (None, "stop", "empty"),
        (" ", "stop", "empty"),
        ('{"echo": "x"}', "length", "cut off at 100 tokens"),
        ('{"echo": "x"}', "content_filter", "content filter"),
        ('{"echo": 3}', "stop", "at echo: 3 is not of type 'string'"),
        ('{"echo": "x", "more": 1}', "stop", "at its root: Additional properties"),
        ('{"echo": "\\ud800"}', "stop", "half of a surrogate pair"),
        ('{"\\udfff": "x"}', "stop", "half of a surrogate pair"),
        ("{}", "stop", "'echo' is a required property"),
        ('{"echo": "' + "x" * 2_000_000 + '"}', "stop", "characters, more than"),
    ],
)
def test_invalid_answers_say_why(text, finish, problem):
    with pytest.raises(InvalidAnswer, match=problem):
        parsed_answer(make_question("x"), text, finish, None)


@pytest.mark.parametrize("schema", [{"type": "array"}, {"type": "nonsense"}, {}])
def test_schemas_that_no_answer_fits_are_refused(schema):
    with pytest.raises(JudgeError, match="schema of the answer"):
        check_schema(schema)


def test_strict_is_said_of_closed_schemas_only():
    closed = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert takes_strict(closed)
    assert not takes_strict({**closed, "required": []})
    assert not takes_strict(
        {**closed, "properties": {"a": {"type": "object", "additionalProperties": {"type": "string"}}}}
    )
    # A property may have the name of a keyword.
    assert takes_strict({**closed, "properties": {"properties": {"type": "string"}}, "required": ["properties"]})


def test_top_k_goes_only_to_those_who_take_it():
    assert "top_k" not in chat_body(make_question("x"))
    assert chat_body(make_question("x", model="anthropic/claude-sonnet-5"))["top_k"] == 1
    assert "temperature" not in chat_body(make_question("x"), without={"temperature"})


def test_waits_grow_to_a_bound_and_respect_the_provider():
    jitter = random.Random(1)
    waits = [wait_seconds(tries, 1, 60, None, jitter) for tries in range(1, 40)]
    assert 0.5 <= waits[0] <= 1 and 1 <= waits[1] <= 2 and all(30 <= wait <= 60 for wait in waits[6:])
    assert 20 <= wait_seconds(1, 1, 60, 20, jitter) <= 20.1
    assert wait_seconds(1, 1, 60, 1e9, jitter) <= 601
    assert parse_retry_after("2.5") == 2.5 and parse_retry_after("-1") == 0
    assert parse_retry_after(None) is None and parse_retry_after("soon") is None and parse_retry_after("nan") is None
    later = parse_retry_after(format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True))
    assert later is not None and 27 < later <= 30


def test_limits_and_prices_are_read_or_refused():
    assert parse_limits("anthropic=8/50, openai=32") == {"anthropic": ProviderLimit(8, 50), "openai": ProviderLimit(32)}
    for text in ("anthropic", "anthropic=", "anthropic=0", "=4", "anthropic=4/x"):
        with pytest.raises(JudgeError, match="does not say how often"):
            parse_limits(text)
    for text in ("a/b=1", "a/b=1/x", "=1/2", "a/b=-1/2", "a/b=nan/1", "a/b=1e12/1"):
        with pytest.raises(JudgeError, match="is no price"):
            parse_prices(text)


def test_providers_are_named_without_their_keys(monkeypatch):
    monkeypatch.setenv("GROQ_API_KEY", "gsk_4711-secret")
    monkeypatch.setenv("XAI_API_KEY", " ")
    names = providers_with_keys()
    assert "groq" in names and "xai" not in names
    assert redacted("gsk_4711-secret is wrong\n\x1b[31m at https://user:pass@host/?key=abc") == (
        "*** is wrong [31m at https://***@host/?key=***"
    )
