"""Statistics that follow a run: stored after it landed, equal to computing them, and made anew when a board changes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from pipeline.benchmark import Average
from pipeline.formats.ranking import run_of_frame
from pipeline.jobs import statistics
from pipeline.jobs.benchmark_library import Library, load_compiled
from pipeline.jobs.comparison import compare
from pipeline.jobs.pair_gains import gains_of_pair, pair_gains
from pipeline.jobs.site import Site
from pipeline.jobs.submission import SubmissionMetadata, check_run, publish_run, submit_run, withdraw_run
from pipeline.scoring.gain_table import gain_table
from pipeline.scoring.random_control import random_control
from pipeline.scoring.statistics import difference_interval, mean_interval
from pipeline.scoring.tie_groups import tie_groups
from store.access import benchmarks, doctor, leaderboard, retrievers, runs
from store.access import statistics as stored
from store.errors import NotFound
from store.models import Retriever

MakeRun = Callable[..., Path]


def quiet(line: str) -> None:
    del line


def submit(site: Site, path: Path, name: str, *, publish: bool = True) -> str:
    return submit_run(
        site, check_run(site, path, "demo-tools"), path, SubmissionMetadata(retriever=name), publish=publish
    )


def land(site: Site, demo_run_file: MakeRun, shift: int, *, publish: bool = True) -> str:
    return submit(site, demo_run_file(site, shift, name=f"{shift}.trec"), f"Shift {shift}", publish=publish)


def board_frame(site: Site, name: str) -> pl.DataFrame:
    with site.database.reading() as session:
        version = benchmarks.get(session, "demo-tools")
        found = stored.of_board(session, version.id)
    assert found is not None
    return site.artifacts.get_frame(getattr(found, f"{name}_artifact"))


def test_statistics_follow_a_run(site: Site, demo_run_file: MakeRun) -> None:
    run_id = land(site, demo_run_file, 0)
    private = land(site, demo_run_file, 3, publish=False)
    with site.database.reading() as session:
        assert runs.summaries(session, run_id)["low"].null_count() == runs.summaries(session, run_id).height
    work = statistics.pending(site)
    assert set(work.runs) == {run_id, private} and len(work.boards) == 1
    assert statistics.compute(site, work, quiet) == []
    assert not statistics.pending(site)
    with site.database.reading() as session:
        version = benchmarks.get(session, "demo-tools")
        run = runs.get(session, run_id)
        figures = runs.summaries(session, run_id)
        lifts = stored.lifts(session, run_id)
        row = leaderboard.leaderboard(session, version.id).row(0, named=True)
        assert doctor.check_integrity(session, site.artifacts).ok
    compiled = load_compiled(site, version.id)
    per_query = site.artifacts.get_frame(run.per_query_artifact or "")
    average = Average(version.headline)
    one = mean_interval(per_query["new_NDCG@10"].to_numpy(), compiled.domain_of, average)
    lift = difference_interval(
        per_query["old_NDCG@10"].to_numpy(), per_query["new_NDCG@10"].to_numpy(), compiled.domain_of, average
    )
    ranked = run_of_frame(site.artifacts.get_frame(run.ranking_artifact or ""), compiled.target)
    control = random_control(compiled, ranked, version.ks).filter(
        (pl.col("metric") == "NDCG") & (pl.col("k") == 10) & (pl.col("average") == version.headline)
    )["control"][0]
    assert figures["low"].null_count() == 0 and (figures["low"] <= figures["high"]).all()
    assert (row["new_low"], row["new_high"]) == pytest.approx((one.low, one.high))
    assert (row["lift_low"], row["lift_high"]) == pytest.approx((lift.low, lift.high))
    assert row["control"] == pytest.approx(control)
    assert 0 <= row["judged"] <= 1
    assert lifts.height == figures.filter(pl.col("view") == "new").height
    readings = site.artifacts.get_frame(run.statistics_artifact or "")
    same = readings.filter(pl.col("reading").is_in(["max", "lower"]), pl.col("view") == "new")
    joined = same.join(
        figures.filter(pl.col("view") == "new").with_columns(pl.col("k").cast(pl.Int32)),
        left_on=["metric", "k", "average", pl.col("domain").fill_null("")],
        right_on=["metric", "k", "average", "domain"],
    )
    assert joined.height == same.height > 0
    assert (joined["value"] - joined["value_right"]).abs().max() < 1e-12  # type: ignore[operator]


def test_computing_again_changes_nothing(sqlite_site: Site, demo_run_file: MakeRun) -> None:
    site = sqlite_site
    run_id = land(site, demo_run_file, 0)
    work = statistics.pending(site)
    statistics.compute(site, work, quiet)
    with site.database.reading() as session:
        before = runs.get(session, run_id)
    assert statistics.compute(site, work, quiet) == []
    with site.database.reading() as session:
        assert runs.get(session, run_id) == before
    assert not statistics.run_of(site, run_id)


def test_tie_groups_follow_the_board(sqlite_site: Site, demo_run_file: MakeRun) -> None:
    site = sqlite_site
    ids = [land(site, demo_run_file, shift) for shift in (0, 1, 2)]
    statistics.compute(site, statistics.pending(site), quiet)
    groups = board_frame(site, "tie_groups")
    with site.database.reading() as session:
        version = benchmarks.get(session, "demo-tools")
        scores = {
            run_id: site.artifacts.get_frame(runs.get(session, run_id).per_query_artifact or "") for run_id in ids
        }
    compiled = load_compiled(site, version.id)
    here = groups.filter(
        pl.col("metric") == "Recall", pl.col("k") == 5, pl.col("view") == "old", pl.col("average") == "macro"
    )
    expected = tie_groups(
        {run_id: frame["old_Recall@5"].to_numpy() for run_id, frame in scores.items()},
        compiled.domain_of,
        Average.MACRO,
        flips=statistics.TIE_FLIPS,
    )
    assert here.select(expected.columns).equals(expected)
    assert set(here["run_id"]) == set(ids)
    withdraw_run(site, ids[1])
    work = statistics.pending(site)
    assert work.runs == () and len(work.boards) == 1
    statistics.compute(site, work, quiet)
    assert set(board_frame(site, "tie_groups")["run_id"]) == {ids[0], ids[2]}
    publish_run(site, ids[1])
    assert len(statistics.pending(site).boards) == 1


def test_fine_tuned_runs_get_their_gains(sqlite_site: Site, demo_run_file: MakeRun) -> None:
    site = sqlite_site
    base, tuned = land(site, demo_run_file, 0), land(site, demo_run_file, 1)
    statistics.compute(site, statistics.pending(site), quiet)
    assert board_frame(site, "gains").is_empty()
    with site.database.session() as session:
        old = retrievers.get(session, "shift-1")
        retrievers.upsert(session, Retriever(key=old.key, name=old.name, fine_tuned=True, base_key="shift-0"))
    statistics.compute(site, statistics.pending(site), quiet)
    gains = board_frame(site, "gains")
    assert gains.select("base_run", "tuned_run").unique().rows() == [(base, tuned)]
    with site.database.reading() as session:
        records = [runs.get(session, run_id) for run_id in (base, tuned)]
        version = benchmarks.get(session, "demo-tools")
    frames = [site.artifacts.get_frame(record.per_query_artifact or "") for record in records]
    found = pair_gains(site, records[0], records[1], 10)
    assert found.per_query
    expected = gain_table(frames[0], frames[1], metrics=("NDCG",), k=10, averages=(Average(version.headline),))
    here = found.table.filter(pl.col("metric") == "NDCG")
    assert sorted(here["gain_old"].to_list()) == sorted(expected["gain_old"].to_list())
    assert sorted(here["p_shrink"].to_list()) == sorted(expected["p_shrink"].to_list())
    assert here["average"][0] == version.headline
    assert here["domain"][1:].to_list() == [domain.name for domain in version.domains]
    # Any other pair is computed when it is asked for, once.
    back = pair_gains(site, records[1], records[0], 10).table
    assert back["gain_old"][0] == pytest.approx(-found.table["gain_old"][0])
    again = gains_of_pair(site, version, records[1].per_query_artifact or "", records[0].per_query_artifact or "", 10)
    assert again.sort("metric", "average", "domain").equals(back.sort("metric", "average", "domain"))


def test_a_run_that_cannot_be_read_holds_nobody_up(sqlite_site: Site, demo_run_file: MakeRun) -> None:
    site = sqlite_site
    broken, sound = land(site, demo_run_file, 0), land(site, demo_run_file, 1)
    with site.database.reading() as session:
        ranking = runs.get(session, broken).ranking_artifact
    for path in Path(site.settings.home).rglob(f"{ranking}.parquet"):
        path.unlink()
    failures = statistics.compute(site, statistics.pending(site), quiet)
    assert len(failures) == 1 and broken in failures[0]
    with site.database.reading() as session:
        assert runs.get(session, sound).statistics_version is not None
    work = statistics.pending(site)
    assert work.runs == (broken,) and work.boards == ()


def test_a_submission_does_not_wait_for_statistics(sqlite_site: Site, demo_run_file: MakeRun) -> None:
    site = sqlite_site
    path = demo_run_file(site)
    checked = check_run(site, path, "demo-tools")
    started = time.perf_counter()
    run_id = submit_run(site, checked, path, SubmissionMetadata(retriever="Quick"), publish=True)
    seconds = time.perf_counter() - started
    with site.database.reading() as session:
        assert runs.get(session, run_id).statistics_at is None
    assert seconds < 10, "statistics are left to a job"


def test_compare_reads_stored_runs_and_files(sqlite_site: Site, demo_run_file: MakeRun) -> None:
    site = sqlite_site
    paths = [demo_run_file(site, shift, name=f"{shift}.trec") for shift in (0, 1)]
    ids = [submit(site, path, f"Shift {path.stem}") for path in paths]
    library = Library(site)
    by_id = compare(library, *ids, "demo-tools", metric="NDCG", k=10)
    by_file = compare(library, *map(str, paths), "demo-tools", metric="NDCG", k=10)
    mixed = compare(library, ids[0], str(paths[1]), "demo-tools", metric="NDCG", k=10)
    assert by_id.gains.equals(by_file.gains) and mixed.gains.equals(by_file.gains)
    said = by_id.as_json()
    json.dumps(said, allow_nan=False)
    assert said["queries"] == by_file.as_json()["queries"] == mixed.as_json()["queries"]
    counts = said["queries"]["old"]["all"]
    with site.database.reading() as session:
        assert sum(counts.values()) == benchmarks.get(session, "demo-tools").queries
    with pytest.raises(NotFound, match="neither a file nor a stored run"):
        compare(library, "nothing", ids[0], "demo-tools", metric="NDCG", k=10)


def test_compare_of_printed_rows_has_no_intervals(sqlite_site: Site) -> None:
    site = sqlite_site
    with site.database.reading() as session:
        version = benchmarks.get(session, "tooleq")
        board = leaderboard.leaderboard(session, version.id).filter(pl.col("level") == "query")
    key = {row["retriever"]: row["run_id"] for row in board.iter_rows(named=True)}
    found = compare(Library(site), key["Qwen3-Embedding-4B"], key["Tool-Embed-4B"], "tooleq", metric="NDCG", k=10)
    row = found.gains.row(0, named=True)
    assert row["share"] == pytest.approx(0.470, abs=0.0005)
    assert row["gain_old_low"] is None and row["p_shrink"] is None and found.outcomes is None
    code = found.gains.filter(pl.col("domain") == "code").row(0, named=True)
    assert code["sign_flips"] and (round(100 * code["gain_old"], 1), round(100 * code["gain_new"], 1)) == (2.1, -0.3)
