from __future__ import annotations

import math
import threading
from datetime import timedelta

import pytest
from sqlmodel import select

from store.access import retrievers, run_figures, runs, submissions
from store.access.leaderboard import leaderboard
from store.errors import ArtifactDamaged, ArtifactMissing, Conflict, InvalidRecord, NotFound
from store.models import (
    MetricSummary,
    Provenance,
    Run,
    State,
    Submission,
    SubmissionState,
    Trained,
    Visibility,
    new_run_id,
    utc_now,
)
from store.records import Summary


def _submission(benchmark, **fields):
    return Submission(**{"benchmark_version_id": benchmark.id, "contact": "me@example.org"} | fields)


def test_run_ids_are_short_and_do_not_repeat():
    ids = {new_run_id() for _ in range(10_000)}
    assert len(ids) == 10_000
    assert all(len(item) == 14 and item.isalnum() and item.islower() for item in ids)


def test_a_run_is_stored_with_figures_and_submission(database, artifacts, benchmark, new_run):
    given = [
        Summary("old", "NDCG", 10, "macro", 1 / 3, n=10, low=0.3, high=0.4),
        Summary("new", "NDCG", 10, "macro", 0.1 + 0.2, n=10),
        Summary("old", "NDCG", 10, "domain", 0.5, domain="web", n=6, printed="50.0", note="as printed"),
    ]
    with database.session() as session:
        stored = runs.add_run(
            session, new_run(flags=["ties"], notes=["CRLF line ends normalised"]), given,
            submission=_submission(benchmark, file_name="run.trec", order="score"), artifacts=artifacts,
        )  # fmt: skip
    with database.reading() as session:
        assert runs.get(session, stored.id) == stored
        figures = runs.summaries(session, stored.id)
        submission = submissions.of_run(session, stored.id)
    assert stored.flags == ("ties",)
    assert (stored.state, stored.visibility, stored.published_at) == ("scored", "public", None)
    assert {Summary(**row) for row in figures.to_dicts()} == set(given)
    assert submission is not None
    assert (submission.state, submission.order, submission.contact) == ("scored", "score", "me@example.org")


@pytest.mark.parametrize(
    "bad",
    [
        [Summary("old", "NDCG", 10, "macro", math.nan)],
        [Summary("old", "NDCG", 10, "macro", 1.5)],
        [Summary("old", "NDCG", 10, "macro", -0.1)],
        [Summary("old", "NDCG", 10, "macro", 0.5, low=math.inf)],
        [Summary("old", "NDCG", 10, "median", 0.5)],
        [Summary("both", "NDCG", 10, "macro", 0.5)],
        [Summary("old", "NDCG", 0, "macro", 0.5)],
        [Summary("old", "NDCG", 10, "macro", 0.5, domain="web")],
        [Summary("old", "NDCG", 10, "macro", 0.5), Summary("old", "NDCG", 10, "macro", 0.6)],
    ],
)
def test_figures_that_must_not_be_stored_store_nothing(database, artifacts, benchmark, new_run, bad):
    with pytest.raises(InvalidRecord), database.session() as session:
        runs.add_run(session, new_run(), bad, submission=_submission(benchmark), artifacts=artifacts)
    with database.reading() as session:
        assert session.scalars(select(Run)).all() == []
        assert session.scalars(select(Submission)).all() == []
        assert session.scalars(select(MetricSummary)).all() == []


@pytest.mark.parametrize("column", ["ranking_artifact", "per_query_artifact", "raw_artifact"])
def test_no_run_without_its_artifacts(database, artifacts, new_run, figures, column):
    with pytest.raises(ArtifactMissing), database.session() as session:
        runs.add_run(session, new_run(**{column: "0" * 64}), figures(0.5, 0.5), artifacts=artifacts)
    with pytest.raises(InvalidRecord, match="artifact store"), database.session() as session:
        runs.add_run(session, new_run(), figures(0.5, 0.5))
    with database.reading() as session:
        assert runs.list_runs(session).is_empty()


