"""Stored rankings scored against a new version: the figures that scoring the file there gives, and nobody's secret."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from pipeline.benchmark import TABLES, Benchmark
from pipeline.errors import BenchmarkError
from pipeline.formats.benchmark_validation import build_benchmark
from pipeline.jobs import statistics
from pipeline.jobs.annotations.rescoring import misfits, rescorable, rescore
from pipeline.jobs.benchmark_library import import_into_store, load_benchmark
from pipeline.jobs.first_start import prepared_site
from pipeline.jobs.site import Site, open_site
from pipeline.jobs.submission import SubmissionMetadata, check_run, permalink, publish_run, submit_run, withdraw_run
from store.access import benchmarks, doctor, leaderboard, runs
from store.errors import Conflict, NotFound
from store.records import BenchmarkRecord
from store.settings import Settings

MakeRun = Callable[..., Path]


@pytest.fixture(scope="module")
def prepared_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a site after its first start, made once."""
    home = tmp_path_factory.mktemp("prepared") / "home"
    prepared_site(Settings(home=home)).database.close()
    return home


@pytest.fixture
def sqlite_site(prepared_home: Path, tmp_path: Path) -> Generator[Site]:
    """A site of the test's own: a copy of the prepared one."""
    shutil.copytree(prepared_home, tmp_path / "home")
    made = open_site(Settings(home=tmp_path / "home"))
    yield made
    made.database.close()


def stored(site: Site, name: str) -> BenchmarkRecord:
    with site.database.reading() as session:
        return benchmarks.get(session, name)


def new_version(site: Site, version: str, parent: str = "demo-tools@1", **tables: pl.DataFrame) -> BenchmarkRecord:
    """A version of the demo with other tables: without any combination but C* unless others are given."""
    before = load_benchmark(site, stored(site, parent).id)
    frames = {name: getattr(before, name) for name in TABLES}
    frames |= {"combinations": before.combinations.filter("is_ground_truth"), **tables}
    made: Benchmark = build_benchmark(replace(before.info, version=version, parents=(parent,)), frames)
    return import_into_store(site, made)


def land(site: Site, path: Path, name: str, *, publish: bool = True, person: str = "local") -> str:
    metadata = SubmissionMetadata(retriever=name, contact="me@example.org", person=person)
    return submit_run(site, check_run(site, path, "demo-tools@1"), path, metadata, publish=publish)


def figures(site: Site, run_id: str) -> pl.DataFrame:
    with site.database.reading() as session:
        return runs.summaries(session, run_id)


def test_a_run_gets_the_figures_that_its_file_would_get(site: Site, demo_run_file: MakeRun) -> None:
    path = demo_run_file(site)
    old = land(site, path, "Mine")
    version = new_version(site, "2")
    (pair,) = rescore(site, version.id)
    assert (pair.old.id, pair.is_new) == (old, True)
    new = pair.new
    expected = check_run(site, path, "demo-tools@2").summary
    assert expected is not None
    told = expected.with_columns(pl.col("domain").fill_null(""))
    columns = ["view", "metric", "k", "average", "domain", "value", "n"]
    assert figures(site, new.id).select(columns).sort(columns).rows() == told.select(columns).sort(columns).rows()
    view = pl.col("view") == "new"
    assert figures(site, new.id).filter(view)["value"].mean() < figures(site, old).filter(view)["value"].mean()
    assert new.benchmark_hash == version.content_hash and new.ranking_hash == pair.old.ranking_hash
    assert new.raw_artifact == pair.old.raw_artifact and new.published_at == pair.old.published_at
    assert any(f"re-scored from run {old} of demo-tools@1" in note for note in new.notes)
    with site.database.reading() as session:
        assert leaderboard.leaderboard(session, version.id)["run_id"].to_list() == [new.id]
        assert runs.get(session, old) == pair.old, "the old run stays as it is"
        assert doctor.check_integrity(session, site.artifacts).ok

    # Again, in every way: nothing new.
    assert rescorable(site, version.id) == [] and rescore(site, version.id) == []
    (again,) = rescore(site, version.id, [old])
    assert (again.new.id, again.is_new) == (new.id, False)
    # Statistics come as for any run.
    assert new.id in statistics.pending(site, version.id).runs
    assert statistics.compute(site, statistics.pending(site, version.id), lambda line: None) == []
    assert figures(site, new.id)["low"].null_count() < figures(site, new.id).height


