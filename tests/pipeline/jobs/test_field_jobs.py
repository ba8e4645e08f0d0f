"""MFTR and its rivals as jobs of real workers: without a language model, with one, killed, out of money, in batches."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from pipeline.jobs import durable, job_client
from pipeline.jobs.benchmark_library import import_into_store
from pipeline.jobs.evaluation_request import EvaluationRequest, resolve_request
from pipeline.jobs.fields import explaining as mftr_explaining
from pipeline.jobs.fields import reading as mftr_reading
from pipeline.jobs.job_client import Job, JobState
from pipeline.jobs.job_files import job_files
from pipeline.jobs.llm_answers import StoredAnswers
from pipeline.jobs.site import Site, open_site
from store.access import doctor, runs
from store.errors import Conflict
from store.models import Run
from store.records import RunRecord
from store.settings import Settings
from tests.llm_server import LlmServer
from tests.pipeline.jobs.field_answers import answer
from tests.pipeline.jobs.worker_process import WorkerProcess, fields_benchmark, finished, repeated, wait_for

pytestmark = pytest.mark.slow

LLM = "openai/tester"
RULES = EvaluationRequest("fields", "minilm", "mftr", publish=True)
BY_MODEL = EvaluationRequest("fields", "bm25", "mftr", standardizer="llm", rewriter="llm", llm=LLM, budget=5000.0)


@pytest.fixture
def server() -> Generator[LlmServer]:
    with LlmServer(answer) as made:
        yield made


def make_site(home: Path, server: LlmServer | None = None, database_url: str = "") -> Site:
    llm = {} if server is None else {"llm_base_url": server.url, "llm_prices": f"{LLM}=1000/1000"}
    site = open_site(
        Settings(home=home, database_url=database_url, worker_lost_seconds=2, demo_runs=False, llm_concurrency=4, **llm)
    )
    site.database.migrate()
    import_into_store(site, fields_benchmark())
    return site


def close(site: Site) -> None:
    durable.close_job_client(site)
    site.database.close()


@pytest.fixture
def start(tmp_path: Path) -> Generator[Callable[..., WorkerProcess]]:
    started: list[WorkerProcess] = []

    def begin(site: Site, **options: object) -> WorkerProcess:
        started.append(WorkerProcess(site, tmp_path / "meter", queues=("cpu", "llm"), **options))  # type: ignore[arg-type]
        return started[-1]

    yield begin
    for worker in started:
        if worker.process.is_alive():
            worker.kill()


def run_of(site: Site, job: Job) -> RunRecord:
    assert job.state is JobState.DONE, (job, job_client.log(site, job.id))
    assert job.run_id is not None
    with site.database.reading() as session:
        assert doctor.check_integrity(session, site.artifacts, deep=True).ok
        return runs.get(session, job.run_id)


def test_mftr_without_a_key_is_measured_and_explained(tmp_path: Path, start: Callable[..., WorkerProcess]) -> None:
    site = make_site(tmp_path / "home")
    full_doc = job_client.submit(site, EvaluationRequest("fields", "minilm", publish=True))
    job_id = job_client.submit(site, RULES)
    start(site)
    base, run = run_of(site, finished(site, full_doc)), run_of(site, finished(site, job_id))
    assert (run.method, run.level, run.provenance, run.state) == ("mftr", "query", "measured", "published")
    assert run.contract == "card, MFTR paper, rule-based documents, original query"
    assert run.trained_on_benchmark == "yes" and run.retriever_id == base.retriever_id
    assert any("rule-based" in note for note in run.notes) and any("5 folds" in note for note in run.notes)
    assert run.contract_hash != base.contract_hash
    assert run.method_settings is not None
    assert run.method_settings["encoding_contract"] == base.contract_hash
    assert run.efficiency is not None
    assert run.efficiency["llm_calls_per_query"] == 0 and run.efficiency["aggregation_ms"] > 0
    (pair,) = mftr_reading.method_pairs(site, "fields")
    assert (pair.base_run, pair.method_run) == (base.id, run.id)
    sets = mftr_reading.field_text_sets(site, "fields")
    assert {(found.kind, found.source) for found in sets} == {("tools", "rule-based"), ("queries", "original query")}
    weights = mftr_reading.weight_table(site, "fields")
    assert weights.height == 4 and weights["run_id"].unique().to_list() == [run.id]
    # The first tool of each list has rank 1 when it is explained, and its score is the run's.
    assert run.ranking_artifact is not None
    ranking = site.artifacts.get_frame(run.ranking_artifact).select("query_id", "tool_id", "score")
    work = mftr_explaining.run_work(site, run.id)
    for query_id, tool_id, score in ranking.group_by("query_id", maintain_order=True).first().iter_rows():
        found = mftr_explaining.explain_in(site, work, query_id, tool_id)
        assert found.rank == 1 and found.score == pytest.approx(score, abs=1e-4)
        assert found.full_doc_rank is not None and len(found.fields) == 4
    close(site)


@pytest.mark.postgres
def test_on_postgresql_fields_are_encoded_in_shards_of_their_own(
    tmp_path: Path, postgres_url: str, server: LlmServer, start: Callable[..., WorkerProcess]
) -> None:
    site = make_site(tmp_path / "home", server, postgres_url)
    request = EvaluationRequest.from_json({**BY_MODEL.as_json(), "model": "minilm"})
    jobs = [job_client.submit(site, RULES), job_client.submit(site, request)]
    start(site)
    for job_id in jobs:
        run_of(site, finished(site, job_id))
        shards = durable.job_client(site).list_workflows(parent_workflow_id=job_id, name="encode_shard")
        assert len(shards) > 2 and {shard.status for shard in shards} == {"SUCCESS"}
    assert all(count == 1 for count in server.counts().values())
    close(site)


def test_kills_lose_nothing_and_change_nothing(tmp_path: Path, start: Callable[..., WorkerProcess]) -> None:
    calm = make_site(tmp_path / "calm")
    worker = WorkerProcess(calm, tmp_path / "calm-meter", queues=("cpu", "llm"))
    undisturbed = run_of(calm, finished(calm, job_client.submit(calm, RULES)))
    worker.stop()
    close(calm)
    site = make_site(tmp_path / "home")
    job_id = job_client.submit(site, RULES)
    chance = random.Random(5)
    kills = amid = 0
    for _ in range(6):
        disturbed = start(site, pause=0.03)
        time.sleep(chance.uniform(0.2, 1.2))
        amid += not job_client.job(site, job_id).state.ended
        disturbed.kill()
        kills += 1
    start(site)
    run = run_of(site, finished(site, job_id))
    assert amid >= 3, "the job was over before the kills"
    assert (run.ranking_hash, run.contract_hash) == (undisturbed.ranking_hash, undisturbed.contract_hash)
    assert run.method_settings == undisturbed.method_settings
    assert repeated(tmp_path / "meter") <= kills
    close(site)


def test_a_killed_job_asks_no_committed_question_again(
    tmp_path: Path, server: LlmServer, start: Callable[..., WorkerProcess]
) -> None:
    server.delay = 0.05
    site = make_site(tmp_path / "home", server)
    job_id = job_client.submit(site, BY_MODEL)
    kills = 0
    for _ in range(3):
        worker = start(site)
        before = server.completed
        wait_for(site, job_id, lambda job, seen=before: server.completed >= seen + 15)
        worker.kill()
        kills += 1
    start(site)
    run = run_of(site, finished(site, job_id))
    tools, queries = fields_benchmark().tools.height, fields_benchmark().queries.height
    asked = server.counts()
    assert len(asked) == 4 * tools + queries
    again = sum(count - 1 for count in asked.values())
    assert again <= 4 * kills, "more than what was in flight at a kill was asked again"
    assert run.contract == f"card, MFTR paper, documents by {LLM}, rewritten by {LLM}"
    assert run.efficiency is not None
    assert run.efficiency["llm_calls_per_query"] == 1 and run.efficiency["llm_calls_per_tool"] == 4
    assert run.efficiency["llm_seconds_per_query"] > 0.04
    evaluation = resolve_request(site, BY_MODEL)
    # Noted before they are sent: a kill may fall between the two.
    noted = StoredAnswers(site.database).spent(evaluation.run_key).calls
    assert sum(asked.values()) <= noted <= sum(asked.values()) + 4 * kills
    log = " ".join(line.text for line in job_client.log(site, job_id))
    assert "US dollars so far" in log and "queries: 12 of 12 asked" in log
    close(site)


def test_a_budget_ends_a_job_and_a_greater_one_goes_on(
    tmp_path: Path, server: LlmServer, start: Callable[..., WorkerProcess]
) -> None:
    site = make_site(tmp_path / "home", server)
    poor = EvaluationRequest.from_json({**BY_MODEL.as_json(), "budget": 40.0})
    rich = BY_MODEL
    start(site)
    job_id = job_client.submit(site, poor)
    failed = finished(site, job_id)
    assert failed.state is JobState.FAILED and "budget" in failed.error
    key = resolve_request(site, poor).run_key
    spent = StoredAnswers(site.database).spent(key)
    assert 0 < spent.cost <= 40
    asked = server.count
    more = job_client.submit(site, rich)
    assert more != job_id and resolve_request(site, rich).run_key == key
    run_of(site, finished(site, more))
    assert all(count == 1 for count in server.counts().values()), "what was paid for was asked again"
    assert server.count > asked
    # The same under any budget is the same run, which is there now.
    done = job_client.submit(site, EvaluationRequest.from_json({**BY_MODEL.as_json(), "budget": 6000.0}))
    assert finished(site, done).run_id == job_client.job(site, more).run_id
    close(site)


def answers_file(site: Site, job: Job, path: Path) -> int:
    """What a provider returns for the job's batch; how many requests it had."""
    requests = [
        json.loads(line) for digest in job.batch for line in site.artifacts.get_bytes(digest).decode().splitlines()
    ]
    with path.open("w", encoding="utf-8") as file:
        for request in requests:
            message = {"role": "assistant", "content": json.dumps(answer(request["body"]))}
            body = {
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
            }
            line = {"custom_id": request["custom_id"], "response": {"status_code": 200, "body": body}, "error": None}
            file.write(json.dumps(line) + "\n")
    return len(requests)