def test_no_run_on_a_damaged_artifact(database, artifacts, new_run, figures, ranking):
    artifacts.local_path(ranking).write_bytes(b"PAR1 but not really PAR1")
    with pytest.raises(ArtifactDamaged), database.session() as session:
        runs.add_run(session, new_run(), figures(0.5, 0.5), artifacts=artifacts)


def test_other_runs_that_cannot_be(database, artifacts, new_run, figures):
    cases = [
        (new_run(ranking_artifact=None), figures(0.5, 0.5), InvalidRecord),
        (new_run(state="published"), [], InvalidRecord),
        (new_run(benchmark_version_id=999), figures(0.5, 0.5), NotFound),
        (new_run(retriever_id=999), figures(0.5, 0.5), NotFound),
    ]
    for run, given, error in cases:
        with pytest.raises(error), database.session() as session:
            runs.add_run(session, run, given, artifacts=artifacts)


def test_publish_withdraw_publish(database, artifacts, new_run, figures):
    with database.session() as session:
        run_id = runs.add_run(session, new_run(), figures(0.5, 0.6), artifacts=artifacts).id
    with database.session() as session:
        with pytest.raises(Conflict, match="only a published run"):
            runs.withdraw(session, run_id)
        published = runs.publish(session, run_id)
        assert runs.publish(session, run_id) == published
    assert published.state == "published"
    assert published.published_at is not None
    with database.session() as session:
        withdrawn = runs.withdraw(session, run_id)
        assert runs.withdraw(session, run_id) == withdrawn
        assert withdrawn.withdrawn_at is not None
        again = runs.publish(session, run_id)
    assert again.withdrawn_at is None
    assert again.published_at >= published.published_at
    with database.session() as session, pytest.raises(NotFound, match="nosuchrun"):
        runs.publish(session, "nosuchrun")


def test_an_unscored_run_cannot_be_published(database, artifacts, new_run):
    with database.session() as session:
        run_id = runs.add_run(session, new_run(state="validated"), [], artifacts=artifacts).id
        with pytest.raises(Conflict, match="validated"):
            runs.publish(session, run_id)


def test_private_runs_open_through_their_link_only(database, artifacts, benchmark, new_run, figures):
    with database.session() as session:
        stored = runs.add_run(
            session, new_run(visibility="private", state="published"), figures(0.5, 0.6),
            submission=_submission(benchmark, person="ada"), artifacts=artifacts,
        )  # fmt: skip
        token = stored.private_token
        assert token
        for denied in ({}, {"token": "wrong"}, {"token": ""}, {"token": "ünïcode"}, {"person": "eve"}):
            with pytest.raises(NotFound, match="that you may see"):
                runs.get_shown(session, stored.id, **denied)
        assert runs.get_shown(session, stored.id, token=token).id == stored.id
        assert runs.get_shown(session, stored.id, person="ada").id == stored.id
        assert runs.list_runs(session, public_only=True).is_empty()
        assert runs.identical_rankings(session, benchmark.id, stored.ranking_hash) == []
        runs.set_visibility(session, stored.id, Visibility.PUBLIC)
        assert runs.get_shown(session, stored.id).id == stored.id
        renewed = runs.set_visibility(session, stored.id, Visibility.PRIVATE)
        assert renewed.private_token not in {None, token}
        with pytest.raises(NotFound):
            runs.get_shown(session, stored.id, token=token)


def test_an_unpublished_run_is_not_shown(database, artifacts, new_run, figures):
    with database.session() as session:
        run_id = runs.add_run(session, new_run(), figures(0.5, 0.6), artifacts=artifacts).id
        with pytest.raises(NotFound):
            runs.get_shown(session, run_id)
        with pytest.raises(NotFound):
            runs.get_shown(session, run_id, token="")


