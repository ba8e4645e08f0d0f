"""Asking for jobs, with nobody there to do them."""

from __future__ import annotations

import time
from collections.abc import Generator
from pathlib import Path

import pytest

from pipeline.errors import BenchmarkError, ModelError, UsageError
from pipeline.jobs import durable, job_client, measured_runs, measuring, other_jobs
from pipeline.jobs.benchmark_library import import_into_store
from pipeline.jobs.demo_runs import submit_demo_runs
from pipeline.jobs.estimate import estimate
from pipeline.jobs.evaluation_request import EvaluationRequest, resolve_request
from pipeline.jobs.first_start import prepared_site
from pipeline.jobs.job_client import JobState
from pipeline.jobs.queues import parse_queues
from pipeline.jobs.site import Site, open_site
from pipeline.jobs.workflow_names import ANALYSE_FIELDS
from store.access import workers
from store.errors import Conflict, NotFound
from store.settings import Settings
from tests.pipeline.jobs.conftest import BACKENDS
from tests.pipeline.jobs.worker_process import small_benchmark

BM25 = EvaluationRequest("small", "bm25")
MINILM = EvaluationRequest("small", "minilm")


@pytest.fixture(params=BACKENDS)
def small_site(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Site]:
    """A site with the small benchmark alone."""
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else ""
    site = open_site(Settings(home=tmp_path / "home", database_url=url, limit_jobs_per_person=3))
    site.database.migrate()
    import_into_store(site, small_benchmark())
    yield site
    durable.close_job_client(site)
    site.database.close()


def test_the_same_request_is_the_same_job(small_site: Site) -> None:
    site = small_site
    first = job_client.submit(site, BM25)
    assert job_client.submit(site, EvaluationRequest("small@1", "bm25s", publish=True)) == first
    (job,) = job_client.list_jobs(site)
    assert (job.id, job.state, job.queue, job.position) == (first, JobState.WAITING, "cpu", 1)
    assert job.request == EvaluationRequest("small@1", "bm25")
    different = [
        EvaluationRequest("small", "bm25", depth=99),
        EvaluationRequest("small", "bm25", method="sub-query"),
        MINILM,
        EvaluationRequest("small", "minilm", preset="paper"),
        EvaluationRequest("small", "minilm", method="adapter"),
        EvaluationRequest("small", "minilm", method="adapter", positives="equivalents"),
    ]
    ids = {resolve_request(site, request).job_id for request in different}
    assert len(ids) == len(different) and first not in ids


def test_a_waiting_job_says_what_it_waits_for(small_site: Site) -> None:
    site = small_site
    first = job_client.submit(site, BM25)
    second = job_client.submit(site, MINILM)
    assert "worker" in job_client.job(site, first).waiting_for
    assert job_client.counts(site) == {"cpu": {JobState.WAITING: 2}}
    with site.database.session() as session:
        workers.beat(session, "w", host="here", pid=1, queues=("cpu",), device="cpu")
    assert job_client.job(site, first).waiting_for == "the next free worker takes it"
    waiting = job_client.job(site, second)
    assert waiting.position == 2 and waiting.waiting_for == "1 job is before it"
    assert job_client.log(site, second) == []
    # A worker that does a job already, one that the site does for itself too, is not free.
    own = job_client.submit(site, EvaluationRequest("small", "bm25", depth=7, person=""))
    _pretend_running(site, own, "w")
    assert job_client.job(site, first).waiting_for == "the worker is at an evaluation first"
    with site.database.session() as session:
        workers.beat(session, "v", host="here", pid=2, queues=("cpu",), device="cpu")
    assert job_client.job(site, first).waiting_for == "the next free worker takes it"
    # One that is more urgent goes before both.
    third = job_client.submit(site, EvaluationRequest("small", "bm25", depth=5), priority=1)
    assert job_client.job(site, third).position == 1
    assert job_client.job(site, second).position == 3


