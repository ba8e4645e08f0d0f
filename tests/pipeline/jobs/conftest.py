"""A prepared site on SQLite and on PostgreSQL, and run files for its demo benchmark."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pipeline.jobs.benchmark_library import load_benchmark
from pipeline.jobs.first_start import prepared_site
from pipeline.jobs.site import Site
from store.access import benchmarks
from store.settings import Settings
from tests.databases import new_database
from tests.started_home import copy_home

BACKENDS = [pytest.param("sqlite"), pytest.param("postgresql", marks=pytest.mark.postgres)]


@pytest.fixture(params=BACKENDS)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Site]:
    """A site as it is after the first start."""
    with ExitStack() as stack:
        url = ""
        if request.param == "postgresql":
            started = request.getfixturevalue("started_postgres")
            server = request.getfixturevalue("postgres_server")
            url = stack.enter_context(new_database(server, urlsplit(started.database_url).path[1:]))
        else:
            started = request.getfixturevalue("started")
        made = prepared_site(copy_home(started, tmp_path / "home", database_url=url))
        stack.callback(made.database.close)
        yield made


@pytest.fixture
def sqlite_site(tmp_path: Path, started: Settings) -> Generator[Site]:
    """The same on SQLite only, where the database makes no difference."""
    made = prepared_site(copy_home(started, tmp_path / "home"))
    yield made
    made.database.close()


@pytest.fixture
def demo_run_file(tmp_path: Path) -> Callable[..., Path]:
    """Makes run files for ``demo-tools``; another ``shift`` is another ranking."""

    def make(site: Site, shift: int = 0, depth: int = 12, name: str = "run.trec") -> Path:
        with site.database.reading() as session:
            version = benchmarks.get(session, "demo-tools")
        content = load_benchmark(site, version.id)
        tools = content.tools["tool_id"].to_list()
        lines = [
            f"{query} Q0 {tools[(row * 7 + shift + place) % len(tools)]} {place + 1} {100 - place} made{shift}\n"
            for row, query in enumerate(content.queries["query_id"])
            for place in range(depth)
        ]
        path = tmp_path / name
        path.write_text("".join(lines), encoding="utf-8")
        return path

    return make
