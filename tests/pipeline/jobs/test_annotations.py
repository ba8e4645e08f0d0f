"""Expansions: asked for once, done live, in a job or in rounds of a batch with the same outcome, and stopped."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.benchmark import Benchmark
from pipeline.errors import BudgetExceeded, ModelError, UsageError
from pipeline.jobs import durable, job_client, llm_answers
from pipeline.jobs.annotations import batch, following, requests, working
from pipeline.jobs.annotations.here import run_here
from pipeline.jobs.annotations.requests import AnnotationRequest
from pipeline.jobs.benchmark_library import load_benchmark
from pipeline.jobs.job_client import JobState
from pipeline.jobs.llm_answers import StoredAnswers
from pipeline.jobs.site import Site
from pipeline.llm.config import AskingConfig
from pipeline.toolex import questions
from pipeline.toolex.estimate import estimate_run
from pipeline.toolex.settings import PoolMember, Stage
from store.access import annotations as stored
from store.access import benchmarks, doctor
from store.annotation_models import Annotation
from store.errors import Conflict, NotFound
from store.settings import Settings
from tests.llm_server import Fault, LlmServer, answer_batch
from tests.pipeline.jobs.annotation_work import (
    JUDGES,
    LEXICAL,
    bare,
    close,
    define,
    demo,
    exported,
    seen_queries,
    site_with,
    work_here,
    written_labels,
)
from tests.pipeline.toolex.demo_judge import LabelJudge, labels_of

#: Small, so that a small benchmark has several chunks.
CHUNK = 3


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (following, working):
        monkeypatch.setattr(module, "CHUNK", CHUNK)


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = llm_answers.asking_config

    def quick(settings: Settings) -> AskingConfig:
        return replace(plain(settings), backoff_seconds=0.01, longest_wait_seconds=0.05)

    monkeypatch.setattr(llm_answers, "asking_config", quick)


@pytest.fixture(scope="module")
def skills() -> Benchmark:
    return demo("skills")


@pytest.fixture(scope="module")
def tools() -> Benchmark:
    return demo("tools")


@pytest.fixture(scope="module")
def few(skills: Benchmark) -> Benchmark:
    """Seven queries: two chunks and one query."""
    return bare(skills, seen_queries(skills, 7))


@pytest.fixture
def server(skills: Benchmark) -> Generator[LlmServer]:
    with LlmServer(LabelJudge(skills)) as server:
        yield server


@pytest.fixture
def site(tmp_path: Path, few: Benchmark, server: LlmServer) -> Generator[Site]:
    made = site_with(tmp_path / "home", few, server.url)
    yield made
    close(made)


def faults() -> Any:
    """Most requests go wrong when they come for the first time, in every way there is; one of them stalls."""
    seen: set[str] = set()
    kinds = [
        Fault.rate_limit(0.01),
        None,
        Fault.error(500),
        Fault.drop(),
        Fault.invalid_json(),
        Fault.truncated(),
        Fault.wrong_shape(),
        Fault.garbage(),
        Fault.prose(),
    ]

    def fault(number: int, body: dict[str, Any]) -> Fault | None:
        told = hashlib.sha256(str(body["messages"][1]["content"]).encode()).hexdigest()
        if told in seen:
            return None
        seen.add(told)
        return Fault.stall(30) if len(seen) == 5 else kinds[len(seen) % len(kinds)]

    return fault


@pytest.mark.parametrize("kind", ["skills", "tools"])
def test_every_way_of_asking_gives_the_labels_and_the_same_bytes(
    kind: str, skills: Benchmark, tools: Benchmark, tmp_path: Path
) -> None:
    whole = {"skills": skills, "tools": tools}[kind]
    ids = seen_queries(whole, 4)
    parent, judge = bare(whole, ids), LabelJudge(whole)
    folders = {}

    with LlmServer(judge, faults=faults()) as server:
        here = site_with(tmp_path / "here", parent, server.url, llm_read_seconds=3)
        said: list[str] = []
        made = run_here(here, define(here).id, say=said.append)
        assert "queries 1 to 3 of 4 are done; " in said[0] and "US dollars so far" in said[0]
        assert "queries 4 to 4 of 4" in said[1] and said[2].startswith("stored as bare@2: ")
        found = load_benchmark(here, made.id)
        assert labels_of(found) == written_labels(whole, ids)
        assert made.name == "bare@2" and made.parents == ("bare@1",) and not made.is_demo
        folders["here"] = exported(here, made.id, tmp_path / "here-folder")
        progress = requests.look(here, define(here).id)
        assert (progress.state, progress.chunks_done, progress.queries_done) == (JobState.DONE, 2, 4)
        assert progress.failures == {"decompose": 0, "verify": 0, "audit": 0}
        # Every request was counted: at least one more for most questions.
        calls = sum(line.usage.calls for line in progress.meter)
        asked = here.artifacts.get_frame(progress.record.artifacts["provenance"]).height
        assert calls == server.count == progress.spent.calls > asked * 1.5
        assert {line.purpose: line.model for line in progress.meter} == {
            stage: JUDGES[f"{stage}_judge"] for stage in Stage
        }
        with here.database.reading() as session:
            assert doctor.check_integrity(session, here.artifacts).ok
        close(here)

    early = [Fault.drop(), Fault.error(500), Fault.truncated(), Fault.rate_limit(0.01), Fault.wrong_shape()]
    with LlmServer(judge, faults=early) as server:
        site = site_with(tmp_path / "job", parent, server.url)
        record = define(site, max_calls=10_000)
        job_id = requests.start(site, record.id)
        assert requests.look(site, record.id).waiting_for
        work_here(site, job_id)
        done = requests.look(site, record.id)
        assert done.state is JobState.DONE, (done, job_client.log(site, job_id))
        version = done.record.made_version_id
        assert version is not None
        folders["job"] = exported(site, version, tmp_path / "job-folder")
        lines = [line.text for line in job_client.log(site, job_id)]
        assert any("queries 4 to 4 of 4" in line for line in lines) and lines[-1] == "stored as bare@2"
        close(site)

    site = site_with(tmp_path / "batch", parent)
    record = define(site)
    written = []
    for number in range(3):
        source, answers = tmp_path / f"{number}.jsonl", tmp_path / f"{number}.answers.jsonl"
        sent = batch.export_round(site, record.id, source)
        assert sent.parts == (source,) and sent.made is None
        waiting = requests.look(site, record.id)
        assert waiting.state is JobState.ANSWERS and waiting.pending == sent.pending and len(waiting.batch) == 1
        written.append(answer_batch(source, answers, judge))
        took = batch.import_round(site, record.id, answers)
        assert (took.report.accepted, took.report.missing, took.report.problems) == (sent.pending, 0, ())
        again = batch.import_round(site, record.id, answers)
        assert (again.report.accepted, again.report.known) == (0, sent.pending) and again.next == took.next
    assert took.next == 0 and took.made is not None and took.made == again.made
    assert written[0] == 4
    folders["batch"] = exported(site, took.made.id, tmp_path / "batch-folder")
    close(site)
    assert folders["here"] == folders["job"] == folders["batch"]


def test_what_cannot_be_asked_for_is_refused_in_words(site: Site, few: Benchmark) -> None:
    record = define(site, max_cost=3.0)
    assert define(site, max_cost=8.0) == record, "the same request is the same expansion and keeps its budget"
    assert define(site, replace(LEXICAL, depth=7), "3").id != record.id
    with site.database.reading() as session:
        assert benchmarks.get(session, "bare").version == "1"

    def ask(**changes: Any) -> None:
        requests.define(site, replace(AnnotationRequest("bare", "4", LEXICAL), **changes))

    with pytest.raises(Conflict, match="bare@1 is stored"):
        ask(version="1")
    with pytest.raises(Conflict, match="bare@2 is what the expansion"):
        ask(version="2", settings=replace(LEXICAL, depth=5))
    with pytest.raises(UsageError, match="version"):
        ask(version="two words")
    with pytest.raises(NotFound, match="bare@1"):
        ask(benchmark="nothing")
    with pytest.raises(ModelError, match="no-such-model"):
        ask(settings=replace(LEXICAL, pool=(PoolMember("no-such-model"),)))
    with pytest.raises(ModelError, match="somebody/unpinned"):
        ask(settings=replace(LEXICAL, pool=(PoolMember("somebody/unpinned"),)))
    for wrong in (
        {"max_cost": -1.0},
        {"max_cost": float("nan")},
        {"max_cost": 1e308},
        {"max_calls": -1},
        {"max_calls": 10**23},
    ):
        with pytest.raises(UsageError, match="budget"):
            ask(**wrong)
    with pytest.raises(NotFound):
        requests.start(site, "0" * 32)
    assert len(requests.list_annotations(site)) == 2
    unlimited = define(site, replace(LEXICAL, depth=7), "3")
    with pytest.raises(UsageError, match="say what it may use"):
        requests.start(site, unlimited.id)


@pytest.mark.parametrize("backend", [pytest.param("sqlite"), pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_an_expansion_has_one_job_whoever_starts_it(
    backend: str, tmp_path: Path, few: Benchmark, server: LlmServer, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("postgres_url") if backend == "postgresql" else ""
    site = site_with(tmp_path / "home", few, server.url, database_url=url)
    record = define(site, max_calls=10_000)
    assert requests.look(site, record.id).state is None
    started = threading.Barrier(4)
    jobs: list[str] = []

    def start() -> None:
        started.wait()
        jobs.append(requests.start(site, record.id[:10]))

    visitors = [threading.Thread(target=start) for _ in range(4)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()
    assert len(jobs) == 4 and len(set(jobs)) == 1
    known = durable.job_client(site).list_workflows(name="annotate")
    assert [status.workflow_id for status in known] == jobs[:1]
    with pytest.raises(Conflict, match="a job works on"):
        run_here(site, record.id)
    assert requests.cancel(site, record.id).state is JobState.CANCELLED
    assert requests.look(site, record.id).can_start

    # What the command line is at is left alone, and refuses company.
    with working.alone(site, record.id), pytest.raises(Conflict, match="something else"):
        run_here(site, record.id)
    made = run_here(site, record.id)
    assert run_here(site, record.id) == made, "again is nothing"
    with pytest.raises(Conflict, match="nothing left to do"):
        requests.start(site, record.id)
    assert max(server.counts().values()) == 1
    close(site)


def test_what_was_begun_with_other_prompts_is_not_mixed(site: Site, server: LlmServer) -> None:
    record = define(site)
    with site.database.session() as session:
        session.get_one(Annotation, record.id).settings_hash = "0" * 64
    with pytest.raises(Conflict, match="other prompts"):
        run_here(site, record.id)
    assert server.count == 0


def test_a_budget_is_never_exceeded_and_raising_it_goes_on(site: Site, few: Benchmark, server: LlmServer) -> None:
    expected = sum(stage.line.expected_cost or 0.0 for stage in estimate_run(few, LEXICAL, prices=prices(site)))
    record = define(site, max_cost=expected / 2)
    with pytest.raises(BudgetExceeded, match="raise the budget"):
        run_here(site, record.id)
    stopped = requests.look(site, record.id)
    assert stopped.state is None and stopped.chunks_done < stopped.chunks
    assert stopped.spent.cost <= expected / 2 == stopped.budget.max_cost
    assert expected / 2 - stopped.spent.cost < longest_call(site, server)
    calls = server.count
    assert stopped.spent.calls == calls

    # The same in a job: it fails in words, and the raised budget lets it go on.
    job_id = requests.start(site, record.id)
    work_here(site, job_id)
    failed = requests.look(site, record.id)
    assert failed.state is JobState.FAILED and "raise the budget" in failed.error and failed.can_start
    assert server.count == calls
    requests.set_budget(site, record.id, max_cost=100 * expected)
    assert requests.start(site, record.id) == job_id
    work_here(site, job_id)
    assert requests.look(site, record.id).state is JobState.DONE
    assert max(server.counts().values()) == 1

    # A limit in calls counts what was spent before.
    calm = define(site, replace(LEXICAL, depth=7), "3", max_calls=4)
    with pytest.raises(BudgetExceeded, match="4 calls"):
        run_here(site, calm.id)
    assert requests.look(site, calm.id).spent.calls == 4
    with pytest.raises(UsageError):
        requests.set_budget(site, calm.id, max_calls=-3)


def prices(site: Site) -> Any:
    return llm_answers.asking_config(site.settings).prices


def longest_call(site: Site, server: LlmServer) -> float:
    """The most that the longest question so far could have cost."""
    most = max(len(request.conversation) for request in server.requests)
    return most * 1000 / 1e6 + LEXICAL.decompose_tokens * 2000 / 1e6


def test_a_cancelled_job_stops_within_a_part_and_goes_on_when_started(
    site: Site, server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "PART", 8)
    record = define(site, max_calls=10_000)
    job_id = requests.start(site, record.id)
    reached = threading.Event()
    stopped_at: list[int] = []
    judge = server.answer

    def noticing(body: dict[str, Any]) -> Any:
        if server.count > 30:
            reached.set()
        return judge(body)

    server.answer = noticing

    def cancel() -> None:
        assert reached.wait(60)
        assert requests.cancel(site, record.id).state is JobState.CANCELLED
        stopped_at.append(server.count)

    visitor = threading.Thread(target=cancel)
    visitor.start()
    work_here(site, job_id)
    visitor.join()
    with working.alone(site, record.id, wait=lambda: None):
        pass  # the step that was being stopped has ended
    assert server.count <= stopped_at[0] + 8, "it still asks"
    assert requests.look(site, record.id).state is JobState.CANCELLED
    assert requests.start(site, record.id) == job_id
    work_here(site, job_id)
    done = requests.look(site, record.id)
    assert done.state is JobState.DONE, done
    assert max(server.counts().values()) == 1


def test_failed_questions_are_asked_again_on_request_and_no_others(
    site: Site, skills: Benchmark, server: LlmServer
) -> None:
    judge = server.answer

    def sometimes(body: dict[str, Any]) -> Any:
        told = hashlib.sha256(str(body["messages"][1]["content"]).encode()).hexdigest()
        return "I cannot say." if body["model"] == "verifier" and int(told[:2], 16) < 40 else judge(body)

    server.answer = sometimes
    record = define(site)
    # One chunk is done, with failures; the rest is not begun.
    work = working.open_work(site, record.id)
    first = work.chunks[0]
    kept = working.work_chunk(work, first, working.chunk_asker(work))
    assert kept is not None and kept.failures["verify"] > 0 and kept.failures["decompose"] == 0
    assert [chunk.number for chunk in working.remaining(work)] == [1, 2]
    assert [chunk.number for chunk in working.remaining(work, retry_failed=True)] == [0, 1, 2]
    counted = server.counts()
    failed = {conversation for conversation, count in counted.items() if count > 1}
    assert len(failed) == kept.failures["verify"]

    server.answer = judge
    made = run_here(site, record.id, retry_failed=True)
    again = {conversation for conversation, count in server.counts().items() if count > counted[conversation] > 0}
    assert again == failed
    assert requests.look(site, record.id).failures == {"decompose": 0, "verify": 0, "audit": 0}
    assert labels_of(load_benchmark(site, made.id)) == written_labels(
        skills, work.library.parent.queries["query_id"].to_list()
    )
    with pytest.raises(Conflict, match="another version name"):
        run_here(site, record.id, retry_failed=True)
    with pytest.raises(Conflict, match="another version name"):
        requests.start(site, record.id, retry_failed=True)


def test_a_version_that_was_stored_before_a_kill_is_finished_before_anything_else(
    skills: Benchmark, server: LlmServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = server.answer
    server.answer = lambda body: "I cannot say." if body["model"] == "auditor" else judge(body)
    site = site_with(tmp_path / "one", bare(skills, seen_queries(skills, 1)), server.url)
    record = define(site)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stored, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            run_here(site, record.id)
    with site.database.reading() as session:
        made = benchmarks.get(session, "bare@2")
    server.answer, asked = judge, server.count

    def run() -> None:
        with pytest.raises(Conflict, match="another version name"):
            run_here(site, record.id, retry_failed=True)

    def export() -> None:
        with pytest.raises(Conflict, match="another version name"):
            batch.export_round(site, record.id, tmp_path / "b.jsonl", retry_failed=True)

    def take() -> None:
        (tmp_path / "a.jsonl").write_text("")
        assert batch.import_round(site, record.id, tmp_path / "a.jsonl").made == made

    def job() -> None:
        from pipeline.jobs import worker_site
        from pipeline.jobs.annotations import workflow

        worker_site.use_site(site)
        monkeypatch.setattr(workflow.progress, "say", lambda line: None)
        assert workflow._plan.__wrapped__(record.id)["chunks"] == []

    for way in (run, export, take, job):
        with site.database.session() as session:
            row = session.get_one(Annotation, record.id)
            row.made_version_id, row.state, row.retry_failed = None, "open", True
        way()
        done = requests.look(site, record.id)
        assert done.record.made_version_id == made.id and done.failures["audit"] > 0 and server.count == asked
    close(site)


def test_a_job_waits_for_a_batchs_answers(site: Site, skills: Benchmark, server: LlmServer, tmp_path: Path) -> None:
    judge = LabelJudge(skills)
    record = define(site)
    with pytest.raises(Conflict, match="not started"):
        requests.import_answers(site, record.id, tmp_path / "none.jsonl")
    job_id = requests.start(site, record.id, batch=True)
    for number in range(4):
        work_here(site, job_id)
        waiting = requests.look(site, record.id)
        if waiting.state is JobState.DONE:
            break
        assert waiting.state is JobState.ANSWERS and waiting.pending > 0, job_client.log(site, job_id)
        source, answers = tmp_path / f"{number}.jsonl", tmp_path / f"{number}.answers.jsonl"
        source.write_bytes(b"".join(site.artifacts.local_path(digest).read_bytes() for digest in waiting.batch))
        assert answer_batch(source, answers, judge) == waiting.pending
        requests.import_answers(site, record.id, answers)
    assert number == 3 and waiting.record.made_version_id is not None
    assert server.count == 0
    lines = [line.text for line in job_client.log(site, job_id)]
    assert sum("new answers" in line for line in lines) >= 3
    found = labels_of(load_benchmark(site, waiting.record.made_version_id))
    assert found == written_labels(skills, [query for query, *_ in found["subqueries"]])
    assert waiting.meter and all(line.usage.cost for line in waiting.meter), "half the price, but a price"


def test_missing_and_failed_answers_of_a_batch_are_told_and_written_again(
    site: Site, skills: Benchmark, tmp_path: Path
) -> None:
    judge = LabelJudge(skills)
    record = define(site)
    source, answers, part = tmp_path / "b.jsonl", tmp_path / "a.jsonl", tmp_path / "part.jsonl"
    sent = batch.export_round(site, record.id, source)
    answer_batch(source, answers, judge)
    lines = answers.read_text().splitlines(keepends=True)
    part.write_text(lines[0] + "no JSON\n" + "".join(lines[2:]) + lines[0])
    took = batch.import_round(site, record.id, part)
    assert took.report.missing == 1 and took.report.accepted == sent.pending - 1
    assert took.report.counts == {"malformed": 1, "duplicate": 1}
    assert requests.look(site, record.id).pending == 1
    rest = batch.export_round(site, record.id, tmp_path / "c.jsonl")
    assert rest.pending == took.next and rest.pending > 1, "the missing one, and verdicts of the other queries"
    found = batch.import_round(site, record.id, answers)
    assert found.report.missing == rest.pending - 1 and found.report.accepted == 1
    assert found.report.known == sent.pending - 1
    # An error of the provider is a failure, which is written again on request.
    batch.export_round(site, record.id, source)
    answer_batch(source, answers, judge)
    lines = answers.read_text().splitlines(keepends=True)
    key = json.loads(lines[0])["custom_id"]
    refused = {"custom_id": key, "response": {"status_code": 500, "body": {}}, "error": None}
    answers.write_text(json.dumps(refused) + "\n" + "".join(lines[1:]))
    assert batch.import_round(site, record.id, answers).report.counts == {"error": 1}
    open_now = batch.export_round(site, record.id, tmp_path / "audits.jsonl")
    assert key not in questions_in(open_now)
    again = batch.export_round(site, record.id, tmp_path / "again.jsonl", retry_failed=True)
    assert questions_in(again) > {key} and len(again.parts) == 2, "verdicts and audits, a file for each model"
    # Asked live instead, the waiting ends.
    with site.database.session() as session:
        live = stored.set_way(session, record.id, batched=False, retry_failed=False)
    assert live.pending == 0 and requests.look(site, record.id).state is None


def questions_in(sent: batch.Exported) -> set[str]:
    return {json.loads(line)["custom_id"] for part in sent.parts for line in part.read_text().splitlines()}


def test_spent_is_what_every_way_of_asking_used(site: Site, server: LlmServer) -> None:
    record = define(site)
    made = run_here(site, record.id)
    spent = StoredAnswers(site.database).spent(record.id)
    # The same settings under another name: everything comes from the cache and costs nothing.
    other = define(site, version="3")
    again = run_here(site, other.id)
    assert again.content_hash == made.content_hash and StoredAnswers(site.database).spent(other.id).calls == 0
    assert spent.calls == server.count and spent.unpriced == 0
    with site.database.reading() as session:
        done = stored.get(session, other.id)
        assert stored.that_made(session, again.id) == done
    states = site.artifacts.get_frame(done.artifacts["states"])
    assert states["query_id"].to_list() == load_benchmark(site, again.id).queries["query_id"].to_list()
    assert site.artifacts.get_frame(done.artifacts["provenance"]).filter(pl.col("cached")).height == spent.calls