def test_metadata_can_be_edited_figures_cannot(database, artifacts, benchmark, new_run, figures):
    with database.session() as session:
        before = runs.add_run(
            session, new_run(), figures(0.5, 0.6), submission=_submission(benchmark), artifacts=artifacts
        )
        after = runs.edit(
            session, before.id, retriever_name="New name", method="mftr", link=" https://example.org ",
            contact="you@example.org", trained_on_benchmark=Trained.YES,
        )  # fmt: skip
        assert retrievers.get_by_id(session, after.retriever_id).name == "New name"
        submission = submissions.of_run(session, before.id)
        assert runs.summaries(session, before.id)["value"].to_list() == [0.6, 0.5]
    assert (after.method, after.link, after.trained_on_benchmark) == ("mftr", "https://example.org", "yes")
    assert (after.ranking_hash, after.licence) == (before.ranking_hash, before.licence)
    assert submission is not None
    assert (submission.contact, submission.link) == ("you@example.org", "https://example.org")


def test_reported_rows_are_neither_edited_nor_withdrawn(database, new_run, figures):
    with database.session() as session:
        run = new_run(provenance="reported", ranking_artifact=None, place="ToolEX Table 2", state="published")
        run_id = runs.add_run(session, run, figures(0.5, 0.6)).id
        with pytest.raises(Conflict, match="ToolEX Table 2"):
            runs.edit(session, run_id, method="mftr")
        with pytest.raises(Conflict, match="ToolEX Table 2"):
            runs.withdraw(session, run_id)


def test_identical_rankings_are_found(database, artifacts, benchmark, new_run, figures):
    with database.session() as session:
        first = runs.add_run(session, new_run(state="published"), figures(0.5, 0.6), artifacts=artifacts)
        second = runs.add_run(session, new_run(state="published"), figures(0.5, 0.6), artifacts=artifacts)
        runs.add_run(session, new_run(state="published", ranking_hash="s" * 64), figures(0.5, 0.6), artifacts=artifacts)
        runs.add_run(session, new_run(), figures(0.5, 0.6), artifacts=artifacts)
        found = runs.identical_rankings(session, benchmark.id, "r" * 64)
        assert [item.id for item in found] == [first.id, second.id]
        assert runs.identical_rankings(session, benchmark.id, "r" * 64, except_run=first.id) == [second]


def test_versions_of_a_row_newest_first(database, artifacts, new_run, figures):
    start = utc_now()
    with database.session() as session:
        made = [
            runs.add_run(
                session, new_run(state="published", published_at=start + timedelta(hours=hour)), figures(0.5, 0.6),
                artifacts=artifacts,
            )
            for hour in (1, 3, 2)
        ]  # fmt: skip
        runs.add_run(session, new_run(state="published", method="mftr"), figures(0.5, 0.6), artifacts=artifacts)
        runs.add_run(session, new_run(state="published", contract_hash="h"), figures(0.5, 0.6), artifacts=artifacts)
        found = runs.versions(session, made[0].id)
    assert [item.id for item in found] == [made[1].id, made[2].id, made[0].id]


def test_listing_filters(database, artifacts, benchmark, new_run, figures):
    with database.session() as session:
        mine = runs.add_run(
            session, new_run(), figures(0.5, 0.6), submission=_submission(benchmark, person="ada"), artifacts=artifacts
        )
        runs.add_run(session, new_run(state="published", provenance="measured"), figures(0.5, 0.6), artifacts=artifacts)
        assert runs.list_runs(session, person="ada")["run_id"].to_list() == [mine.id]
        assert runs.list_runs(session, states=[State.PUBLISHED])["provenance"].to_list() == ["measured"]
        assert runs.list_runs(session, provenances=[Provenance.UPLOADED])["run_id"].to_list() == [mine.id]
        assert runs.list_runs(session, benchmark_version_id=benchmark.id).height == 2
        assert runs.list_runs(session, benchmark_version_id=999).is_empty()
        row = runs.list_runs(session, person="ada").row(0, named=True)
    assert (row["benchmark"], row["retriever"], row["state"]) == ("weather@1.0", "BM25", "scored")


