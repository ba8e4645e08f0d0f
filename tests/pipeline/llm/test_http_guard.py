"""No redirect is followed and no reply is read without end, whichever of litellm's clients a provider uses."""

from __future__ import annotations

import re

import pytest

from pipeline.errors import JudgeError
from pipeline.llm.client import LiveAsker
from pipeline.llm.http_guard import LONGEST_REPLY
from pipeline.llm.prices import Price
from pipeline.llm.records import Answer, Failure
from pipeline.llm.stores import Budget
from tests.llm_server import Fault, LlmServer
from tests.pipeline.llm.conftest import echo
from tests.pipeline.llm.conftest import make_question as question
from tests.pipeline.llm.test_client import config

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

#: One of the OpenAI SDK's providers, and one that litellm asks with a client of its own.
MODELS = ("openai/small", "hosted_vllm/small")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed_and_ends_the_work(memory, model, status):
    with LlmServer(echo) as other:
        target = other.url.replace("://", "://name:hunter2secret@") + "/chat/completions?key=hunter3secret"
        with LlmServer(echo, faults=lambda number, body: Fault.redirect(target, status)) as server:
            asker = LiveAsker(memory, config(server), Budget("redirects"))
            with pytest.raises(JudgeError, match=re.escape(f"redirects to {other.url}, and nothing")) as told:
                asker.ask([question("a", model=model)])
            assert server.count == 1
        assert other.count == 0
    assert "EQUIRANK_LLM_BASE_URL" in str(told.value) and "secret" not in str(told.value)
    assert memory.spent("redirects").calls == 1


@pytest.mark.parametrize("model", MODELS)
def test_a_loop_of_redirects_is_one_call(memory, model):
    with LlmServer(echo, faults=lambda number, body: Fault.redirect("/v1/chat/completions")) as server:
        with pytest.raises(JudgeError, match=re.escape(f"redirects to {server.url}, and nothing")):
            LiveAsker(memory, config(server)).ask([question("a", model=model)])
        assert server.count == 1


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault.flood(LONGEST_REPLY), "longer than 8 MiB"),
        (Fault.flood(LONGEST_REPLY * 4, "gzip"), "longer than 8 MiB"),
        (Fault.flood(10, "br"), "packed as 'br'"),
    ],
)
def test_a_reply_without_end_is_an_invalid_answer(memory, model, fault, reason):
    def faults(number, body):
        return fault if "flood" in str(body["messages"]) else None

    with LlmServer(echo, faults=faults) as server:
        priced = config(server, attempts=2, prices={model: Price(1e-6, 1e-6)})
        asker = LiveAsker(memory, priced, Budget("floods"))
        bad, good = asker.ask([question("flood", model=model), question("fine", model=model)])
    assert isinstance(bad, Failure) and reason in bad.reason and bad.attempts == 2
    assert bad.usage.cost > good.usage.cost  # nobody knows what was generated
    assert isinstance(good, Answer)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("fault", [Fault.flood(LONGEST_REPLY // 2), Fault.flood(LONGEST_REPLY // 2, "gzip")])
def test_a_long_reply_within_the_limit_is_read(memory, model, fault):
    with LlmServer(echo, faults=[fault]) as server:
        (answer,) = LiveAsker(memory, config(server)).ask([question("a", model=model)])
        assert server.count == 1
    assert isinstance(answer, Answer) and answer.value == {"echo": "a"}
