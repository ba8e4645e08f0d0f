"""The process beside which the web server and the worker run.

``equirank serve`` becomes this program once everything is prepared, so it imports nothing but the standard library:
it lives as long as the site and should weigh nothing.
"""

from __future__ import annotations

import ctypes
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

#: Seconds before a worker that ended is started again: at first, and at most. A worker that held out long enough
#: starts from the first again.
_BACKOFF = (0.5, 30.0)
_HELD_OUT_SECONDS = 60.0
#: Seconds that the worker gets to stop in order.
_GRACE_SECONDS = 15.0
_PR_SET_PDEATHSIG = 1


class Supervisor:
    """Runs a web server and a worker as children until the web server ends.

    SIGTERM and SIGINT go on to both; a worker that ends is started again, slower each time; when the web server ends,
    the worker is stopped and the server's exit code is ours.

    Args:
        web: the server's command.
        worker: the worker's command.
        folder: where both start.
    """

    def __init__(self, web: list[str], worker: list[str], folder: Path) -> None:
        self._web_command = web
        self._worker_command = worker
        self._folder = folder
        self._worker: subprocess.Popen[bytes] | None = None
        self._stopping = False

    def run(self) -> int:
        """Start both and stay until the web server has ended; returns its exit code."""
        web = self._start(self._web_command)
        self._worker = self._start(self._worker_command)

        def forward(number: int, frame: FrameType | None) -> None:
            del frame
            self._stopping = True
            for child in (web, self._worker):
                if child is not None and child.poll() is None:
                    child.send_signal(number)

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, forward)
        delay, started = _BACKOFF[0], time.monotonic()
        again: float | None = None
        while True:
            try:
                code = web.wait(timeout=0.25)
                break
            except subprocess.TimeoutExpired:
                pass
            now = time.monotonic()
            if again is None and self._worker is not None and self._worker.poll() is not None:
                if now - started > _HELD_OUT_SECONDS:
                    delay = _BACKOFF[0]
                if not self._stopping:
                    _say(f"the worker ended ({_how(self._worker.returncode)}); starting it again in {delay:g} s")
                again, delay = now + delay, min(_BACKOFF[1], 2 * delay)
            if again is not None and now >= again and not self._stopping:
                self._worker = self._start(self._worker_command)
                again, started = None, now
        self._stopping = True
        self._stop_worker()
        return code if code >= 0 else 128 - code

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, cwd=self._folder, preexec_fn=_die_with_parent)

    def _stop_worker(self) -> None:
        if self._worker is None or self._worker.poll() is not None:
            return
        self._worker.terminate()
        try:
            self._worker.wait(timeout=_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._worker.kill()
            self._worker.wait()


def _how(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


def _die_with_parent() -> None:
    """In a child before its program starts: have the kernel end it when ``equirank serve`` is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def supervisor_command(web: list[str], worker: list[str], folder: Path) -> list[str]:
    """The command that runs ``web`` and ``worker`` in ``folder``."""
    return [sys.executable, "-m", "pipeline.jobs.supervisor", json.dumps(web), json.dumps(worker), str(folder)]


def main() -> None:
    """Run what ``supervisor_command`` named."""
    web, worker, folder = sys.argv[1:]
    sys.exit(Supervisor(json.loads(web), json.loads(worker), Path(folder)).run())


if __name__ == "__main__":
    main()