def test_submissions_without_a_run_and_the_daily_limit(database, benchmark):
    with database.session() as session:
        refused = submissions.add(session, _submission(benchmark, state="refused", report={"verdict": "refuse"}))
        failed = submissions.update(session, refused.id, state=SubmissionState.FAILED, last_error="the disk was full")
        assert (failed.state, failed.last_error, failed.report) == (
            "failed",
            "the disk was full",
            {"verdict": "refuse"},
        )
        submissions.add(session, _submission(benchmark, created_at=utc_now() - timedelta(hours=25)))
        assert submissions.list_of(session, "local")[0].id == refused.id
        submissions.check_daily_limit(session, "local", 2)
        submissions.check_daily_limit(session, "somebody else", 1)
        with pytest.raises(Conflict, match="the limit is 1"):
            submissions.check_daily_limit(session, "local", 1)
        with pytest.raises(NotFound):
            submissions.update(session, 999, last_error="x")


def test_a_stored_submission_becomes_a_run(database, artifacts, benchmark, new_run, figures):
    with database.session() as session:
        submission = _submission(benchmark, state="validated")
        stored_id = submissions.add(session, submission).id
    with database.session() as session:
        row = session.get(Submission, stored_id)
        run = runs.add_run(session, new_run(), figures(0.5, 0.6), submission=row, artifacts=artifacts)
    with database.reading() as session:
        (only,) = submissions.list_of(session, "local")
    assert (only.id, only.run_id, only.state) == (stored_id, run.id, "scored")


def test_two_publishers_at_once_leave_one_current_row(database, artifacts, benchmark, new_run, figures):
    with database.session() as session:
        ids = [runs.add_run(session, new_run(), figures(0.5, 0.6), artifacts=artifacts).id for _ in range(6)]
    errors: list[BaseException] = []
    barrier = threading.Barrier(len(ids))

    def publish(run_id: str) -> None:
        try:
            barrier.wait()
            with database.session() as session:
                runs.publish(session, run_id)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=publish, args=(run_id,)) for run_id in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with database.reading() as session:
        versions = runs.versions(session, ids[0])
        assert {item.id for item in versions} == set(ids)
        board = leaderboard(session, benchmark.id)
    assert board.select("run_id", "versions").rows() == [(versions[0].id, len(ids))]


def test_headline_figures_are_those_that_rank_a_run(database, benchmark, retriever, ranking, artifacts):
    figures = {
        "at ten": [("old", 10, "macro", 0.3), ("new", 10, "macro", 0.4), ("old", 1, "macro", 0.1),
                   ("old", 10, "micro", 0.9)],
        "without ten": [("old", 5, "macro", 0.2), ("old", 20, "macro", 0.6)],
        "other average": [("old", 10, "micro", 0.9)],
    }  # fmt: skip
    ids = {}
    with database.session() as session:
        for name, given in figures.items():
            run = Run(
                benchmark_version_id=benchmark.id, retriever_id=retriever.id, provenance="uploaded",
                ranking_artifact=ranking,
            )  # fmt: skip
            summaries = [Summary(view, "NDCG", k, average, value) for view, k, average, value in given]
            ids[name] = runs.add_run(session, run, summaries, artifacts=artifacts).id
    with database.reading() as session:
        found = {row["run_id"]: row for row in run_figures.headline_figures(session, list(ids.values())).to_dicts()}
        assert run_figures.headline_figures(session, []).is_empty()
        only = runs.list_runs(session, retriever_id=retriever.id)
        assert only.height == 3
        assert runs.list_runs(session, retriever_id=retriever.id + 1).is_empty()
    assert found == {
        ids["at ten"]: {"run_id": ids["at ten"], "k": 10, "old": 0.3, "new": 0.4},
        ids["without ten"]: {"run_id": ids["without ten"], "k": 5, "old": 0.2, "new": None},
    }
