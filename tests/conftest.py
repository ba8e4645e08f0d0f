"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from store.database import Database
from store.settings import Settings
from tests.databases import new_database

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real inputs beside the checkout; tests that need it skip where it is absent."""
    folder = Path(os.environ.get("EQUIRANK_SHARED", REPOSITORY.parent / "shared"))
    if not folder.is_dir():
        pytest.skip("the real inputs (../shared) are not here")
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, so that processes which share the files end at about the same time."""

    def files(mark: str) -> set[Path]:
        return {item.path for item in items if item.get_closest_marker(mark) is not None}

    browser, slow = files("browser"), files("slow")
    items.sort(key=lambda item: (item.path not in browser, item.path not in slow))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Under ``EQUIRANK_REQUIRE_ALL=1`` (as in CI) a skipped test is a failed one."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("EQUIRANK_REQUIRE_ALL") == "1":
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped although everything is required: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def postgres_server() -> Generator[str]:
    """Address of a PostgreSQL server whose user may create databases.

    ``EQUIRANK_TEST_POSTGRES`` where it is set; else a throwaway cluster on a free loopback port, made with the
    binaries of Debian's package ``postgresql`` and stopped at the end.
    """
    given = os.environ.get("EQUIRANK_TEST_POSTGRES")
    if given:
        yield given
        return
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not found:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql), and EQUIRANK_TEST_POSTGRES is not set")
    with throwaway_postgres(found[-1].parent) as url:
        yield url


@contextmanager
def throwaway_postgres(binaries: Path) -> Generator[str]:
    """Run a new cluster in a temporary folder; PostgreSQL refuses root, so root runs it as user postgres."""
    as_user: dict[str, Any] = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="equirank-postgres-"))
    try:
        if as_user:
            shutil.chown(folder, "postgres", "postgres")
        data = folder / "data"
        subprocess.run(
            [binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"],
            check=True, capture_output=True, cwd=folder, **as_user,
        )  # fmt: skip
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        options = {"listen_addresses": "127.0.0.1", "unix_socket_directories": str(folder), "fsync": "off"}
        command = [binaries / "postgres", "-D", data, "-p", str(port)]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, **as_user)
        try:
            ready = [binaries / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
            deadline = time.monotonic() + 60
            while subprocess.run(ready, check=False).returncode != 0:
                if server.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"PostgreSQL did not start: {(folder / 'log').read_text()}")
                time.sleep(0.1)
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
        finally:
            server.send_signal(signal.SIGINT)  # PostgreSQL's fast shutdown
            try:
                server.wait(timeout=30)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres_server: str) -> Generator[str]:
    """Address of a new, empty PostgreSQL database of this test's own."""
    with new_database(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A home that has the tables of this program, to copy: migrating takes longer than many a test."""
    settings = Settings(home=tmp_path_factory.mktemp("migrated"))
    migrate(settings)
    return settings


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server: str) -> Generator[str]:
    """Name of a PostgreSQL database with the same."""
    with new_database(postgres_server) as url:
        migrate(Settings(database_url=url))
        yield urlsplit(url).path[1:]


def migrate(settings: Settings) -> None:
    database = Database(settings)
    database.migrate()
    database.close()


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A home as it is after the first start, to copy with ``copy_home``."""
    settings = Settings(home=tmp_path_factory.mktemp("started"))
    start(settings)
    return settings


@pytest.fixture(scope="session")
def started_postgres(postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> Generator[Settings]:
    """The same on PostgreSQL."""
    with new_database(postgres_server) as url:
        settings = Settings(home=tmp_path_factory.mktemp("started-postgres"), database_url=url)
        start(settings)
        yield settings


def start(settings: Settings) -> None:
    from pipeline.jobs.first_start import prepared_site

    prepared_site(settings).database.close()
