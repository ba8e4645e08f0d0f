"""How the site is started: the web server, and on an embedded store one worker beside it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

from pipeline.errors import EnvironmentProblem
from store.settings import Settings

#: Seconds before a worker that ended is started again: at first, and at most. A worker that held out long enough
#: starts from the first again.
_BACKOFF = (0.5, 30.0)
_HELD_OUT_SECONDS = 60.0
#: Seconds that children get to stop in order.
_GRACE_SECONDS = 15.0
_PR_SET_PDEATHSIG = 1


def server_command(settings: Settings, host: str, port: int) -> tuple[list[str], dict[str, str], Path]:
    """The command, its extra environment and the folder to start it in.

    The dashboard is found by name and started as a program of its own: this floor does not import it.

    Raises:
        EnvironmentProblem: the dashboard is not installed.
    """
    found = find_spec("dashboard")
    if found is None or found.origin is None:
        raise EnvironmentProblem("the dashboard is not installed: pip install equirank, or run from a checkout")
    folder = Path(found.origin).parent
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        str(folder / "asgi.py"),
        f"--server.address={host}",
        f"--server.port={port}",
        "--server.headless=true",
        f"--server.maxUploadSize={settings.limit_upload_mb}",
    ]
    # Streamlit reads .streamlit/config.toml (theme, security) from the folder that it starts in.
    environment = {"EQUIRANK_HOST": host, "EQUIRANK_PORT": str(port), "EQUIRANK_HOME": str(settings.home)}
    return command, environment, folder.parent


def worker_command() -> list[str]:
    """The embedded worker, which ends with this process."""
    return [sys.executable, "-m", "pipeline.jobs.worker", str(os.getpid())]


class Supervisor:
    """Runs a web server and a worker as children until the web server ends.

    SIGTERM and SIGINT go on to both; a worker that ends is started again, slower each time; when the web server ends,
    the worker is stopped and the server's exit code is ours.

    Args:
        web: the server's command.
        worker: the worker's command.
        environment: of both.
        folder: where both start.
        say: told in words what happens.
    """

    def __init__(
        self,
        web: list[str],
        worker: list[str],
        *,
        environment: Mapping[str, str],
        folder: Path,
        say: Callable[[str], None],
    ) -> None:
        self._web_command = web
        self._worker_command = worker
        self._environment = dict(environment)
        self._folder = folder
        self._say = say
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
                    self._say(f"the worker ended ({_how(self._worker.returncode)}); starting it again in {delay:g} s")
                again, delay = now + delay, min(_BACKOFF[1], 2 * delay)
            if again is not None and now >= again and not self._stopping:
                self._worker = self._start(self._worker_command)
                again, started = None, now
        self._stopping = True
        self._stop_worker()
        return code if code >= 0 else 128 - code

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, env=self._environment, cwd=self._folder, preexec_fn=_die_with_parent)

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
