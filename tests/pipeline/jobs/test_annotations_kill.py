"""``kill -9`` of an expansion: what was answered is not asked again, and every request is counted."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from pipeline.benchmark import Benchmark
from pipeline.jobs.annotations import following, requests
from pipeline.jobs.benchmark_library import load_benchmark
from pipeline.jobs.job_client import JobState
from pipeline.jobs.llm_answers import StoredAnswers
from pipeline.jobs.site import Site, open_site
from pipeline.llm.records import Question
from pipeline.toolex.candidates import library_pool
from pipeline.toolex.expand import expand
from pipeline.toolex.new_version import expanded_benchmark
from store.access import doctor
from store.settings import Settings
from tests.llm_server import LlmServer
from tests.pipeline.jobs.annotation_work import LEXICAL, bare, close, define, demo, seen_queries, site_with
from tests.pipeline.jobs.worker_process import FORKS
from tests.pipeline.toolex.demo_judge import LabelJudge, RecordedJudge

CHUNK = 2
CONCURRENCY = 4


def live(settings: Settings, annotation_id: str) -> None:
    """One life of the command line."""
    from pipeline.jobs.annotations import here, working

    working.CHUNK = CHUNK
    here.run_here(open_site(settings), annotation_id)
    os._exit(0)


def work(settings: Settings, ready: Connection) -> None:
    """What a worker process does: short chunks, so that a small expansion has several."""
    from pipeline.jobs import worker
    from pipeline.jobs.annotations import working

    working.CHUNK = CHUNK
    worker.run_worker(open_site(settings), ("llm",), say=ready.send)


@contextmanager
def worker_process(site: Site) -> Generator[BaseProcess]:
    """A worker that serves, until it is killed."""
    lines, theirs = FORKS.Pipe()
    process: BaseProcess = FORKS.Process(target=work, args=(site.settings, theirs))
    process.start()
    theirs.close()
    try:
        assert lines.poll(90), "the worker does not start"
        yield process
    finally:
        process.kill()
        process.join()


@pytest.fixture(scope="module")
def skills() -> Benchmark:
    return demo("skills")


def whole_judge(parent: Benchmark, skills: Benchmark) -> tuple[RecordedJudge, str]:
    """Every question of the expansion, and the hash of what it makes."""
    judge = RecordedJudge(LabelJudge(skills))
    expansion = expand(parent, LEXICAL, judge, library_pool(parent, LEXICAL.pool, LEXICAL.depth))
    return judge, expanded_benchmark(parent, expansion, "2").content_hash


def conversation(question: Question) -> str:
    """The question as the server's log has it."""
    messages = [{"role": message.role, "content": message.content} for message in question.messages]
    return json.dumps(messages, ensure_ascii=False)


def until(condition: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.slow
def test_twenty_kills_repeat_only_what_was_in_flight(tmp_path: Path, skills: Benchmark) -> None:
    parent = bare(skills, seen_queries(skills, 6))
    judge, expected = whole_judge(parent, skills)
    key_of = {
        json.dumps(
            [{"role": m.role, "content": m.content} for m in question.messages], ensure_ascii=False
        ): question.key
        for question in judge.questions
    }
    chance = random.Random(6)
    with LlmServer(LabelJudge(skills), delay=0.01) as server:
        site = site_with(tmp_path / "home", parent, server.url, llm_concurrency=CONCURRENCY)
        record = define(site)
        store = StoredAnswers(site.database)
        committed_at: dict[str, int] = {}
        kills = 0
        # Seventeen while it asks, three while it reads what is known, stores a chunk or the new version.
        goals = [*sorted(chance.sample(range(1, len(key_of)), 17)), *[len(key_of)] * 3]
        for number, goal in enumerate(goals):
            life = FORKS.Process(target=live, args=(site.settings, record.id))
            life.start()
            until(lambda goal=goal, life=life: len(server.counts()) >= goal or not life.is_alive())  # type: ignore[misc]
            if number >= 17:
                life.join(chance.uniform(0.0, 0.4))
            kills += life.is_alive()
            life.kill()
            life.join()
            until(lambda: server.open == 0)
            for key in store.outcomes(list(key_of.values())):
                committed_at.setdefault(key, server.count)
        last = FORKS.Process(target=live, args=(site.settings, record.id))
        last.start()
        last.join()
        assert last.exitcode == 0
        assert kills >= 17
        repeated_at_most = kills * CONCURRENCY
        for request in server.requests:
            key = key_of[request.conversation]
            assert request.number < committed_at.get(key, len(server.requests)), "asked again after it was committed"
        assert set(server.counts()) == set(key_of)
        repeated = server.count - len(key_of)
        assert 0 <= repeated <= repeated_at_most
        meter = store.meter(record.id)
        calls, unfinished = sum(line.usage.calls for line in meter), sum(line.unfinished for line in meter)
        # A request may be recorded and killed before it left: the meter never counts too few.
        assert server.count <= calls <= len(key_of) + repeated_at_most
        assert calls - unfinished == len(key_of)
        done = requests.look(site, record.id)
        assert done.state is JobState.DONE and done.record.made_version_id is not None
        assert load_benchmark(site, done.record.made_version_id).content_hash == expected
        with site.database.reading() as session:
            assert doctor.check_integrity(session, site.artifacts).ok
        close(site)


def ended(site: Site, annotation_id: str) -> bool:
    state = requests.look(site, annotation_id).state
    return state is not None and state.ended


@pytest.mark.slow
def test_a_killed_worker_loses_no_part_of_a_job(
    tmp_path: Path, skills: Benchmark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "CHUNK", CHUNK)
    parent = bare(skills, seen_queries(skills, 4))
    with LlmServer(LabelJudge(skills), delay=0.02) as server:
        site = site_with(tmp_path / "home", parent, server.url, llm_concurrency=CONCURRENCY)
        record = define(site, max_calls=10_000)
        requests.start(site, record.id)
        with worker_process(site):
            until(lambda: requests.look(site, record.id).chunks_done == 1)
            asked = server.counts()
        assert requests.look(site, record.id).state is JobState.RUNNING
        with worker_process(site):
            until(lambda: ended(site, record.id))
        done = requests.look(site, record.id)
        assert done.state is JobState.DONE and (done.chunks_done, done.chunks) == (2, 2), done
        twice = {text for text, count in server.counts().items() if count > 1}
        assert len(twice) <= CONCURRENCY, "at most what was in flight"
        # The one that was killed may have been a few questions into its second chunk.
        assert len(asked) < len(server.counts())
        close(site)