def test_what_the_worker_is_at_first_is_named_whatever_it_is(small_site: Site) -> None:
    site = small_site
    mine = job_client.submit(site, BM25)
    with site.database.session() as session:
        workers.beat(session, "w", host="here", pid=1, queues=("cpu",), device="cpu")
    for number in (1, 2):
        durable.job_client(site).enqueue(
            {"workflow_name": ANALYSE_FIELDS, "queue_name": "cpu", "workflow_id": f"fields-{number}", "priority": 5}
        )
    assert job_client.job(site, mine).position == 3, "analyses stand in the same queue"
    _pretend_running(site, "fields-1", "w", minutes=125)
    durable.job_client(site).cancel_workflow("fields-2")
    waiting = job_client.job(site, mine)
    assert waiting.position == 1
    assert waiting.waiting_for == "the worker is at an analysis of an MFTR run (2 h 5 min so far) first"
    (other,) = other_jobs.open_jobs(site)
    assert (other.kind, other.state) == ("an analysis of an MFTR run", JobState.RUNNING)
    assert other.since is not None
    _pretend_running(site, "fields-1", "w", minutes=0)
    assert "(less than a minute so far)" in job_client.job(site, mine).waiting_for


def _pretend_running(site: Site, job_id: str, worker: str, *, minutes: int | None = None) -> None:
    """What the worker's own copy of DBOS writes when it takes a job up, so many minutes ago."""
    from sqlalchemy import create_engine, text

    engine = create_engine(durable.job_database(site))
    table = "workflow_status" if durable.is_embedded(site) else "dbos.workflow_status"
    begun = None if minutes is None else int((time.time() - 60 * minutes - 1) * 1000)
    taken = text(
        f"UPDATE {table} SET status = 'PENDING', executor_id = :worker, started_at_epoch_ms = :begun "
        "WHERE workflow_uuid = :id"
    )
    with engine.begin() as connection:
        connection.execute(taken, {"worker": worker, "id": job_id, "begun": begun})
    engine.dispose()


def test_cancel_and_retry_while_waiting(small_site: Site) -> None:
    site = small_site
    job_id = job_client.submit(site, BM25)
    with pytest.raises(Conflict, match="waiting"):
        job_client.retry(site, job_id)
    cancelled = job_client.cancel(site, job_id)
    assert cancelled.state is JobState.CANCELLED and cancelled.can_retry and not cancelled.can_cancel
    assert job_client.counts(site) == {}
    again = job_client.retry(site, job_id)
    assert (again.state, again.queue, again.position) == (JobState.WAITING, "cpu", 1)
    with pytest.raises(NotFound):
        job_client.cancel(site, "evaluate-nothing")
    with pytest.raises(NotFound):
        job_client.retry(site, "evaluate-nothing")


def test_one_person_has_so_many_jobs_at_a_time(small_site: Site) -> None:
    site = small_site
    jobs = [job_client.submit(site, EvaluationRequest("small", "bm25", depth=depth)) for depth in (1, 2, 3)]
    with pytest.raises(Conflict, match="EQUIRANK_LIMIT_JOBS_PER_PERSON"):
        job_client.submit(site, BM25)
    assert job_client.submit(site, EvaluationRequest("small", "bm25", depth=1)) == jobs[0], "not a new one"
    job_client.submit(site, EvaluationRequest("small", "bm25", person="somebody else"))
    assert len(job_client.list_jobs(site, person="local")) == 3
    job_client.cancel(site, jobs[0])
    job_client.submit(site, EvaluationRequest("small", "bm25", depth=4))


