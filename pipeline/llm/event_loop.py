"""The one event loop on which this process asks models, in a thread of its own.

Threads that ask at the same time share it, and with it connections, the providers' turns and questions in flight.
"""

from __future__ import annotations

import asyncio
import os
import threading

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_process = 0


def asking_loop() -> asyncio.AbstractEventLoop:
    """The loop; started at the first call in a process, also after a fork."""
    global _loop, _process
    with _lock:
        if _loop is None or _process != os.getpid():
            _loop, _process = asyncio.new_event_loop(), os.getpid()
            threading.Thread(target=_loop.run_forever, name="language models", daemon=True).start()
        return _loop
