"""The live asker against a real loopback server that misbehaves in every way that servers do."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from dataclasses import replace

import pytest
from starlette.responses import JSONResponse

from pipeline.errors import BudgetExceeded, JudgeError
from pipeline.llm.client import LiveAsker
from pipeline.llm.config import AskingConfig, ProviderLimit
from pipeline.llm.prices import Price
from pipeline.llm.records import Answer, Failure
from pipeline.llm.stores import Budget
from pipeline.llm.tokens import most_prompt_tokens
from pipeline.retrieval.progress import Cancelled
from tests.llm_server import Fault, LlmServer
from tests.pipeline.llm.conftest import echo
from tests.pipeline.llm.conftest import make_question as question

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def config(server: LlmServer, **changes: object) -> AskingConfig:
    """Quick to try again, patient with a server on a busy machine."""
    quick = AskingConfig(
        base_url=server.url,
        limit=ProviderLimit(8),
        connect_seconds=5,
        read_seconds=20.0,
        call_seconds=60.0,
        backoff_seconds=0.02,
        longest_wait_seconds=0.1,
    )
    return replace(quick, **changes)


def test_answers_come_in_order_equal_ones_are_asked_once_and_kept(answers):
    texts = ["a", "b", "a", "c", "b"]
    with LlmServer(echo) as server:
        asker = LiveAsker(answers, config(server))
        outcomes = asker.ask([question(text) for text in texts])
        assert [outcome.value["echo"] for outcome in outcomes] == texts
        assert server.count == 3
        assert all(outcome.attempts == 1 and not outcome.cached for outcome in outcomes)
        again = LiveAsker(answers, config(server)).ask([question(text) for text in texts])
        assert server.count == 3
        assert [outcome.value["echo"] for outcome in again] == texts
        assert all(outcome.cached and outcome.attempts == 0 for outcome in again)
        assert again[0].usage == outcomes[0].usage
    body = server.requests[0].body
    assert body["response_format"]["type"] == "json_schema"
    assert body["response_format"]["json_schema"]["strict"] is True
    assert body["temperature"] == 0 and body["max_tokens"] == 100 and "top_k" not in body


def test_whatever_goes_wrong_every_question_ends_answered_or_failed_and_none_twice(answers):
    chance = random.Random(7)
    kinds = [
        None,
        Fault.rate_limit(0.05),
        Fault.rate_limit(),
        Fault.error(500),
        Fault.error(503),
        Fault.drop(),
        Fault.invalid_json(),
        Fault.wrong_shape(),
        Fault.truncated(),
        Fault.prose(),
        Fault.garbage(),
        Fault.stall(5),
    ]
    weights = [40, 4, 4, 4, 4, 4, 4, 4, 4, 6, 4, 1]
    schedule = chance.choices(kinds, weights, k=2000)

    def faults(number, body):
        if body["messages"][-1]["content"].startswith("hopeless"):
            return Fault.invalid_json()
        return schedule[number]

    texts = [f"text {number} äöü 漢字" for number in range(120)] + ["hopeless 1", "hopeless 2"]
    with LlmServer(echo, faults=faults) as server:
        asking = config(server, attempts=6, retries=12, read_seconds=1.0, call_seconds=3.0)
        asker = LiveAsker(answers, asking, Budget("job"))
        outcomes = asker.ask([question(text) for text in texts])
        for text, outcome in zip(texts, outcomes, strict=True):
            if text.startswith("hopeless"):
                assert isinstance(outcome, Failure)
                assert outcome.attempts == outcome.usage.calls >= 6
                assert "no valid answer in 6 attempts" in outcome.reason
            else:
                assert isinstance(outcome, Answer) and outcome.value == {"echo": text}
        asked = server.count
        # Nothing is asked again, not even what failed …
        assert asker.ask([question(text) for text in texts])[-1] == outcomes[-1]
        assert server.count == asked
        # … and the meter knows every request.
        (line,) = answers.meter("job")
        assert line.usage.calls == asked == answers.spent("job").calls
        assert line.unfinished == 0 and line.refused > 0 and line.lost > 0
        server.faults = ()
        retried = LiveAsker(answers, config(server), retry_failed=True).ask([question(text) for text in texts])
        assert server.count == asked + 2
        assert [outcome.value["echo"] for outcome in retried] == texts


def test_retry_after_is_honoured_by_everybody(memory):
    with LlmServer(echo, faults=[Fault.rate_limit(0.6)]) as server:
        LiveAsker(memory, config(server, limit=ProviderLimit(1))).ask([question("a"), question("b")])
        first, *later = [request.at for request in server.requests]
    assert len(later) == 2 and all(at - first >= 0.6 for at in later)


def test_a_check_is_part_of_validity(memory):
    replies = iter([{"echo": "wrong"}, {"echo": "right"}])

    def check(asked, value):
        return None if value["echo"] == "right" else f"echo is {value['echo']!r}"

    with LlmServer(lambda body: next(replies)) as server:
        (outcome,) = LiveAsker(memory, config(server)).ask([question("x")], check=check)
    assert outcome.value == {"echo": "right"} and outcome.attempts == 2 and outcome.usage.calls == 2


def test_a_server_that_refuses_schemas_is_asked_for_json_objects(memory):
    with LlmServer(echo, accepts_json_schema=False) as server:
        asker = LiveAsker(memory, config(server, limit=ProviderLimit(1)))
        outcomes = asker.ask([question(text) for text in "abcd"])
    assert all(isinstance(outcome, Answer) for outcome in outcomes)
    kinds = [request.body["response_format"]["type"] for request in server.requests]
    assert kinds == ["json_schema"] + ["json_object"] * 4
    assert server.requests[1].body["response_format"]["schema"] == question("a").schema


def test_a_question_that_is_refused_in_both_forms_fails(memory):
    with LlmServer(echo, faults=lambda number, body: Fault.error(400)) as server:
        (outcome,) = LiveAsker(memory, config(server)).ask([question("x")])
    assert isinstance(outcome, Failure) and outcome.attempts == 2 and "fault of status 400" in outcome.reason


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_model_that_cannot_be_asked_stops_the_work_and_fails_no_question(memory, status, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-somebody")
    with LlmServer(echo, faults=lambda number, body: Fault.error(status)) as server:
        asker = LiveAsker(memory, config(server, api_key="the-key-of-the-server", limit=ProviderLimit(2)))
        with pytest.raises(JudgeError, match="openai/gpt-4o-mini cannot be asked"):
            asker.ask([question(str(number)) for number in range(50)])
        assert server.count <= 4
        assert {request.headers["authorization"] for request in server.requests} == {"Bearer the-key-of-the-server"}
        server.faults = ()
        assert all(isinstance(o, Answer) for o in asker.ask([question(str(number)) for number in range(50)]))


def test_a_dead_provider_ends_the_work(memory):
    with LlmServer(echo, faults=lambda number, body: Fault.error(503)) as server:
        asker = LiveAsker(memory, config(server, retries=0, hopeless_after=5, limit=ProviderLimit(1)))
        with pytest.raises(JudgeError, match="did not reply to 5 questions in a row"):
            asker.ask([question(str(number)) for number in range(50)])
        assert server.count == 5


def test_concurrency_and_pace_stay_within_their_bounds(memory):
    with LlmServer(echo, delay=0.05) as server:
        LiveAsker(memory, config(server, limits={"openai": ProviderLimit(3)})).ask(
            [question(str(number)) for number in range(12)]
        )
        assert 2 <= server.most_open <= 3
        start = len(server.requests)
        LiveAsker(memory, config(server, limit=ProviderLimit(8, per_minute=600))).ask(
            [question(f"paced {number}") for number in range(8)]
        )
        times = [request.at for request in server.requests[start:]]
    # 0.7 s apart as sent; the first may take longer to arrive than the last. Unpaced they take a tenth of it.
    assert times[-1] - times[0] >= 0.4


def test_threads_that_ask_the_same_share_the_calls(answers):
    texts = [str(number) for number in range(30)]
    results: list[list[object]] = []
    with LlmServer(echo, delay=0.02) as server:

        def work() -> None:
            outcomes = LiveAsker(answers, config(server)).ask([question(text) for text in texts])
            results.append([outcome.value["echo"] for outcome in outcomes])

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == [texts] * 4
    assert server.count == 30


PRICE = {"openai/gpt-4o-mini": Price(1e-6, 2e-6)}


def worst(text: str) -> float:
    return most_prompt_tokens(question(text)) * 1e-6 + 100 * 2e-6


def test_the_budget_is_never_exceeded_and_the_work_goes_on_when_it_is_raised(answers):
    questions = [question(f"question {number:03}") for number in range(200)]
    actual = 40e-6 + 60 * 2e-6
    budget = 100 * actual + 1e-5
    chance = random.Random(3)
    most = 0.0

    def faults(number, body):
        return chance.choice([None, None, None, Fault.invalid_json(), Fault.error(500)])

    with LlmServer(echo, faults=faults, tokens=lambda body, text: (40, 60), delay=0.005) as server:
        asker = LiveAsker(
            answers,
            config(server, prices=PRICE, attempts=50, retries=50, limit=ProviderLimit(32)),
            Budget("job", budget),
        )
        stop = threading.Event()

        def watch() -> None:
            nonlocal most
            while not stop.wait(0.01):
                most = max(most, answers.spent("job").cost)

        watcher = threading.Thread(target=watch)
        watcher.start()
        with pytest.raises(BudgetExceeded, match=r"raise the budget and start again"):
            asker.ask(questions)
        stop.set()
        watcher.join()
        spent = answers.spent("job").cost
        paid = server.completed * actual
        assert spent == pytest.approx(paid) and paid <= budget and most <= budget
        assert budget - spent < worst("question 000")
        done = server.completed
        known = sum(o is not None for o in answers.outcomes([q.key for q in questions]).values())
        assert 0 < known < 200
        server.faults = ()
        outcomes = LiveAsker(answers, config(server, prices=PRICE), Budget("job", 1.0)).ask(questions)
        assert all(isinstance(outcome, Answer) for outcome in outcomes)
        assert server.completed == done + 200 - known


def test_a_budget_of_calls(answers):
    with LlmServer(echo) as server:
        asker = LiveAsker(answers, config(server, limit=ProviderLimit(32)), Budget("job", max_calls=17))
        with pytest.raises(BudgetExceeded, match="17 of 40 questions are done"):
            asker.ask([question(str(number)) for number in range(40)])
        assert server.count == 17


def test_money_cannot_be_kept_without_a_price(answers):
    with LlmServer(echo) as server:
        unknown = question("x", model="hosted_vllm/my-own")
        with pytest.raises(JudgeError, match="nobody states a price for hosted_vllm/my-own"):
            LiveAsker(answers, config(server), Budget("job", 1.0)).ask([unknown])
        assert server.count == 0
        (outcome,) = LiveAsker(answers, config(server), Budget("job")).ask([unknown])
        assert outcome.usage.cost is None
        assert answers.spent("job").unpriced == 1 and answers.meter("job")[0].usage.cost is None


def test_money_cannot_be_kept_where_answers_have_no_bound(memory):
    with LlmServer(echo):
        unbounded = question("x", model="v0/v0-1.0-md")
        with pytest.raises(JudgeError, match="takes no bound on the length of its answers"):
            LiveAsker(memory, budget=Budget("job", 1.0)).ask([unbounded])


def test_a_missing_key_is_named_before_anything_is_sent(memory, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(JudgeError, match="set ANTHROPIC_API_KEY in the environment"):
        LiveAsker(memory).ask([question("x", model="anthropic/claude-sonnet-5")])
    with pytest.raises(JudgeError, match="names no provider"):
        LiveAsker(memory).ask([question("x", model="nobody/anything")])
    with pytest.raises(JudgeError, match="does not name a language model"):
        LiveAsker(memory).ask([question("x", model="gpt 4o")])


def test_keys_are_in_no_message_and_no_row(answers, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "plain-secret-0815")

    secrets = ("plain-secret-0815", "sk-abcdef0123456789", "server-secret-4711")
    said = f"my key is {secrets[0]} or {secrets[1]}, not Bearer {secrets[2]}"
    faults = [Fault.error(400, said), Fault.error(400, said), Fault.error(401, said)]
    with LlmServer(echo, faults=faults) as server:
        asking = config(server, api_key=secrets[2])
        (outcome,) = LiveAsker(answers, asking).ask([question("x")])
        with pytest.raises(JudgeError) as refused:
            LiveAsker(answers, asking).ask([question("y")])
    assert isinstance(outcome, Failure) and "my key is ***" in outcome.reason and "my key is ***" in str(refused.value)
    stored = answers.outcomes([outcome.key])[outcome.key]
    for secret in secrets:
        assert secret not in repr(outcome) + repr(stored) + str(refused.value) + repr(asking)


@pytest.mark.parametrize(
    "told", [(10**30, 5), (5, 1 << 31), (5, 2**31 - 1), (2**31 - 1, 5), (10**5, 5), (-5, -5), (0, 0), (5, 0)]
)
def test_a_count_that_can_be_none_is_charged_at_its_worst(answers, told):
    budget = Budget("s", max_cost=1.0)
    with LlmServer(echo, tokens=lambda body, text: told) as server:
        (outcome,) = LiveAsker(answers, config(server), budget).ask([question("x")])
    assert isinstance(outcome, Answer) and outcome.value == {"echo": "x"}
    assert 1e-4 < answers.spent("s").cost < 0.01


def test_what_litellm_cannot_read_is_told_without_its_traceback(memory):
    with LlmServer(echo) as server:
        server._completion = lambda body, text, finish: JSONResponse({"choices": [{"message": {"tool_calls": 5}}]})
        (outcome,) = LiveAsker(memory, config(server, retries=0)).ask([question("x")])
    assert isinstance(outcome, Failure)
    assert "Traceback" not in outcome.reason and "/" not in outcome.reason


def test_a_stall_is_cut_off_in_time(memory):
    with LlmServer(echo, faults=[Fault.stall(30)]) as server:
        start = time.monotonic()
        (outcome,) = LiveAsker(memory, config(server, read_seconds=0.5)).ask([question("x")])
        assert time.monotonic() - start < 20
    assert outcome.value == {"echo": "x"} and outcome.attempts == 2


def test_an_error_of_the_check_is_passed_on_and_the_call_is_counted(memory):
    def check(asked, value):
        raise ZeroDivisionError("a fault of the check")

    with LlmServer(echo) as server, pytest.raises(ZeroDivisionError):
        LiveAsker(memory, config(server), Budget("job")).ask([question("x")], check=check)
    assert memory.meter("job")[0].usage.calls == 1 and memory.meter("job")[0].unfinished == 0


def test_whoever_asks_is_told_how_far_it_is_and_can_stop_it(answers):
    questions = [question(str(number)) for number in range(300)]
    heard: list[int] = []

    def tell(done: int) -> None:
        heard.append(done)
        if done > 20:
            raise Cancelled("enough")

    with LlmServer(echo, delay=0.05) as server:
        with pytest.raises(Cancelled, match="enough"):
            LiveAsker(answers, config(server), Budget("job")).ask(questions, tell=tell)
        kept = answers.outcomes([asked.key for asked in questions])
        assert 20 < len(kept) == server.completed == server.count < 300
        assert len(kept) <= heard[-1] + config(server).limit.concurrency, "only calls in flight ended"
        assert heard == sorted(heard) and answers.meter("job")[0].unfinished == 0


def test_an_interrupt_lets_calls_in_flight_end(answers):
    questions = [question(str(number)) for number in range(300)]
    with LlmServer(echo, delay=0.05) as server:

        def interrupt() -> None:
            while server.count < 40:
                time.sleep(0.005)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            LiveAsker(answers, config(server), Budget("job")).ask(questions)
        kept = answers.outcomes([asked.key for asked in questions])
        assert 0 < len(kept) == server.completed == server.count < 300
        assert answers.meter("job")[0].unfinished == 0