@pytest.mark.parametrize(
    ("request_", "error", "says"),
    [
        (EvaluationRequest("nothing", "bm25"), NotFound, "nothing"),
        (EvaluationRequest("small", "no-such-model"), ModelError, "no-such-model"),
        (EvaluationRequest("small", "owner/name"), ModelError, "commit"),
        (EvaluationRequest("small", "bm25", method="magic"), UsageError, "full-doc"),
        (EvaluationRequest("small", "bm25", method="adapter"), UsageError, "dense"),
        (EvaluationRequest("small", "minilm", preset="own"), UsageError, "paper"),
        (EvaluationRequest("small", "minilm", depth=0), UsageError, "depth"),
        (EvaluationRequest("small", "minilm", dtype="float8"), UsageError, "bfloat16"),
        (
            EvaluationRequest("small", "litellm/openai/x", endpoint_url="http://169.254.169.254/latest"),
            ModelError,
            "EQUIRANK_ENDPOINT_HOSTS",
        ),
    ],
)
def test_a_request_that_cannot_work_is_refused_at_once(
    sqlite_small: Site, request_: EvaluationRequest, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        job_client.submit(sqlite_small, request_)
    assert not durable.has_jobs(sqlite_small)


@pytest.fixture
def sqlite_small(tmp_path: Path) -> Generator[Site]:
    site = open_site(Settings(home=tmp_path / "home"))
    site.database.migrate()
    import_into_store(site, small_benchmark())
    yield site
    durable.close_job_client(site)
    site.database.close()


def test_figures_without_content_cannot_be_measured(tmp_path: Path) -> None:
    site = prepared_site(Settings(home=tmp_path / "home"))
    with pytest.raises(BenchmarkError, match="import"):
        job_client.submit(site, EvaluationRequest("tooleq", "bm25"))
    site.database.close()


def test_an_estimate_counts_texts_and_knows_what_is_done(sqlite_small: Site) -> None:
    site = sqlite_small
    dense = estimate(site, MINILM)
    distinct = small_benchmark().tools["documentation"].n_unique()
    assert (dense.documents, dense.queue, dense.run_id, dense.served) == (distinct, "cpu", None, False)
    assert dense.to_encode == dense.documents + dense.queries
    assert 5 < dense.seconds < 300
    bigger = estimate(site, EvaluationRequest("small", "Qwen/Qwen3-Embedding-8B"))
    assert bigger.seconds > 20 * dense.seconds
    lexical = estimate(site, BM25)
    assert lexical.to_encode == 0 and lexical.seconds < dense.seconds
    run_id = measuring.measure(site, resolve_request(site, BM25))
    assert estimate(site, BM25).run_id == run_id
    assert estimate(site, BM25).seconds == 0


def test_the_same_run_is_measured_once_here_and_by_a_job(sqlite_small: Site) -> None:
    site = sqlite_small
    evaluation = resolve_request(site, BM25)
    run_id = measuring.measure(site, evaluation)
    assert measuring.measure(site, evaluation) == run_id == measured_runs.run_id_of(evaluation.job_id)
    stored = measuring.rank(site, evaluation)
    assert measured_runs.store_run(site, evaluation, stored) == run_id


def test_demo_runs_are_asked_for_once_and_can_be_switched_off(tmp_path: Path) -> None:
    site = prepared_site(Settings(home=tmp_path / "home"))
    asked = submit_demo_runs(site)
    jobs = job_client.list_jobs(site)
    assert len(asked) == len(set(asked)) == 20 and {job.id for job in jobs} == set(asked)
    assert {job.request.method for job in jobs} == {"full-doc", "sub-query", "adapter", "mftr"}
    assert {job.request.method_preset for job in jobs if job.request.method == "mftr"} == {"paper", "v2"}
    assert {job.queue for job in jobs} == {"cpu"}, "the demo needs no key"
    assert all(job.request.publish for job in jobs)
    assert job_client.list_jobs(site, person="local") == []
    assert submit_demo_runs(site) == []
    durable.close_job_client(site)
    off = prepared_site(Settings(home=tmp_path / "off", demo_runs=False))
    assert submit_demo_runs(off) == [] and not durable.has_jobs(off)
    for made in (site, off):
        made.database.close()


def test_queues_are_named_in_full() -> None:
    assert parse_queues("gpu, cpu,gpu") == ("gpu", "cpu")
    for wrong in ("", "cpu,tpu", "cpu-shards"):
        with pytest.raises(UsageError, match="cpu, gpu, llm"):
            parse_queues(wrong)
