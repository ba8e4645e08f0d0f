"""``kill -9`` while runs are submitted: whatever is there is whole, and what was acknowledged is there."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from pipeline.jobs.first_start import prepared_site
from pipeline.jobs.site import Site, open_site
from pipeline.jobs.submission import SubmissionMetadata, check_run, submit_run
from store.access import benchmarks, doctor, leaderboard, runs
from store.settings import Settings

SUBMISSIONS = 200
PER_PROCESS = 10


def submit_many(settings: Settings, files: list[Path], acknowledged: Path, ready: Connection) -> None:
    """What the killed process does: submit one file after another, noting each id once it was returned."""
    site = open_site(settings)
    checked = [check_run(site, path, "demo-tools") for path in files]
    ready.send("go")
    with acknowledged.open("a", encoding="utf-8") as log:
        for path, run in zip(files, checked, strict=True):
            run_id = submit_run(site, run, path, SubmissionMetadata(f"Retriever {path.stem}"), publish=True)
            log.write(run_id + "\n")
            log.flush()
            os.fsync(log.fileno())
    ready.send("done")


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_killed_submissions_are_whole_or_absent(
    request: pytest.FixtureRequest, tmp_path: Path, demo_run_file: Callable[..., Path], backend: str
) -> None:
    url = request.getfixturevalue("postgres_url") if backend == "postgresql" else ""
    settings = Settings(home=tmp_path / "home", database_url=url)
    site = prepared_site(settings)
    acknowledged = tmp_path / "acknowledged"
    chance = random.Random(20261130)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pipeline.jobs.submission", "pipeline.scoring.kernel"])
    killed = 0
    window = 0.5
    for first in range(0, SUBMISSIONS, PER_PROCESS):
        files = [demo_run_file(site, shift=n, name=f"r{n}.trec") for n in range(first, first + PER_PROCESS)]
        mine, theirs = context.Pipe()
        process = context.Process(target=submit_many, args=(settings, files, acknowledged, theirs))
        process.start()
        theirs.close()
        assert mine.recv() == "go"
        started = time.monotonic()
        # The window follows what a whole batch takes, so that kills fall everywhere in it.
        finished = mine.poll(chance.uniform(0, window))
        if finished:
            window = max(0.05, time.monotonic() - started)
        else:
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            killed += 1
        process.join()
        _check(site, acknowledged)
    assert killed >= SUBMISSIONS // PER_PROCESS // 4
    site.database.close()


def _check(site: Site, acknowledged: Path) -> None:
    with site.database.reading() as session:
        integrity = doctor.check_integrity(session, site.artifacts, deep=True)
        version = benchmarks.get(session, "demo-tools")
        stored = runs.list_runs(session, benchmark_version_id=version.id)
        board = leaderboard.leaderboard(session, version.id)
        counts = {run_id: runs.summaries(session, run_id).height for run_id in stored["run_id"]}
    assert integrity.ok, integrity
    assert set(stored["state"]) <= {"published"}
    assert len(set(counts.values())) <= 1, "a run has only part of its figures"
    assert board.height == stored.height
    assert board["new"].null_count() == 0
    promised = set(acknowledged.read_text().split()) if acknowledged.exists() else set()
    assert promised <= set(stored["run_id"]), "an acknowledged run is lost"
