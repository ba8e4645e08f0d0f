"""A real server in a process of its own, and a real browser."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.jobs.first_start import demo_run, prepared_site
from pipeline.jobs.submission import SubmissionMetadata, check_run, submit_run
from store.settings import Settings
from tests.dashboard.measured_runs import measured
from tests.e2e.pages import PATIENCE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

REPOSITORY = Path(__file__).resolve().parents[2]
CHROMIUM = Path(os.environ.get("EQUIRANK_TEST_CHROMIUM", "/usr/bin/chromium"))
EQUIRANK = [sys.executable, "-m", "pipeline.cli"]


def free_port() -> int:
    """A loopback port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Served:
    """A site with its own home folder, served at ``url``."""

    def __init__(self, home: Path, database_url: str) -> None:
        """Choose a port; nothing is started yet."""
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.home = home
        self.environment = os.environ | {
            "EQUIRANK_HOME": str(home),
            "EQUIRANK_DATABASE_URL": database_url,
            "EQUIRANK_PUBLIC_URL": self.url,
            "EQUIRANK_DEMO_RUNS": "false",
        }

    def equirank(self, *words: str) -> str:
        """Run a verb of the command line on this site; returns what it prints."""
        done = subprocess.run(
            [*EQUIRANK, *words], cwd=REPOSITORY, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def running(self) -> Generator[None]:
        """The server, from its first good health answer until it has stopped."""
        log = self.home.parent / "server.log"
        with log.open("wb") as written:
            server = subprocess.Popen(
                [*EQUIRANK, "serve", "--port", str(self.port)],
                cwd=REPOSITORY, env=self.environment, stdout=written, stderr=written,
            )  # fmt: skip
        try:
            deadline = time.monotonic() + 120
            while not self._healthy():
                if server.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the server did not start:\n{log.read_text()}")
                time.sleep(0.2)
            yield
        finally:
            server.terminate()
            try:
                server.wait(timeout=20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()

    def _healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


@dataclass(frozen=True)
class Board:
    """A served site that tests only read, and a run on it."""

    url: str
    run: str


@pytest.fixture(scope="session")
def board(tmp_path_factory: pytest.TempPathFactory) -> Generator[Board]:
    """One server for all tests that change nothing others see; four runs of the demo tools, two of them measured."""
    folder = tmp_path_factory.mktemp("board")
    served = Served(folder / "home", "")
    site = prepared_site(Settings(home=served.home))
    # The second run lacks every tenth line, so that the two differ at some queries.
    thinned = folder / "thinned.trec"
    lines = demo_run("tools").read_text().splitlines(True)
    thinned.write_text("".join(line for n, line in enumerate(lines) if n % 10 != 1))
    runs = []
    for name, file in (("BM25 sample", demo_run("tools")), ("BM25 sample, thinned", thinned)):
        checked = check_run(site, file, "demo-tools@1")
        runs.append(submit_run(site, checked, file, SubmissionMetadata(retriever=name), publish=True))
    for method in ("full-doc", "mftr"):
        measured(site, method)
    site.database.close()
    with served.running():
        yield Board(served.url, runs[0])


@pytest.fixture
def new_site(tmp_path: Path) -> Callable[..., Served]:
    """Make a site: on SQLite, or on the database that is named."""
    return lambda database_url="": Served(tmp_path / "home", database_url)


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """Chromium without a window, for one file: while Playwright runs, no other test could start an event loop."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    if not CHROMIUM.exists():
        pytest.skip("chromium is not installed (apt-get install chromium)")
    with sync_playwright() as started:
        launched = started.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield launched
        launched.close()
