"""Answers, calls and what was spent, on SQLite and PostgreSQL."""

from __future__ import annotations

import threading

import pytest

from store.access import llm
from store.access.llm import AnswerRecord, CallEnd, NewCall, SpentRecord


def call(number: int, nano: int | None = 100, purpose: str = "verify") -> NewCall:
    return NewCall(f"call-{number}", f"key-{number}", purpose, "openai/m", 1, nano)


def end(number: int, nano: int | None = 40, state: str = "done") -> CallEnd:
    return CallEnd(f"call-{number}", state, 10, 5, None if nano is None else nano / 1e9, nano, 0.5)


def answer(key: str, value: str | None, reason: str = "") -> AnswerRecord:
    state = "failure" if value is None else "answer"
    return AnswerRecord(key, state, value, reason, "openai/m", "p@1", "verify", 1, 10, 5, None, 0.5)


def test_the_first_answer_stays_and_a_failure_gives_way(database):
    with database.session() as session:
        llm.put_answers(session, [answer("a", None, "nothing"), answer("b", '{"x":1}')])
        llm.put_answers(session, [answer("a", '{"y":"\\u0000"}'), answer("b", '{"x":2}'), answer("c", None, "one")])
        llm.put_answers(session, [answer("a", None, "again"), answer("c", None, "two")])
    with database.reading() as session:
        found = {row.key: row for row in llm.answers(session, ["a", "b", "c", "d", "a"])}
    assert {key: (row.value, row.reason) for key, row in found.items()} == {
        "a": ('{"y":"\\u0000"}', ""),
        "b": ('{"x":1}', ""),
        "c": (None, "two"),
    }
    assert found["b"] == answer("b", '{"x":1}')
    with database.session() as session:
        assert llm.forget_failures(session, "other") == 0
        assert llm.forget_failures(session, "verify") == 1
        assert {row.key for row in llm.answers(session, ["a", "b", "c"])} == {"a", "b"}


def test_reservations_count_at_their_worst_until_the_call_ends(database):
    with database.session() as session:
        assert llm.reserve(session, "job", [call(n) for n in range(5)], max_nano=350) == 3
        assert llm.spent_of(session, "job") == SpentRecord(3, 300, 0)
        llm.settle(session, "job", [end(0), end(1, 100, "lost")])
        assert llm.spent_of(session, "job") == SpentRecord(3, 240, 0)
        llm.settle(session, "job", [end(0), end(7)])  # ended before, and never begun
        assert llm.spent_of(session, "job") == SpentRecord(3, 240, 0)
        assert llm.reserve(session, "job", [call(5)], max_nano=339) == 0
        assert llm.reserve(session, "job", [call(5)], max_nano=340) == 1
        assert llm.reserve(session, "job", [call(6)], max_calls=4) == 0
        assert llm.reserve(session, "other", [call(8)], max_calls=1) == 1


def test_an_unknown_price_is_not_zero(database):
    with database.session() as session:
        assert llm.reserve(session, "job", [call(1, None)], max_nano=10**12) == 0
        assert llm.reserve(session, "job", [call(1, None), call(2), call(3, purpose="audit")]) == 3
        assert llm.spent_of(session, "job") == SpentRecord(3, 200, 1)
        llm.settle(session, "job", [end(1, None), end(3, 0, "refused")])
        audit, verify = llm.usage(session, "job")
        assert (audit.purpose, audit.calls, audit.cost, audit.refused, audit.unfinished) == ("audit", 1, 0.0, 1, 0)
        assert (verify.calls, verify.prompt_tokens, verify.cost, verify.unfinished) == (2, 10, None, 1)
        assert llm.usage(session) == llm.usage(session, "job")
        assert llm.usage(session, "nothing") == []


def test_imported_calls_count_once(database):
    with database.session() as session:
        assert (
            llm.add_ended(session, "job", [(call(1, None), end(1, 40, "batch")), (call(2), end(2, None, "batch"))]) == 2
        )
        assert llm.add_ended(session, "job", [(call(1, None), end(1, 40, "batch"))]) == 0
        assert llm.spent_of(session, "job") == SpentRecord(2, 40, 1)


def test_reservations_of_several_writers_never_go_over(database):
    accepted = []

    def work(first: int) -> None:
        for number in range(first, first + 20):
            with database.session() as session:
                accepted.append(llm.reserve(session, "job", [call(number)], max_nano=2_500))

    threads = [threading.Thread(target=work, args=(1000 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(accepted) == 25
    with database.reading() as session:
        assert llm.spent_of(session, "job") == SpentRecord(25, 2_500, 0)


def test_many_keys_at_once(database):
    with database.session() as session:
        llm.put_answers(session, [answer(f"key-{n}", "{}") for n in range(12_000)])
        assert len(llm.answers(session, [f"key-{n}" for n in range(50_000)])) == 12_000


@pytest.mark.parametrize("state", ["unknown", ""])
def test_states_are_a_closed_set(database, state):
    from sqlalchemy.exc import IntegrityError

    with pytest.raises(IntegrityError), database.session() as session:
        llm.add_ended(session, "job", [(call(1), end(1, 1, state))])
