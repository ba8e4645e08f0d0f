"""Statistics of runs and boards: stored whole, read back, and noticed by everything that depends on them."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from store.access import doctor, freshness, leaderboard, runs, statistics
from store.artifacts import ArtifactStore
from store.database import Database
from store.errors import ArtifactMissing, InvalidRecord, NotFound
from store.models import Run, State
from store.records import BenchmarkRecord, Summary

NewRun = Callable[..., Run]
Figures = Callable[..., list[Summary]]


def intervals(*rows: tuple[str, float, float]) -> pl.DataFrame:
    frame = pl.DataFrame(
        [(view, "NDCG", 10, "macro", "", low, high) for view, low, high in rows],
        schema=statistics.INTERVALS,
        orient="row",
    )
    return frame


def lifts(low: float = 0.05, high: float = 0.2, control: float | None = 0.01) -> pl.DataFrame:
    rows = [("NDCG", 10, "macro", "", low, high, control, 0.0, 0.02, 0.75)]
    return pl.DataFrame(rows, schema=statistics.LIFTS, orient="row")


@pytest.fixture
def run_id(database: Database, artifacts: ArtifactStore, new_run: NewRun, figures: Figures) -> str:
    per_query = artifacts.put_frame(pl.DataFrame({"query_id": ["q1"]}))
    run = new_run(state=State.PUBLISHED.value, per_query_artifact=per_query)
    with database.session() as session:
        return runs.add_run(session, run, figures(0.4, 0.5), artifacts=artifacts).id


def store(database: Database, artifacts: ArtifactStore, run_id: str, version: str = "1") -> str:
    digest = artifacts.put_frame(pl.DataFrame({"reading": ["max"], "version": [version]}))
    with database.session() as session:
        statistics.set_run_statistics(
            session,
            run_id,
            intervals=intervals(("old", 0.3, 0.5), ("new", 0.4, 0.6)),
            lifts=lifts(),
            artifact=digest,
            version=version,
            artifacts=artifacts,
        )
    return digest


def test_statistics_reach_the_board(
    database: Database, artifacts: ArtifactStore, benchmark: BenchmarkRecord, run_id: str
) -> None:
    with database.reading() as session:
        before = leaderboard.leaderboard(session, benchmark.id).row(0, named=True)
    assert before["lift_low"] is None and before["judged"] is None and before["new"] == 0.5
    digest = store(database, artifacts, run_id)
    with database.reading() as session:
        row = leaderboard.leaderboard(session, benchmark.id).row(0, named=True)
        assert statistics.lifts(session, run_id).equals(lifts())
        assert runs.get(session, run_id).statistics_artifact == digest
        assert "statistics of run" in " ".join(doctor.referenced(session)[digest])
    assert (row["old_low"], row["old_high"], row["new_low"], row["new_high"]) == (0.3, 0.5, 0.4, 0.6)
    assert (row["lift_low"], row["lift_high"], row["control"], row["judged"]) == (0.05, 0.2, 0.01, 0.75)
    assert row["old"] == 0.4, "values stay as they are"


def test_storing_again_replaces(database: Database, artifacts: ArtifactStore, run_id: str) -> None:
    store(database, artifacts, run_id)
    store(database, artifacts, run_id, version="2")
    with database.reading() as session:
        assert statistics.lifts(session, run_id).height == 1
        assert statistics.runs_without(session, "2") == []
        assert statistics.runs_without(session, "3") == [run_id]


def test_runs_without_statistics_are_found(
    database: Database, artifacts: ArtifactStore, new_run: NewRun, figures: Figures, run_id: str
) -> None:
    with database.session() as session:
        # A run without per-query scores can never have any.
        runs.add_run(session, new_run(), figures(0.1, 0.2), artifacts=artifacts)
    with database.reading() as session:
        assert statistics.runs_without(session, "1") == [run_id]
        assert [run.run_id for run in statistics.board_runs(session, [run_id, "unknown"])] == [run_id]


def test_nothing_is_stored_of_broken_statistics(database: Database, artifacts: ArtifactStore, run_id: str) -> None:
    there = artifacts.put_frame(pl.DataFrame({"reading": ["max"]}))
    cases = [
        ("0" * 64, lifts(), ArtifactMissing),
        (there, lifts(low=float("nan")), InvalidRecord),
    ]
    for digest, frame, error in cases:
        with pytest.raises(error), database.session() as session:
            statistics.set_run_statistics(
                session, run_id, intervals=intervals(), lifts=frame, artifact=digest, version="1", artifacts=artifacts
            )
    with pytest.raises(NotFound), database.session() as session:
        statistics.set_run_statistics(
            session, "nobody", intervals=intervals(), lifts=lifts(), artifact=there, version="1", artifacts=artifacts
        )
    with database.reading() as session:
        assert statistics.lifts(session, run_id).is_empty()
        assert statistics.runs_without(session, "1") == [run_id]


def test_board_statistics_are_replaced_and_change_the_stamp(
    database: Database, artifacts: ArtifactStore, benchmark: BenchmarkRecord, run_id: str
) -> None:
    def stamp() -> str:
        with database.reading() as session:
            return freshness.board_stamp(session, benchmark.id)

    seen = [stamp()]
    store(database, artifacts, run_id)
    seen.append(stamp())
    ties = artifacts.put_frame(pl.DataFrame({"group": [1]}))
    gains = artifacts.put_frame(pl.DataFrame({"share": [0.3]}))
    for computed_from in ("a", "b"):
        with database.session() as session:
            statistics.set_of_board(
                session, benchmark.id, computed_from=computed_from, tie_groups_artifact=ties, gains_artifact=gains,
                artifacts=artifacts,
            )  # fmt: skip
        seen.append(stamp())
    assert len(set(seen)) == 4
    with database.reading() as session:
        found = statistics.of_board(session, benchmark.id)
        assert statistics.of_board(session, benchmark.id + 1) is None
        assert statistics.boards_with_runs(session) == [benchmark.id]
        assert ties in doctor.referenced(session) and gains in doctor.referenced(session)
    assert found is not None and (found.computed_from, found.gains_artifact) == ("b", gains)
    with pytest.raises(ArtifactMissing), database.session() as session:
        statistics.set_of_board(
            session, benchmark.id, computed_from="c", tie_groups_artifact="0" * 64, gains_artifact=gains,
            artifacts=artifacts,
        )  # fmt: skip
