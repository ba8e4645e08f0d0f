"""Real workers: results, cancel, retry, ``kill -9``, and two of them on PostgreSQL."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from pipeline.jobs import durable, job_client, statistics
from pipeline.jobs.benchmark_library import import_into_store
from pipeline.jobs.evaluation_request import EvaluationRequest
from pipeline.jobs.job_client import JobState
from pipeline.jobs.site import Site, open_site
from store.access import doctor, runs, submissions, workers
from store.access import statistics as stored_statistics
from store.models import Run
from store.settings import Settings
from tests.pipeline.jobs.worker_process import WorkerProcess, encoded, finished, repeated, small_benchmark, wait_for

pytestmark = pytest.mark.slow

MINILM = EvaluationRequest("small", "minilm")
#: What the killed worker is asked for; the second shares its documents with the first, the third shares nothing.
REQUESTS = (
    MINILM,
    EvaluationRequest("small", "minilm", method="sub-query"),
    EvaluationRequest("small", "minilm", preset="paper"),
    EvaluationRequest("small", "minilm", method="adapter"),
    EvaluationRequest("small", "bm25"),
)


def make_site(home: Path, database_url: str = "") -> Site:
    site = open_site(Settings(home=home, database_url=database_url, worker_lost_seconds=2, demo_runs=False))
    site.database.migrate()
    import_into_store(site, small_benchmark())
    return site


def close(site: Site) -> None:
    durable.close_job_client(site)
    site.database.close()


@pytest.fixture
def small_site(tmp_path: Path) -> Generator[Site]:
    """A SQLite site with the small benchmark."""
    site = make_site(tmp_path / "home")
    yield site
    close(site)


@pytest.fixture
def start(tmp_path: Path) -> Generator[Callable[..., WorkerProcess]]:
    """Starts workers that are gone after the test; what they encode is in ``tmp_path / "meter"``."""
    started: list[WorkerProcess] = []

    def begin(site: Site, **options: float) -> WorkerProcess:
        started.append(WorkerProcess(site, tmp_path / "meter", **options))
        return started[-1]

    yield begin
    for worker in started:
        if worker.process.is_alive():
            worker.kill()


Results = dict[str, tuple[str | None, ...]]


def results(site: Site, jobs: list[str]) -> Results:
    """What each job's run is, without its id and times."""
    found: Results = {}
    with site.database.reading() as session:
        for job_id in jobs:
            run_id = job_client.job(site, job_id).run_id
            assert run_id is not None
            run = session.get(Run, run_id)
            assert run is not None
            found[job_id] = (
                run.ranking_hash,
                run.ranking_artifact,
                run.per_query_artifact,
                run.contract_hash,
                # Intervals follow in a job of their own, sooner or later.
                str(runs.summaries(session, run_id).drop("low", "high").rows()),
            )
        assert doctor.check_integrity(session, site.artifacts, deep=True).ok
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The results of a worker that nobody kills."""
    folder = tmp_path_factory.mktemp("undisturbed")
    site = make_site(folder / "home")
    jobs = [job_client.submit(site, request) for request in REQUESTS]
    worker = WorkerProcess(site, folder / "meter")
    for job_id in jobs:
        job = finished(site, job_id)
        assert job.state is JobState.DONE, job
    assert worker.stop() == 0
    assert repeated(folder / "meter") == 0
    found = results(site, jobs)
    close(site)
    return found


def test_a_measured_run_says_how_it_was_made(small_site: Site, start: Callable[..., WorkerProcess]) -> None:
    site = small_site
    job_id = job_client.submit(site, MINILM)
    worker = start(site)
    job = finished(site, job_id)
    assert job.state is JobState.DONE and job.error == "" and job.run_id is not None
    with site.database.reading() as session:
        run = runs.get(session, job.run_id)
        submission = submissions.of_run(session, job.run_id)
        (heartbeat,) = workers.list_workers(session)
    assert (run.provenance, run.method, run.level, run.contract) == ("measured", "full-doc", "query", "card")
    assert (run.state, run.visibility) == ("scored", "private") and run.private_token
    assert run.contract_hash and run.queries_answered == run.queries_total
    assert run.efficiency is not None and run.efficiency["dimension"] == 384
    assert run.efficiency["encode_seconds_per_1000_documents"] > 0
    assert submission is not None and submission.person == "local"
    assert heartbeat.id == worker.name == "embedded" and heartbeat.silent_s < 5
    lines = [line.text for line in job_client.log(site, job_id)]
    assert any("distinct documents" in line for line in lines) and job.run_id in lines[-1]
    assert worker.stop() == 0
    with site.database.reading() as session:
        assert workers.list_workers(session) == []


def test_a_worker_computes_statistics_by_itself(small_site: Site, start: Callable[..., WorkerProcess]) -> None:
    site = small_site
    job_id = job_client.submit(site, EvaluationRequest("small", "bm25", publish=True))
    worker = start(site)
    run_id = finished(site, job_id).run_id
    assert run_id is not None
    deadline = time.monotonic() + 120
    while statistics.pending(site):
        assert time.monotonic() < deadline, statistics.pending(site)
        time.sleep(0.2)
    assert worker.stop() == 0
    with site.database.reading() as session:
        run = runs.get(session, run_id)
        assert run.statistics_version is not None
        assert runs.summaries(session, run_id)["low"].null_count() == 0
        assert stored_statistics.of_board(session, run.benchmark_version_id) is not None
        assert doctor.check_integrity(session, site.artifacts, deep=True).ok
    assert [job.id for job in job_client.list_jobs(site)] == [job_id], "nobody asked for the statistics"


def test_cancel_takes_effect_within_five_seconds_and_retry_goes_on(
    small_site: Site, start: Callable[..., WorkerProcess], tmp_path: Path
) -> None:
    site, meter = small_site, tmp_path / "meter"
    job_id = job_client.submit(site, MINILM)
    start(site, pause=0.4)
    wait_for(site, job_id, lambda job: job.progress is not None and job.progress.done > 0)
    after = job_client.submit(site, EvaluationRequest("small", "bm25"))
    asked = time.monotonic()
    assert job_client.cancel(site, job_id).state is JobState.CANCELLED
    assert finished(site, after).state is JobState.DONE
    assert time.monotonic() - asked < 5
    done = len(encoded(meter))
    time.sleep(1)
    assert len(encoded(meter)) == done, "the cancelled job still encodes"
    assert job_client.job(site, job_id).can_retry
    assert job_client.submit(site, MINILM) == job_id, "asking again tries a cancelled job again"
    wait_for(site, job_id, lambda job: len(encoded(meter)) > done + 2)
    assert repeated(meter) <= 1, "texts from before the cancel are encoded again"


def test_a_model_that_cannot_be_had_fails_in_words(small_site: Site, start: Callable[..., WorkerProcess]) -> None:
    site = small_site
    request = EvaluationRequest("small", "nobody/nothing@" + "0" * 40)
    job_id = job_client.submit(site, request)
    start(site)
    job = finished(site, job_id)
    assert job.state is JobState.FAILED
    assert "nobody/nothing" in job.error and "hub" in job.error and "Traceback" not in job.error
    assert job.can_retry
    job_client.retry(site, job_id)
    again = finished(site, job_id)
    assert again.state is JobState.FAILED and again.error == job.error


def test_twenty_kills_lose_nothing_and_change_nothing(
    small_site: Site, start: Callable[..., WorkerProcess], tmp_path: Path, undisturbed: Results
) -> None:
    site, meter = small_site, tmp_path / "meter"
    jobs = [job_client.submit(site, request) for request in REQUESTS]
    chance = random.Random(3)
    kills = amid = 0
    for _ in range(20):
        worker = start(site, pause=0.02)
        time.sleep(chance.uniform(0, 1.0))
        amid += any(not job.state.ended for job in job_client.list_jobs(site))
        worker.kill()
        kills += 1
    start(site)
    for job_id in jobs:
        job = finished(site, job_id)
        assert job.state is JobState.DONE, job
    assert results(site, jobs) == undisturbed
    assert repeated(meter) <= kills, "more than the batch that was amid a kill was encoded again"
    assert amid >= 10, "the jobs were over before the kills"


@pytest.mark.postgres
def test_cancel_and_retry_reach_the_shards(
    tmp_path: Path, postgres_url: str, start: Callable[..., WorkerProcess], undisturbed: Results
) -> None:
    site = make_site(tmp_path / "home", postgres_url)
    try:
        job_id = job_client.submit(site, MINILM)
        start(site, pause=0.05)
        wait_for(site, job_id, lambda job: job.progress is not None and job.progress.done > 0)
        job_client.cancel(site, job_id)
        shards = durable.job_client(site).list_workflows(parent_workflow_id=job_id, name="encode_shard")
        assert len(shards) > 5 and {shard.status for shard in shards} <= {"SUCCESS", "CANCELLED"}
        done = len(encoded(tmp_path / "meter"))
        time.sleep(1)
        assert len(encoded(tmp_path / "meter")) <= done + 1, "a cancelled shard still encodes"
        job_client.retry(site, job_id)
        assert finished(site, job_id).state is JobState.DONE
        assert results(site, [job_id]) == {job_id: undisturbed[job_id]}
        assert repeated(tmp_path / "meter") <= 1
    finally:
        close(site)


@pytest.mark.postgres
def test_two_workers_on_postgresql_and_one_is_killed(
    tmp_path: Path, postgres_url: str, start: Callable[..., WorkerProcess], undisturbed: Results
) -> None:
    site = make_site(tmp_path / "home", postgres_url)
    try:
        jobs = [job_client.submit(site, request) for request in REQUESTS[:2]]
        pair = [start(site, pause=0.05), start(site, pause=0.05)]
        assert pair[0].name != pair[1].name
        job = wait_for(site, jobs[0], lambda job: job.progress is not None and job.progress.done > 0)
        killed = next(worker for worker in pair if worker.name == job.worker)
        killed.kill()
        for job_id in jobs:
            job = finished(site, job_id)
            assert job.state is JobState.DONE, job
        assert job_client.job(site, jobs[0]).worker != killed.name
        assert results(site, jobs) == {job_id: undisturbed[job_id] for job_id in jobs}
        # The killed worker's batch, and two that both had at the moment the shard changed hands.
        assert repeated(tmp_path / "meter") <= 2, "a shard was encoded by both"
    finally:
        close(site)
