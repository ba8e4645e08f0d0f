"""A file becomes a leaderboard row whole, or nothing is stored."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from pipeline.errors import BenchmarkError, RunFileError
from pipeline.formats.ranking import ranking_frame
from pipeline.jobs.site import Site
from pipeline.jobs.submission import (
    SubmissionMetadata,
    check_run,
    permalink,
    publish_run,
    submit_run,
    withdraw_run,
)
from pipeline.run import Verdict
from store.access import benchmarks, doctor, leaderboard, retrievers, runs, submissions
from store.errors import Conflict, InvalidRecord, NotFound

MakeRun = Callable[..., Path]
METADATA = SubmissionMetadata(retriever="My Retriever", contact="me@example.org", link="https://example.org")


def board(site: Site) -> list[str]:
    with site.database.reading() as session:
        version = benchmarks.get(session, "demo-tools")
        return leaderboard.leaderboard(session, version.id)["retriever"].to_list()


def test_a_published_run_is_on_the_board_with_everything_behind_it(site: Site, demo_run_file: MakeRun) -> None:
    path = demo_run_file(site)
    checked = check_run(site, path, "demo-tools")
    assert checked.reading.report.verdict is Verdict.ACCEPT
    assert board(site) == []
    run_id = submit_run(site, checked, path, METADATA, publish=True)
    assert board(site) == ["My Retriever"]
    with site.database.reading() as session:
        run = runs.get(session, run_id)
        figures = runs.summaries(session, run_id)
        submission = submissions.of_run(session, run_id)
        integrity = doctor.check_integrity(session, site.artifacts)
    assert checked.summary is not None and checked.scores is not None and checked.reading.run is not None
    expected = checked.summary.select("view", "metric", "k", "average", pl.col("domain").fill_null(""), "value", "n")
    stored = figures.select(expected.columns)
    assert stored.sort(expected.columns).rows() == expected.sort(expected.columns).rows()
    assert site.artifacts.get_bytes(run.raw_artifact or "") == path.read_bytes()
    target = checked.scores.compiled.target
    assert site.artifacts.get_frame(run.ranking_artifact or "").equals(ranking_frame(checked.reading.run, target))
    assert site.artifacts.get_frame(run.per_query_artifact or "").equals(checked.scores.per_query)
    assert run.benchmark_hash == checked.version.content_hash
    assert submission is not None and submission.contact == "me@example.org"
    assert integrity.ok and integrity.checked > 3


def test_a_private_run_is_nowhere_but_under_its_link(sqlite_site: Site, demo_run_file: MakeRun) -> None:
    site = sqlite_site
    path = demo_run_file(site)
    run_id = submit_run(site, check_run(site, path, "demo-tools"), path, METADATA, publish=False)
    assert board(site) == []
    token = permalink(site, run_id).split("token=")[1]
    with site.database.reading() as session:
        assert runs.get_shown(session, run_id, token=token).id == run_id
        for wrong in (None, "", token[:-1]):
            with pytest.raises(NotFound):
                runs.get_shown(session, run_id, token=wrong)
    publish_run(site, run_id)
    assert board(site) == ["My Retriever"]
    assert "token" not in permalink(site, run_id)
    withdraw_run(site, run_id)
    assert board(site) == []


def test_a_refused_file_stores_nothing(sqlite_site: Site, tmp_path: Path) -> None:
    site = sqlite_site
    path = tmp_path / "bad.trec"
    path.write_text("nonsense\n")
    before = sorted(item.hash for item in site.artifacts.stored())
    checked = check_run(site, path, "demo-tools")
    assert checked.reading.report.verdict is Verdict.REFUSE and checked.scores is None
    with pytest.raises(RunFileError, match="refused"):
        submit_run(site, checked, path, METADATA, publish=True)
    assert sorted(item.hash for item in site.artifacts.stored()) == before
    with site.database.reading() as session:
        assert submissions.list_of(session, "local") == []


def test_a_file_that_changes_after_the_check_is_not_published(sqlite_site: Site, demo_run_file: MakeRun) -> None:
    site = sqlite_site
    path = demo_run_file(site)
    checked = check_run(site, path, "demo-tools")
    demo_run_file(site, shift=1)
    with pytest.raises(RunFileError, match="changed"):
        submit_run(site, checked, path, METADATA, publish=True)
    assert board(site) == []


def test_a_file_that_changes_while_it_is_read_is_refused(sqlite_site: Site, demo_run_file: MakeRun) -> None:
    site = sqlite_site
    path = demo_run_file(site)
    other = path.read_bytes().replace(b" 100 ", b" 101 ")

    def overwrite(_: float) -> None:
        path.write_bytes(other)

    with pytest.raises(RunFileError, match="changed while it was read"):
        check_run(site, path, "demo-tools", progress=overwrite)


def test_a_bad_name_leaves_no_trace(sqlite_site: Site, demo_run_file: MakeRun) -> None:
    site = sqlite_site
    path = demo_run_file(site)
    checked = check_run(site, path, "demo-tools")
    with site.database.reading() as session:
        before = retrievers.list_retrievers(session).height
    for name in ("", "   ", "a\u202eb", "x" * 300):
        with pytest.raises(InvalidRecord):
            submit_run(site, checked, path, SubmissionMetadata(retriever=name), publish=True)
    with site.database.reading() as session:
        assert retrievers.list_retrievers(session).height == before
    assert board(site) == []


def test_the_same_ranking_twice_is_flagged(sqlite_site: Site, demo_run_file: MakeRun) -> None:
    site = sqlite_site
    path = demo_run_file(site)
    first = submit_run(site, check_run(site, path, "demo-tools"), path, METADATA, publish=True)
    again = check_run(site, path, "demo-tools")
    assert "identical" in again.reading.report.flags
    assert any(first in note for note in again.reading.report.notes)


def test_streams_and_hostile_file_names(sqlite_site: Site, demo_run_file: MakeRun) -> None:
    site = sqlite_site
    stream = io.BytesIO(demo_run_file(site).read_bytes())
    checked = check_run(site, stream, "demo-tools")
    run_id = submit_run(site, checked, stream, METADATA, publish=True, file_name="../../etc/pass\u202ewd\x00.trec")
    with site.database.reading() as session:
        assert runs.get(session, run_id).raw_name == "passwd.trec"


def test_the_daily_limit_refuses_and_stores_nothing(sqlite_site: Site, demo_run_file: MakeRun) -> None:
    settings = sqlite_site.settings.model_copy(update={"limit_submissions_per_day": 1})
    site = Site(settings, sqlite_site.database, sqlite_site.artifacts)
    path = demo_run_file(site)
    submit_run(site, check_run(site, path, "demo-tools"), path, METADATA, publish=True)
    other = demo_run_file(site, shift=1, name="other.trec")
    with pytest.raises(Conflict, match="limit is 1"):
        submit_run(site, check_run(site, other, "demo-tools"), other, SubmissionMetadata("Other"), publish=True)
    assert board(site) == ["My Retriever"]


def test_a_benchmark_of_figures_only_takes_no_runs(sqlite_site: Site, demo_run_file: MakeRun) -> None:
    with pytest.raises(BenchmarkError, match="only figures printed"):
        check_run(sqlite_site, demo_run_file(sqlite_site), "tooleq")


def test_ids_of_another_stored_benchmark_name_it(sqlite_site: Site, demo_run_file: MakeRun) -> None:
    checked = check_run(sqlite_site, demo_run_file(sqlite_site), "demo-skills")
    text = " ".join(problem.message for problem in checked.reading.report.problems)
    assert "demo-tools@1" in text
