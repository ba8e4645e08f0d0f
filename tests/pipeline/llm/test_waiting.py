"""Waiting for a provider, and for calls in flight: never without end."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from pipeline.llm.ledger import Ledger
from pipeline.llm.memory import MemoryAnswers
from pipeline.llm.stores import Budget, CallState, EndedCall, PlannedCall
from pipeline.llm.waiting import LONGEST_RETRY_AFTER, parse_retry_after


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("2.5", 2.5),
        ("-3", 0.0),
        ("1e9", LONGEST_RETRY_AFTER),
        ("inf", LONGEST_RETRY_AFTER),
        ("nan", None),
        ("soon", None),
        ("", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_RETRY_AFTER),
        (f"Wed, 21 Oct 2015 07:28:00 +{'9' * 30}", None),
    ],
)
def test_no_header_makes_us_wait_for_ever(told, seconds):
    assert parse_retry_after(told) == seconds


def test_a_date_is_counted_from_now():
    in_a_minute = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert parse_retry_after(in_a_minute) == pytest.approx(60, abs=10)


def test_an_end_that_cannot_be_written_keeps_nobody_waiting():
    loop = refused = None

    class Full(MemoryAnswers):
        def record(self, budget, *, ended=(), outcomes=(), planned=()):
            if ended:
                raise OSError("no space left")
            taken = super().record(budget, outcomes=outcomes, planned=planned)
            if planned and not taken:
                loop.call_soon_threadsafe(refused.set)
            return taken

    def call(name):
        return PlannedCall(name, "key", "test", "openai/gpt-4o-mini", 1, 0)

    async def work():
        nonlocal loop, refused
        loop, refused = asyncio.get_running_loop(), asyncio.Event()
        ledger = Ledger(Full(), Budget("job", max_calls=1))
        assert await ledger.reserve(call("first"))
        waiting = asyncio.create_task(ledger.reserve(call("second")))
        await refused.wait()
        with pytest.raises(OSError, match="no space"):
            await ledger.settle(EndedCall("first", CallState.DONE, 1, 1, 0.0, 0.1))
        return await asyncio.wait_for(waiting, 10)

    assert asyncio.run(work()) is False
