"""The demo benchmarks, stripped of their labels, come out with the labels they were written with."""

from __future__ import annotations

import hashlib
from pathlib import Path

import polars as pl
import pytest

from pipeline.benchmark import TABLES
from pipeline.errors import BenchmarkError
from pipeline.formats.benchmark_folder import read_benchmark_folder, write_benchmark_folder
from pipeline.jobs.first_start import demo_folder
from pipeline.llm.batch_export import BatchWriter
from pipeline.llm.batch_import import BatchAnswers
from pipeline.llm.client import LiveAsker
from pipeline.llm.config import AskingConfig, ProviderLimit
from pipeline.llm.memory import MemoryAnswers
from pipeline.llm.stores import Budget
from pipeline.toolex.candidates import library_pool
from pipeline.toolex.expand import expand
from pipeline.toolex.frames import frames_of, together
from pipeline.toolex.new_version import expanded_benchmark, new_version
from pipeline.toolex.provenance import PROVENANCE, candidate_ranks_frame, provenance_frame, query_states_frame
from pipeline.toolex.records import State
from pipeline.toolex.settings import PoolMember, Stage, ToolexSettings, prompt_references
from tests.llm_server import Fault, LlmServer, answer_batch
from tests.pipeline.toolex.demo_judge import LabelJudge, RecordedJudge, labels_of, stripped
from tests.pipeline.toolex.search import settings_for, two_member_pool

#: All judges go to the loopback server, which takes the place of OpenAI.
JUDGES = {
    "decompose_judge": "openai/planner",
    "verify_judge": "openai/verifier",
    "audit_judge": "openai/auditor",
}


@pytest.fixture(scope="module")
def skills():
    return read_benchmark_folder(demo_folder("skills"))


@pytest.fixture(scope="module")
def tools():
    return read_benchmark_folder(demo_folder("tools"))


def some_queries(benchmark, count):
    """Queries with the most sub-queries first: they have the most to combine."""
    sizes = benchmark.ground_truth.sort(pl.col("tool_ids").list.len(), descending=True, maintain_order=True)
    return sizes["query_id"].head(count).to_list()


def restricted(benchmark, query_ids):
    """What ``labels_of`` says of these queries."""
    return {name: {row for row in rows if row[0] in query_ids} for name, rows in labels_of(benchmark).items()}


def folder_bytes(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(path.iterdir())}


def first_time_faults():
    """Most requests go wrong when they come for the first time, in every way there is; none does twice."""
    seen: set[str] = set()
    kinds = [
        None,
        Fault.rate_limit(0.01),
        Fault.error(500),
        Fault.drop(),
        Fault.invalid_json(),
        Fault.truncated(),
        Fault.wrong_shape(),
        Fault.garbage(),
        Fault.prose(),
        None,
    ]

    def fault(number, body):
        told = hashlib.sha256(str(body["messages"][1]["content"]).encode()).hexdigest()
        if told in seen:
            return None
        seen.add(told)
        # One in two hundred stalls for 30 s; each costs the read timeout.
        return Fault.stall(30) if int(told[:4], 16) % 200 == 0 else kinds[int(told[4:8], 16) % len(kinds)]

    return fault


def test_skills_come_out_with_their_labels(skills):
    bare = stripped(skills)
    judge = RecordedJudge(LabelJudge(skills))
    expansion = expand(bare, settings_for(30), judge, two_member_pool(bare, 30))
    assert expansion.complete and expansion.counts()[Stage.AUDIT][State.DONE] == 59
    made = expanded_benchmark(bare, expansion, "2")
    assert labels_of(made) == labels_of(skills)
    # No pair is asked twice, and ground-truth tools never are.
    verifications = [q.key for q in judge.questions if q.purpose == Stage.VERIFY]
    assert len(verifications) == len(set(verifications))
    assert len(verifications) == made.equivalents.filter(pl.col("origin") == "judged").height
    assert made.info.parents == ("demo-skills@1",) and made.info.version == "2"
    for judge_name in ("deepseek/deepseek-v3.2", "openai/gpt-4o-mini", "anthropic/claude-sonnet-5"):
        assert judge_name in made.info.source
    assert made.info.revision.startswith("toolex ")


