"""Turns at a provider: so many requests open at a time, so many begun in a minute, none while it asked us to wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pipeline.llm.config import ProviderLimit


class ProviderGate:
    """The turns of one provider; lives on one event loop."""

    def __init__(self, limit: ProviderLimit) -> None:
        """Nothing is open yet."""
        self._open = asyncio.Semaphore(limit.concurrency)
        self._spacing = 60.0 / limit.per_minute if limit.per_minute else 0.0
        self._next_start = 0.0
        self._closed_until = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Wait for a turn and hold it."""
        async with self._open:
            await self._wait()
            yield

    def close_for(self, seconds: float) -> None:
        """The provider asked for a pause: nobody begins before it is over."""
        self._closed_until = max(self._closed_until, asyncio.get_running_loop().time() + seconds)

    async def _wait(self) -> None:
        clock = asyncio.get_running_loop().time
        while (pause := self._closed_until - clock()) > 0:
            await asyncio.sleep(pause)
        if self._spacing:
            start = max(clock(), self._next_start)
            self._next_start = start + self._spacing
            await asyncio.sleep(start - clock())
