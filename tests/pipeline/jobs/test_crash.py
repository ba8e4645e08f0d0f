"""``kill -9`` while runs are submitted: whatever is there is whole, and what was acknowledged is there."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlmodel import col

from pipeline.jobs.site import Site, open_site
from pipeline.jobs.submission import SubmissionMetadata, check_run, submit_run
from store.access import benchmarks, doctor, leaderboard, runs
from store.models import MetricSummary
from store.settings import Settings
from tests.pipeline.jobs.worker_process import FORKS

#: Processes that are killed amid their submissions, and submissions of each.
PROCESSES = 20
PER_PROCESS = 5


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
def test_killed_submissions_are_whole_or_absent(site: Site, tmp_path: Path, demo_run_file: Callable[..., Path]) -> None:
    acknowledged = tmp_path / "acknowledged"
    chance = random.Random(20261130)
    killed = 0
    before = 0
    window = 0.25
    for first in range(0, PROCESSES * PER_PROCESS, PER_PROCESS):
        files = [demo_run_file(site, shift=n, name=f"r{n}.trec") for n in range(first, first + PER_PROCESS)]
        mine, theirs = FORKS.Pipe()
        process = FORKS.Process(target=submit_many, args=(site.settings, files, acknowledged, theirs))
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
        told = len(_promised(acknowledged))
        if told == before:
            window *= 2  # a slow machine: the kill came before the first was through
        before = told
        _check(site, acknowledged)
    assert killed >= PROCESSES // 4 and before >= PROCESSES // 4
    # What was written is never written again, so its bytes are looked at once.
    with site.database.reading() as session:
        assert doctor.check_integrity(session, site.artifacts, deep=True).ok


def _check(site: Site, acknowledged: Path) -> None:
    with site.database.reading() as session:
        integrity = doctor.check_integrity(session, site.artifacts)
        version = benchmarks.get(session, "demo-tools")
        stored = runs.list_runs(session, benchmark_version_id=version.id)
        board = leaderboard.leaderboard(session, version.id)
        figures = session.execute(select(MetricSummary.run_id).where(col(MetricSummary.run_id).in_(stored["run_id"])))
        counts = Counter(figures.scalars())
    assert integrity.ok, integrity
    assert set(stored["state"]) <= {"published"}
    assert set(counts) == set(stored["run_id"]) and len(set(counts.values())) <= 1, "a run has only part of its figures"
    assert board.height == stored.height
    assert board["new"].null_count() == 0
    assert _promised(acknowledged) <= set(stored["run_id"]), "an acknowledged run is lost"


def _promised(acknowledged: Path) -> set[str]:
    return set(acknowledged.read_text().split()) if acknowledged.exists() else set()