def test_a_private_run_stays_its_owners(sqlite_site: Site, demo_run_file: MakeRun) -> None:
    site = sqlite_site
    path = demo_run_file(site)
    theirs = land(site, path, "Theirs", publish=False, person="ada")
    other = land(site, demo_run_file(site, 1, name="other.trec"), "Other", publish=False, person="bob")
    version = new_version(site, "2")
    assert rescorable(site, version.id) == []
    assert [run.id for run in rescorable(site, version.id, person="ada")] == [theirs]
    for person in ("bob", None):
        for unseen in (theirs, "nothing here"):
            with pytest.raises(NotFound, match=f"^no run {unseen} that you may see$"):
                rescore(site, version.id, [unseen], person=person)
    (pair,) = rescore(site, version.id, person="ada")
    assert (pair.new.visibility, pair.new.state) == ("private", "scored")
    assert any("re-scored from a run of demo-tools@1" in note for note in pair.new.notes)
    assert not any(theirs in note for note in pair.new.notes), "published alone, it does not tell of the other"
    tokens = [permalink(site, run_id).split("token=")[1] for run_id in (theirs, pair.new.id)]
    assert tokens[0] != tokens[1]
    with site.database.reading() as session:
        assert runs.get_shown(session, pair.new.id, token=tokens[1]).id == pair.new.id
        assert runs.get_shown(session, pair.new.id, person="ada").id == pair.new.id
        for who in ({}, {"person": "bob"}, {"token": tokens[0]}):
            with pytest.raises(NotFound):
                runs.get_shown(session, pair.new.id, **who)
        mine = runs.list_runs(session, person="ada", benchmark_version_id=version.id)
        assert mine["run_id"].to_list() == [pair.new.id]
        assert leaderboard.leaderboard(session, version.id).height == 0
    # The same ranking, submitted in public by somebody else, is another run and hides neither.
    public = land(site, path, "Theirs")
    assert [run.id for run in rescorable(site, version.id, person="ada")] == [public]
    made = rescore(site, version.id, everybodys=True)
    assert {one.old.id for one in made} == {public, other}


def test_withdrawn_runs_are_left_alone(sqlite_site: Site, demo_run_file: MakeRun) -> None:
    site = sqlite_site
    run_id = land(site, demo_run_file(site), "Mine")
    version = new_version(site, "2")
    withdraw_run(site, run_id)
    assert rescorable(site, version.id, everybodys=True) == []
    with pytest.raises(Conflict, match="withdrawn: publish it first"):
        rescore(site, version.id, [run_id], everybodys=True)
    publish_run(site, run_id)
    (pair,) = rescore(site, version.id)
    # Taken back on the new version, it does not come back by itself.
    withdraw_run(site, pair.new.id)
    assert rescorable(site, version.id) == [] and rescore(site, version.id) == []
    with pytest.raises(Conflict, match="became there was withdrawn; only its owner"):
        rescore(site, version.id, [run_id])
    with pytest.raises(Conflict, match=f"publish run {pair.new.id} to bring it back"):
        rescore(site, version.id, [run_id], everybodys=True)


def test_a_grandchild_takes_each_ranking_once(sqlite_site: Site, demo_run_file: MakeRun) -> None:
    site = sqlite_site
    land(site, demo_run_file(site), "Mine")
    second = new_version(site, "2")
    rescore(site, second.id)
    third = new_version(site, "3", "demo-tools@2", combinations=load_benchmark(site, second.id).combinations.head(0))
    assert len(rescorable(site, third.id)) == 1
    assert len(rescore(site, third.id)) == 1 and rescore(site, third.id) == []


def test_other_queries_or_tools_are_named(sqlite_site: Site, demo_run_file: MakeRun) -> None:
    site = sqlite_site
    run_id = land(site, demo_run_file(site), "Mine")
    before = load_benchmark(site, stored(site, "demo-tools@1").id)
    more = before.tools.head(1).with_columns(tool_id=pl.lit("brand.new"))
    version = new_version(site, "2", tools=pl.concat([before.tools, more]))
    assert rescorable(site, version.id) == []
    said = 'demo-tools@2 has other tools, 1 that demo-tools@1 has not ("brand.new")'
    assert any(said in line and line.startswith("1 run of") for line in misfits(site, version.id))
    with pytest.raises(BenchmarkError) as error:
        rescore(site, version.id, [run_id])
    assert said in str(error.value)
    with site.database.reading() as session:
        assert leaderboard.leaderboard(session, version.id).height == 0
