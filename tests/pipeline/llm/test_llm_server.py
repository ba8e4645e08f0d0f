"""The loopback server does what its faults say."""

import httpx
import pytest

from tests.llm_server import Fault, LlmServer

BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def test_answers_and_faults():
    faults = [None, Fault.rate_limit(3), Fault.error(500), Fault.truncated(), Fault.prose(), Fault.garbage()]
    with LlmServer(lambda body: {"said": body["messages"][-1]["content"]}, faults=faults) as server:
        answers = [httpx.post(f"{server.url}/chat/completions", json=BODY) for _ in faults]
    assert [answer.status_code for answer in answers] == [200, 429, 500, 200, 200, 200]
    assert answers[0].json()["choices"][0]["message"]["content"] == '{"said": "hello"}'
    assert answers[1].headers["retry-after"] == "3"
    assert answers[3].json()["choices"][0]["finish_reason"] == "length"
    assert '```json\n{"said": "hello"}\n```' in answers[4].json()["choices"][0]["message"]["content"]
    assert server.count == 6 and server.counts() == {'[{"role": "user", "content": "hello"}]': 6}


def test_dropped_connection_and_stall():
    faults = [Fault.drop(), Fault.stall(5)]
    with LlmServer(lambda body: {}, faults=faults) as server:
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.post(f"{server.url}/chat/completions", json=BODY)
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{server.url}/chat/completions", json=BODY, timeout=0.3)