def test_a_batch_waits_for_its_answers_and_ends_as_live_calls_do(
    tmp_path: Path, server: LlmServer, start: Callable[..., WorkerProcess]
) -> None:
    live = make_site(tmp_path / "live", server)
    worker = WorkerProcess(live, tmp_path / "live-meter", queues=("cpu", "llm"))
    wanted = run_of(live, finished(live, job_client.submit(live, BY_MODEL)))
    worker.stop()
    close(live)
    calls = server.count

    site = make_site(tmp_path / "home", server)
    request = EvaluationRequest.from_json({**BY_MODEL.as_json(), "batch": True, "budget": None})
    job_id = job_client.submit(site, request)
    start(site)
    tools, queries = fields_benchmark().tools.height, fields_benchmark().queries.height
    rounds = []
    for number in range(2):
        job = finished(site, job_id)
        assert job.state is JobState.ANSWERS and job.can_retry, job
        assert set(job.batch) <= set(job_files(site)), "nobody may take the batch for an orphan"
        path = tmp_path / f"answers{number}.jsonl"
        rounds.append(answers_file(site, job, path))
        assert job.pending == rounds[-1]
        if number == 0:
            # Half the answers: the job goes on and waits for the others.
            whole = path.read_text().splitlines(keepends=True)
            path.write_text("".join(whole[: len(whole) // 2]) + "no json\n")
            job_client.import_answers(site, job_id, path)
            half = wait_for(site, job_id, lambda job: job.state is JobState.ANSWERS)
            assert half.pending == len(whole) - len(whole) // 2
            assert any("no JSON object" in line.text for line in job_client.log(site, job_id))
            path.write_text("".join(whole[len(whole) // 2 :]))
        job_client.import_answers(site, job_id, path)
        wait_for(site, job_id, lambda job: job.state.ended)
    job = finished(site, job_id)
    run = run_of(site, job)
    assert job_files(site) == {}
    assert rounds == [4 * tools, queries]
    assert server.count == calls, "a batch asks nobody"
    assert (run.ranking_hash, run.contract_hash) == (wanted.ranking_hash, wanted.contract_hash)
    assert run.method_settings == wanted.method_settings
    with pytest.raises(Conflict, match="done"):
        job_client.import_answers(site, job_id, path)
    close(site)


@pytest.mark.parametrize("method", ["easytool", "pluto"])
def test_rivals_with_a_language_model_run_to_the_end(
    tmp_path: Path, server: LlmServer, start: Callable[..., WorkerProcess], method: str
) -> None:
    site = make_site(tmp_path / "home", server)
    job_id = job_client.submit(site, EvaluationRequest("fields", "bm25", method, llm=LLM, budget=5000.0))
    assert job_client.job(site, job_id).queue == "llm"
    start(site)
    run = run_of(site, finished(site, job_id))
    assert run.method == method and LLM in run.contract
    assert run.efficiency is not None
    assert run.efficiency["llm_calls_per_tool"] > 0
    assert (run.efficiency["llm_calls_per_query"] > 0) == (method == "pluto")
    assert server.count > fields_benchmark().tools.height
    with site.database.reading() as session:
        row = session.get(Run, run.id)
        assert row is not None and row.queries_answered == row.queries_total
    close(site)


@pytest.mark.parametrize("method", ["easytool", "mftr"])
def test_a_job_that_failed_for_want_of_answers_asks_again_when_it_is_tried_again(
    tmp_path: Path, server: LlmServer, start: Callable[..., WorkerProcess], method: str
) -> None:
    site = make_site(tmp_path / "home", server)
    server.answer = lambda body: "nothing of the kind"
    texts = {"standardizer": "llm"} if method == "mftr" else {}
    request = EvaluationRequest("fields", "bm25", method, llm=LLM, budget=5000.0, **texts)
    job_id = job_client.submit(site, request)
    start(site)
    failed = wait_for(site, job_id, lambda job: job.state.ended)
    assert failed.state is JobState.FAILED and LLM in failed.error
    calls = server.count
    assert calls, "it did ask"
    server.answer = answer
    job_client.retry(site, job_id)
    run = run_of(site, finished(site, job_id))
    assert run.method == method and server.count > calls
    close(site)


def test_every_variant_and_onlinerag_run_as_jobs(
    tmp_path: Path, server: LlmServer, start: Callable[..., WorkerProcess]
) -> None:
    site = make_site(tmp_path / "home", server)
    asked = {
        "onlinerag": EvaluationRequest("fields", "minilm", "onlinerag"),
        **{
            method: EvaluationRequest("fields", "bm25", method)
            for method in ("stand-only", "weighting-only", "weighting-stand", "without-weighting", "without-penalty")
        },
        **{
            method: EvaluationRequest("fields", "bm25", method, rewriter="llm", llm=LLM, budget=5000.0)
            for method in ("rewrite-only", "stand-rewrite", "weighting-rewrite")
        },
    }
    jobs = {method: job_client.submit(site, request) for method, request in asked.items()}
    start(site)
    for method, job_id in jobs.items():
        run = run_of(site, finished(site, job_id))
        assert run.method == method
        learned = method in ("onlinerag", "without-penalty") or method.startswith("weighting-")
        assert run.trained_on_benchmark == ("yes" if learned else "no"), method
    assert server.count == fields_benchmark().queries.height, "one rewriting serves all variants"
    close(site)
