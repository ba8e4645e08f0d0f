"""Good answers in shapes that litellm refuses are answers after one call; what is as it should be stays untouched."""

from __future__ import annotations

import json

import pytest

from pipeline.llm.client import LiveAsker
from pipeline.llm.prices import Price
from pipeline.llm.records import Answer
from pipeline.llm.reply_shape import readable
from tests.llm_server import LlmServer
from tests.pipeline.llm.conftest import echo
from tests.pipeline.llm.conftest import make_question as question
from tests.pipeline.llm.test_client import config

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

USAGE = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}


@pytest.mark.parametrize("model", ["openai/small", "hosted_vllm/small"])
@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (USAGE, True),
        ({name: float(count) for name, count in USAGE.items()}, True),
        ({name: str(count) for name, count in USAGE.items()}, True),
        ({name: count + 0.5 for name, count in USAGE.items()}, False),
        (dict.fromkeys(USAGE, "many"), False),
        ({**USAGE, "total_tokens": None}, False),
        ([5, 5], False),
        ("ten", False),
    ],
)
def test_a_good_answer_with_strange_counts_is_kept(memory, model, usage, counted):
    with LlmServer(echo, reshape=lambda whole: {**whole, "usage": usage}) as server:
        priced = config(server, prices={model: Price(1e-6, 1e-6)})
        (answer,) = LiveAsker(memory, priced).ask([question("a", model=model)])
        assert server.count == 1
    assert isinstance(answer, Answer) and answer.value == {"echo": "a"}
    assert (answer.usage.cost == pytest.approx(10e-6)) == counted  # the worst, where nobody knows


@pytest.mark.parametrize("model", ["openai/small", "hosted_vllm/small"])
def test_a_message_in_parts_is_read_as_their_text(memory, model):
    def parts(whole):
        message = whole["choices"][0]["message"]
        text = message["content"]
        message["content"] = [
            {"type": "thinking", "thinking": "{}"},
            {"type": "text", "text": text[:4]},
            {"type": "text", "text": text[4:]},
        ]
        return whole

    with LlmServer(echo, reshape=parts) as server:
        (answer,) = LiveAsker(memory, config(server)).ask([question("a", model=model)])
        assert server.count == 1
    assert isinstance(answer, Answer) and answer.value == {"echo": "a"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"\xff\xfe",
        b"[" * 100_000,
        b"[1]",
        b'{"choices": 5, "usage": []}',
        b'{"usage": "ten"}',
        json.dumps(
            {"choices": [None, {"message": None}, {"message": {"content": None}}], "usage": USAGE}, indent=3
        ).encode(),
    ],
)
def test_everything_else_stays_as_it_is(body):
    assert readable(body) is body
