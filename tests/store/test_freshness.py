"""The stamps that pages keep frames under change with everything a board shows."""

from __future__ import annotations

import itertools

from store.access import benchmarks, freshness, runs
from store.artifacts import ArtifactStore
from store.database import Database
from store.models import BenchmarkVersion, Run, State, Submission, Trained, Visibility
from store.records import BenchmarkRecord, RetrieverRecord, Summary


def test_the_stamp_follows_every_visible_change(
    database: Database, benchmark: BenchmarkRecord, retriever: RetrieverRecord, ranking: str, artifacts: ArtifactStore
) -> None:
    def stamp() -> str:
        with database.reading() as session:
            return freshness.board_stamp(session, benchmark.id)

    seen = [stamp()]
    assert stamp() == seen[0], "reading changes nothing"
    run = Run(
        benchmark_version_id=benchmark.id, retriever_id=retriever.id, provenance="uploaded", ranking_artifact=ranking
    )
    submission = Submission(benchmark_version_id=benchmark.id)
    with database.session() as session:
        run_id = runs.add_run(
            session, run, [Summary("old", "NDCG", 10, "micro", 0.5)], submission=submission, artifacts=artifacts
        ).id
    for change in (
        lambda session: runs.publish(session, run_id),
        lambda session: runs.edit(session, run_id, licence="CC0-1.0"),
        lambda session: runs.set_visibility(session, run_id, Visibility.PRIVATE),
        lambda session: runs.set_visibility(session, run_id, Visibility.PUBLIC),
        lambda session: runs.withdraw(session, run_id),
    ):
        with database.session() as session:
            change(session)
        seen.append(stamp())
    changes = [before != after for before, after in itertools.pairwise(seen)]
    assert all(changes), changes


def test_the_stamp_follows_an_edit_of_a_run_that_nobody_submitted(
    database: Database, benchmark: BenchmarkRecord, retriever: RetrieverRecord, ranking: str, artifacts: ArtifactStore
) -> None:
    run = Run(
        benchmark_version_id=benchmark.id, retriever_id=retriever.id, provenance="measured", ranking_artifact=ranking,
        state=State.PUBLISHED.value,
    )  # fmt: skip
    with database.session() as session:
        run_id = runs.add_run(session, run, [Summary("old", "NDCG", 10, "micro", 0.5)], artifacts=artifacts).id
    seen = set()
    said = ({}, {"contract": "card"}, {"trained_on_benchmark": Trained.YES}, {"link": "https://a.example"},
            {"retriever_name": "Another"}, {"method": "sub-query"}, {"licence": "MIT"})  # fmt: skip
    for change in said:
        with database.session() as session:
            runs.edit(session, run_id, **change)
        with database.reading() as session:
            seen.add(freshness.board_stamp(session, benchmark.id))
    assert len(seen) == len(said)


def test_the_stamp_of_one_board_ignores_another(
    database: Database, benchmark: BenchmarkRecord, retriever: RetrieverRecord, ranking: str, artifacts: ArtifactStore
) -> None:
    with database.session() as session:
        other = benchmarks.add_version(
            session, BenchmarkVersion(slug="other", version="1", title="Other", kind="tool", content_hash="d" * 64)
        )
    with database.reading() as session:
        before = freshness.board_stamp(session, benchmark.id)
        library = freshness.library_stamp(session)
    run = Run(
        benchmark_version_id=other.id, retriever_id=retriever.id, provenance="uploaded", ranking_artifact=ranking,
        state=State.PUBLISHED.value,
    )  # fmt: skip
    with database.session() as session:
        runs.add_run(session, run, [Summary("old", "NDCG", 10, "micro", 0.5)], artifacts=artifacts)
    with database.reading() as session:
        assert freshness.board_stamp(session, benchmark.id) == before
        assert freshness.library_stamp(session) != library