def test_tools_come_out_with_the_labels_that_the_pool_can_see(tools):
    ids = some_queries(tools, 30)
    bare = stripped(tools, ids)
    pool = two_member_pool(bare, 20)
    expansion = expand(bare, settings_for(20), RecordedJudge(LabelJudge(tools)), pool)
    made = expanded_benchmark(bare, expansion, "2")
    written, found = restricted(tools, ids), labels_of(made)
    assert found["subqueries"] == written["subqueries"]
    seen = {
        (query, position, tool)
        for query, position, tool in candidate_ranks_frame(expansion)
        .select("query_id", "position", "tool_id")
        .iter_rows()
    }
    assert found["equivalents"] == written["equivalents"] & seen
    assert len(found["equivalents"]) > 0.9 * len(written["equivalents"])
    lost = {(query, tool) for query, _, tool in written["equivalents"] - seen}
    assert found["combinations"] == {
        (query, tools) for query, tools in written["combinations"] if not any((query, tool) in lost for tool in tools)
    }


@pytest.mark.slow
def test_tools_come_out_with_all_their_labels_from_the_bundled_retrievers(tools):
    bare = stripped(tools)
    members = (PoolMember("bm25"), PoolMember("minilm"))
    expansion = expand(
        bare,
        ToolexSettings(pool=members),
        RecordedJudge(LabelJudge(tools)),
        library_pool(bare, members, 20),
    )
    assert labels_of(expanded_benchmark(bare, expansion, "2")) == labels_of(tools)


def live(bare, settings, pool, judge, store, faults=(), **config):
    with LlmServer(judge, faults=faults) as server:
        asker = LiveAsker(
            store,
            AskingConfig(
                base_url=server.url,
                limit=ProviderLimit(concurrency=32),
                backoff_seconds=0.01,
                longest_wait_seconds=0.05,
                read_seconds=1.0,
                **config,
            ),
            Budget("toolex"),
        )
        expansion = expand(bare, settings, asker, pool)
        return expansion, server


def three_rounds(bare, settings, pool, judge, folder):
    """Export, answer and import, one round a stage; (expansion, requests of each round)."""
    batch = MemoryAnswers()
    written = []
    for round_number, stage in enumerate(Stage):
        source, target = folder / f"{round_number}.jsonl", folder / f"{round_number}.answers.jsonl"
        with BatchWriter(batch, source) as writer:
            waiting = expand(bare, settings, writer, pool)
        assert not waiting.complete and waiting.counts()[stage][State.PENDING] > 0
        with pytest.raises(BenchmarkError, match="not finished"):
            expanded_benchmark(bare, waiting, "2")
        written.append(answer_batch(source, target, judge))
        reader = BatchAnswers(batch, target, Budget("toolex"))
        expansion = expand(bare, settings, reader, pool)
        reader.close()
        assert reader.report().problems == ()
    assert expansion.complete
    with BatchWriter(batch, folder / "rest.jsonl") as writer:
        expand(bare, settings, writer, pool)
    assert writer.pending == 0
    return expansion, written


def test_live_calls_with_faults_and_three_batch_rounds_give_the_same_bytes(skills, tmp_path):
    ids = some_queries(skills, 6)
    bare = stripped(skills, ids)
    pool, settings = two_member_pool(bare, 12), settings_for(12, **JUDGES)
    judge = LabelJudge(skills)

    store = MemoryAnswers()
    expansion, server = live(bare, settings, pool, judge, store, first_time_faults())
    assert expansion.complete
    assert {State.FAILED, State.PENDING}.isdisjoint(
        state for query in expansion.queries for state in query.states.values()
    )
    write_benchmark_folder(expanded_benchmark(bare, expansion, "2"), tmp_path / "live")
    assert server.count > len(provenance_frame(expansion)) * 1.3  # the faults were there

    # Again from the cache: nobody is asked, and the provenance still tells what it took.
    again, quiet = live(bare, settings, pool, judge, store)
    assert quiet.count == 0
    told = ["stage", "query_id", "key", "judge", "prompt", "rationale", "attempts", "prompt_tokens", "cost", "seconds"]
    assert provenance_frame(again).select(told).equals(provenance_frame(expansion).select(told))
    assert provenance_frame(again)["cached"].all() and not provenance_frame(expansion)["cached"].any()

    expansion_now, written = three_rounds(bare, settings, pool, judge, tmp_path)
    by_stage = provenance_frame(expansion).group_by("stage").len().sort("len")
    assert sorted(written) == by_stage["len"].to_list()
    write_benchmark_folder(expanded_benchmark(bare, expansion_now, "2"), tmp_path / "batch")

    assert folder_bytes(tmp_path / "batch") == folder_bytes(tmp_path / "live")
    made = read_benchmark_folder(tmp_path / "live")
    assert labels_of(made)["combinations"] <= labels_of(skills)["combinations"]
    # Nothing is written but what a benchmark has columns for: no time, cost or attempt.
    for file in (tmp_path / "live").glob("*.jsonl"):
        assert set(pl.read_ndjson(file).columns) <= set(TABLES[file.stem])


