"""The process beside which the web server and the worker run, with small programs in their place."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.jobs.supervisor import supervisor_command

REPOSITORY = Path(__file__).resolve().parents[3]

CHILD = """
import os, signal, sys, time
name = sys.argv[1]
def stop(number, frame):
    open(f"{name}-stopped", "w").close()
    sys.exit(7 if name == "web" else 0)
signal.signal(signal.SIGTERM, stop)
with open(f"{name}-pids", "a") as file:
    file.write(f"{os.getpid()}\\n")
time.sleep(60)
"""


class Supervised:
    """A supervisor and its two children."""

    def __init__(self, folder: Path) -> None:
        (folder / "child.py").write_text(CHILD)
        self.folder = folder
        child = [sys.executable, str(folder / "child.py")]
        command = supervisor_command([*child, "web"], [*child, "worker"], folder)
        self.process = subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.PIPE, text=True)

    def pids(self, name: str, count: int) -> list[int]:
        """The processes that ``name`` had, once there are ``count``."""
        file = self.folder / f"{name}-pids"
        deadline = time.monotonic() + 20
        while True:
            pids = [int(line) for line in file.read_text().split()] if file.exists() else []
            if len(pids) >= count:
                return pids
            assert time.monotonic() < deadline, f"{name} did not start"
            time.sleep(0.05)


def gone(pid: int) -> bool:
    """Whether the process ended (a zombie has)."""
    try:
        return "Z" in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return True


def until_gone(pid: int) -> None:
    deadline = time.monotonic() + 10
    while not gone(pid):
        assert time.monotonic() < deadline, f"process {pid} still runs"
        time.sleep(0.05)


def test_a_killed_worker_starts_again_and_sigterm_stops_all(tmp_path: Path) -> None:
    supervised = Supervised(tmp_path)
    supervised.pids("web", 1)
    (first,) = supervised.pids("worker", 1)
    os.kill(first, signal.SIGKILL)
    second = supervised.pids("worker", 2)[1]
    supervised.process.terminate()
    _, errors = supervised.process.communicate(timeout=20)
    assert supervised.process.returncode == 7, errors
    assert "killed by signal 9" in errors
    assert (tmp_path / "worker-stopped").exists() and gone(second)


def test_the_worker_ends_with_the_web_server(tmp_path: Path) -> None:
    supervised = Supervised(tmp_path)
    (web,) = supervised.pids("web", 1)
    (worker,) = supervised.pids("worker", 1)
    os.kill(web, signal.SIGKILL)
    supervised.process.communicate(timeout=20)
    assert supervised.process.returncode == 128 + 9
    assert gone(worker)


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels do not end children with their parent")
def test_nothing_is_left_when_serve_itself_is_killed(tmp_path: Path) -> None:
    supervised = Supervised(tmp_path)
    (web,) = supervised.pids("web", 1)
    (worker,) = supervised.pids("worker", 1)
    supervised.process.kill()
    supervised.process.communicate()
    until_gone(web)
    until_gone(worker)
