"""Writes of many workers in few transactions.

A worker goes on only after its write is committed; whatever piles up meanwhile is the next transaction. So a kill
loses at most what is in flight, and a disk that takes long to sync does not slow the work down.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from pipeline.llm.stores import AnswerStore, Budget, EndedCall, PlannedCall, StoredOutcome


@dataclass
class _Write:
    future: asyncio.Future[bool]
    planned: PlannedCall | None = None
    ended: EndedCall | None = None
    outcome: StoredOutcome | None = None


class Ledger:
    """The store as the workers of one piece of work see it; lives on one event loop."""

    def __init__(self, store: AnswerStore, budget: Budget) -> None:
        """Nothing is open yet."""
        self._store, self._budget = store, budget
        self._waiting: list[_Write] = []
        self._writer: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        #: Calls that were recorded as sent and have not ended.
        self.open_calls = 0

    async def reserve(self, call: PlannedCall) -> bool:
        """Record the call as sent; waits for calls in flight when only their worst case stands in the way.

        Returns:
            False when the budget does not allow it and nothing in flight could change that.
        """
        while True:
            self._settled.clear()
            if await self._write(_Write(self._future(), planned=call)):
                return True
            if self.open_calls == 0:
                return False
            await self._settled.wait()

    async def settle(self, end: EndedCall, outcome: StoredOutcome | None = None) -> None:
        """Record how a call ended, and perhaps what became of its question."""
        await self._write(_Write(self._future(), ended=end, outcome=outcome))

    @staticmethod
    def _future() -> asyncio.Future[bool]:
        return asyncio.get_running_loop().create_future()

    async def _write(self, write: _Write) -> bool:
        self._waiting.append(write)
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_all())
        return await write.future

    async def _write_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                taken = await asyncio.to_thread(
                    self._store.record,
                    self._budget,
                    ended=[write.ended for write in batch if write.ended],
                    outcomes=[write.outcome for write in batch if write.outcome],
                    planned=[write.planned for write in batch if write.planned],
                )
            except BaseException as error:
                for write in batch:
                    if write.ended is not None:
                        # It has ended, though the store still counts it at its worst: nobody is to wait for it.
                        self.open_calls -= 1
                    if not write.future.done():
                        write.future.set_exception(
                            error if isinstance(error, Exception) else RuntimeError("the writing was cancelled")
                        )
                self._settled.set()
                if not isinstance(error, Exception):
                    raise
                continue
            ended = False
            for write in batch:
                good = True
                if write.planned is not None:
                    good = taken > 0
                    taken -= 1
                    self.open_calls += good
                if write.ended is not None:
                    self.open_calls -= 1
                    ended = True
                if not write.future.done():
                    write.future.set_result(good)
            if ended:
                self._settled.set()