@pytest.mark.parametrize("kind", ["skills", "tools"])
def test_a_whole_benchmark_in_three_batch_rounds(kind, skills, tools, tmp_path):
    whole, depth = {"skills": (skills, 30), "tools": (tools, 20)}[kind]
    bare = stripped(whole)
    pool, settings, judge = two_member_pool(bare, depth), settings_for(depth), LabelJudge(whole)
    expansion, _ = three_rounds(bare, settings, pool, judge, tmp_path)
    recorded = expand(bare, settings, RecordedJudge(judge), pool)
    write_benchmark_folder(expanded_benchmark(bare, expansion, "2"), tmp_path / "batch", "parquet")
    write_benchmark_folder(expanded_benchmark(bare, recorded, "2"), tmp_path / "recorded", "parquet")
    assert folder_bytes(tmp_path / "batch") == folder_bytes(tmp_path / "recorded")
    if kind == "skills":
        assert labels_of(read_benchmark_folder(tmp_path / "batch")) == labels_of(skills)


def test_chunks_give_what_the_whole_gives(skills):
    ids = some_queries(skills, 8)
    bare = stripped(skills, ids)
    pool, settings = two_member_pool(bare, 20), settings_for(20)
    whole = expand(bare, settings, RecordedJudge(LabelJudge(skills)), pool)
    parts = [
        frames_of(expand(bare, settings, RecordedJudge(LabelJudge(skills)), pool, query_ids=ids[start : start + 3]))
        for start in (6, 0, 3)
    ]
    merged, frames = together(parts, bare), frames_of(whole)
    for name, frame in merged.tables.items():
        assert frame.equals(frames.tables[name]), name
    assert new_version(bare, settings, merged, "2").content_hash == expanded_benchmark(bare, whole, "2").content_hash
    with pytest.raises(BenchmarkError, match="lacks 6 queries"):
        new_version(bare, settings, parts[0], "2")
    with pytest.raises(ValueError, match="same query"):
        together([*parts, parts[0]], bare)
    with pytest.raises(BenchmarkError, match="exists"):
        new_version(bare, settings, merged, bare.info.version)


def test_every_verdict_keeps_its_provenance(skills):
    ids = some_queries(skills, 3)
    bare = stripped(skills, ids)
    settings = settings_for(10)
    judge = RecordedJudge(LabelJudge(skills))
    expansion = expand(bare, settings, judge, two_member_pool(bare, 10))
    frame = provenance_frame(expansion)
    assert frame.schema == pl.Schema(PROVENANCE) and frame.height == len(judge.questions)
    assert set(frame["key"]) == {question.key for question in judge.questions}
    for stage in Stage:
        rows = frame.filter(pl.col("stage") == stage.value)
        assert set(rows["judge"]) == {settings.judge(stage)}
        assert set(rows["prompt"]) == {prompt_references()[stage.value]}
    assert (frame.filter(pl.col("stage") != "decompose")["rationale"] != "").all()
    states = query_states_frame(expansion)
    assert states["query_id"].to_list() == bare.queries["query_id"].to_list()
    assert (states["audited"] == states["product"] - 1).all() or (states["audited"] < states["product"]).all()
