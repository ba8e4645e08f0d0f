"""A process killed at any moment leaves no row without its artifacts and no half-published run."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
from sqlmodel import select

from store.access import runs
from store.access.doctor import check_integrity, orphans
from store.models import Run, Submission

REPOSITORY = Path(__file__).resolve().parents[2]
KILLS = 8

#: Submits for ever: artifacts, then the run with its figures and submission, then (separately) publication.
_SUBMITTER = """
import os, sys
from pathlib import Path
import polars as pl
from store.access import benchmarks, retrievers, runs
from store.artifacts import ArtifactStore
from store.database import Database
from store.models import Run, Submission
from store.records import Summary
from store.settings import Settings

settings = Settings(home=Path(sys.argv[1]), database_url=sys.argv[2])
database, artifacts = Database(settings), ArtifactStore.from_settings(settings)
figures = [
    Summary(view, metric, k, "macro", 0.5, n=10)
    for view in ("old", "new") for metric in ("NDCG", "Recall", "Comp") for k in range(1, 21)
]
number = 0
while True:
    number += 1
    name = f"{os.getpid()}-{number}"
    ranking = artifacts.put_frame(pl.DataFrame({"query_id": [name] * 1000, "score": list(range(1000))}))
    raw = artifacts.put_bytes(name.encode() * 1000)
    with database.session() as session:
        retriever = retrievers.ensure_for_name(session, name)
        version = benchmarks.get(session, "weather@1.0")
        run = Run(
            benchmark_version_id=version.id, retriever_id=retriever.id, provenance="uploaded",
            ranking_artifact=ranking, ranking_hash=name, raw_artifact=raw, queries_total=10, queries_answered=10,
        )
        submission = Submission(benchmark_version_id=version.id, file_name=name)
        stored = runs.add_run(session, run, figures, submission=submission, artifacts=artifacts)
    with database.session() as session:
        runs.publish(session, stored.id)
    print("published", flush=True)
"""


@pytest.mark.slow
def test_killed_submitters_leave_only_whole_rows(database, settings, artifacts, benchmark):
    chance = random.Random(20)
    arguments = [sys.executable, "-c", _SUBMITTER, str(settings.home), settings.database_url]
    submitters = [
        subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY)
        for _ in range(KILLS)
    ]
    try:
        for submitter in submitters:
            assert submitter.stdout.readline() == "published\n", submitter.stderr.read()
            time.sleep(chance.uniform(0.01, 0.15))
            submitter.kill()
            submitter.communicate()
    finally:
        for submitter in submitters:
            if submitter.poll() is None:
                submitter.kill()
                submitter.communicate()

    with database.reading() as session:
        report = check_integrity(session, artifacts)
        assert report.ok, report
        stored = session.scalars(select(Run)).all()
        assert len(stored) >= KILLS
        submitted = {item.run_id: item.state for item in session.scalars(select(Submission))}
        for run in stored:
            assert runs.summaries(session, run.id).height == 120
            assert submitted[run.id] == "scored"
            assert run.state in {"scored", "published"}
            assert (run.published_at is not None) == (run.state == "published")
        assert len(submitted) == len(stored)
        # What a kill may leave: artifacts whose row was never written, two at most from each.
        assert len(orphans(session, artifacts, older_than=timedelta(0))) <= 2 * KILLS
    # The database is usable at once: no lock outlives its process.
    with database.session() as session:
        runs.publish(session, stored[0].id)
