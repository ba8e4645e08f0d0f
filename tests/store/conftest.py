"""A migrated database on SQLite and on PostgreSQL, an artifact store, and rows to start from."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator
from pathlib import Path

import polars as pl
import pytest

from store.access import benchmarks, retrievers
from store.artifacts import ArtifactStore
from store.database import Database
from store.models import BenchmarkVersion, Retriever, Run
from store.records import BenchmarkRecord, RetrieverRecord, Summary
from store.settings import Settings
from tests.databases import new_database

BACKENDS = [pytest.param("sqlite"), pytest.param("postgresql", marks=pytest.mark.postgres)]


@pytest.fixture(params=BACKENDS)
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Settings]:
    """Settings for an empty home, and for a database that has tables where the test asks for ``database``."""
    tables = "database" in request.fixturenames
    if request.param == "postgresql":
        template = request.getfixturevalue("migrated_postgres") if tables else "template1"
        with new_database(request.getfixturevalue("postgres_server"), template) as url:
            yield Settings(home=tmp_path / "home", database_url=url)
    else:
        if tables:
            shutil.copytree(request.getfixturevalue("migrated").home, tmp_path / "home")
        yield Settings(home=tmp_path / "home")


@pytest.fixture
def database(settings: Settings) -> Generator[Database]:
    """The database of the settings with its tables."""
    made = Database(settings)
    yield made
    made.close()


@pytest.fixture
def artifacts(settings: Settings) -> ArtifactStore:
    return ArtifactStore.from_settings(settings)


@pytest.fixture
def benchmark(database: Database) -> BenchmarkRecord:
    """A tool benchmark with content and two domains."""
    with database.session() as session:
        return benchmarks.add_version(
            session,
            BenchmarkVersion(
                slug="weather", version="1.0", title="Weather tools", kind="tool", headline="macro",
                content_hash="c" * 64, queries=10, tools=30,
                domains=[{"name": "web", "n": 6}, {"name": "code", "n": 4}],
            ),
        )  # fmt: skip


@pytest.fixture
def retriever(database: Database) -> RetrieverRecord:
    with database.session() as session:
        return retrievers.upsert(session, Retriever(key="bm25", name="BM25", family="lexical"))


@pytest.fixture
def ranking(artifacts: ArtifactStore) -> str:
    """The hash of a stored ranking."""
    return artifacts.put_frame(pl.DataFrame({"query_id": ["q1"], "tool_id": ["t1"], "score": [1.0]}))


@pytest.fixture
def new_run(benchmark: BenchmarkRecord, retriever: RetrieverRecord, ranking: str) -> Callable[..., Run]:
    """Makes unsaved uploaded runs; keywords replace fields."""

    def make(**fields: object) -> Run:
        defaults: dict[str, object] = {
            "benchmark_version_id": benchmark.id,
            "retriever_id": retriever.id,
            "provenance": "uploaded",
            "ranking_artifact": ranking,
            "ranking_hash": "r" * 64,
            "queries_total": 10,
            "queries_answered": 10,
        }
        return Run(**defaults | fields)

    return make


@pytest.fixture
def figures() -> Callable[..., list[Summary]]:
    """Makes the macro figure in both views; None leaves a view out."""

    def make(old: float | None, new: float | None, *, metric: str = "NDCG", k: int = 10) -> list[Summary]:
        both = (("old", old), ("new", new))
        return [Summary(view, metric, k, "macro", value, n=10) for view, value in both if value is not None]

    return make
