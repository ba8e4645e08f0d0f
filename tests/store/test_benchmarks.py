from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from store.access import benchmarks, runs
from store.access.benchmarks import BenchmarkName
from store.errors import ArtifactMissing, Conflict, InvalidRecord, NotFound
from store.models import BenchmarkVersion
from store.records import Count


def _version(**fields):
    return BenchmarkVersion(**{"slug": "demo", "version": "1", "title": "Demo", "kind": "tool"} | fields)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("demo", BenchmarkName("demo")),
        ("demo@1.0", BenchmarkName("demo", "1.0")),
        (" tool-eq@2026-09 ", BenchmarkName("tool-eq", "2026-09")),
    ],
)
def test_names_are_read(text, name):
    assert benchmarks.parse_name(text) == name
    assert str(name) == text.strip()


@pytest.mark.parametrize("text", ["", "@1", "demo@", "Demo", "../demo", "de mo"])
def test_other_text_is_no_name(text):
    with pytest.raises(NotFound):
        benchmarks.parse_name(text)


def test_a_version_comes_back_as_a_record(database, artifacts):
    tools = artifacts.put_frame(pl.DataFrame({"tool_id": ["a"]}))
    with database.session() as session:
        added = benchmarks.add_version(
            session,
            _version(
                content_hash="a" * 64, artifacts={"tools": tools}, parents=["old@1"], notes=["two rows merged"],
                domains=[{"name": "web", "n": 2}, {"name": "", "n": None}], statistics={"tools_per_query": 1.5},
            ),
            artifacts=artifacts,
        )  # fmt: skip
    with database.reading() as session:
        assert benchmarks.get(session, "demo@1") == added
        assert benchmarks.get_by_id(session, added.id) == added
        assert benchmarks.with_content(session, "a" * 64) == [added]
    assert added.name == "demo@1"
    assert added.has_content
    assert added.domains == (Count("web", 2), Count("", None))
    assert added.parents == ("old@1",)
    assert added.statistics == {"tools_per_query": 1.5}
    assert added.ks == (1, 5, 10, 20)
    assert added.created_at.utcoffset() == timedelta(0)


def test_without_a_version_the_newest_is_meant(database):
    early = datetime(2026, 1, 1, tzinfo=UTC)
    with database.session() as session:
        benchmarks.add_version(session, _version(version="10", created_at=early + timedelta(days=1)))
        benchmarks.add_version(session, _version(version="9", created_at=early))
    with database.reading() as session:
        assert benchmarks.get(session, "demo").version == "10"
        assert benchmarks.get(session, "demo", "9").version == "9"
        assert [item.version for item in benchmarks.list_records(session, "demo")] == ["10", "9"]


def test_an_unknown_name_lists_what_there_is(database):
    with database.session() as session:
        benchmarks.add_version(session, _version())
        with pytest.raises(NotFound, match=r"no benchmark other@3 is stored; stored are: demo@1"):
            benchmarks.get(session, "other@3")
        with pytest.raises(NotFound):
            benchmarks.get_by_id(session, 999)


def test_content_never_changes(database):
    with database.session() as session:
        first = benchmarks.add_version(session, _version(content_hash="a" * 64))
        assert benchmarks.add_version(session, _version(content_hash="a" * 64, title="Other")) == first
        with pytest.raises(Conflict, match="new version"):
            benchmarks.add_version(session, _version(content_hash="b" * 64))
        benchmarks.upsert_description(session, _version(content_hash="b" * 64, title="Renamed", queries=5))
    with database.reading() as session:
        stored = benchmarks.get(session, "demo")
    assert (stored.content_hash, stored.title, stored.queries) == ("a" * 64, "Renamed", None)


def test_a_version_without_content_takes_it_once(database):
    with database.session() as session:
        benchmarks.upsert_description(session, _version(queries=7, domains=[{"name": "code", "n": 7}]))
        benchmarks.upsert_description(session, _version(queries=8, domains=[{"name": "code", "n": 8}]))
        stored = benchmarks.get(session, "demo")
        assert (stored.has_content, stored.queries, stored.domains) == (False, 8, (Count("code", 8),))
        filled = benchmarks.add_version(session, _version(content_hash="a" * 64, queries=9))
        assert filled.id == stored.id
        assert (filled.has_content, filled.queries) == (True, 9)


def test_no_row_without_its_artifacts(database, artifacts):
    with database.session() as session:
        with pytest.raises(ArtifactMissing):
            benchmarks.add_version(session, _version(artifacts={"tools": "0" * 64}), artifacts=artifacts)
        with pytest.raises(InvalidRecord):
            benchmarks.add_version(session, _version(artifacts={"tools": "0" * 64}))
    with database.reading() as session:
        assert benchmarks.list_records(session) == []


@pytest.mark.parametrize("fields", [{"slug": "Demo"}, {"slug": ""}, {"version": ""}, {"version": "1@2"}])
def test_names_that_could_not_be_typed_are_refused(database, fields):
    with database.session() as session, pytest.raises(InvalidRecord):
        benchmarks.add_version(session, _version(**fields))


def test_the_listing_counts_what_the_board_shows(database, artifacts, benchmark, new_run, figures):
    with database.session() as session:
        for fields in ({"state": "published"}, {"state": "scored"}, {"state": "published", "visibility": "private"}):
            runs.add_run(session, new_run(**fields), figures(0.5, 0.6), artifacts=artifacts)
        reported = new_run(state="published", provenance="reported", ranking_artifact=None, place="Table 1")
        runs.add_run(session, reported, figures(0.5, None))
        listed = benchmarks.list_versions(session)
    assert listed.select("name", "domains", "runs", "reported_runs").row(0) == ("weather@1.0", ["web", "code"], 2, 1)
