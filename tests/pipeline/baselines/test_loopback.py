"""EasyTool and PLUTo end to end: real requests to a loopback server, on the demo benchmark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.baselines.easytool import retrieve_easytool
from pipeline.baselines.pluto_retrieval import retrieve_pluto
from pipeline.baselines.result import BaselineResult
from pipeline.benchmark import Benchmark
from pipeline.demo import __file__ as demo
from pipeline.errors import BudgetExceeded
from pipeline.formats.benchmark_folder import read_benchmark_folder
from pipeline.llm.batch_export import BatchWriter
from pipeline.llm.batch_import import BatchAnswers
from pipeline.llm.client import LiveAsker
from pipeline.llm.config import AskingConfig, ProviderLimit
from pipeline.llm.memory import MemoryAnswers
from pipeline.llm.records import Asker
from pipeline.llm.stores import Budget
from pipeline.retrieval.models import resolve_model
from pipeline.retrieval.rankings import run_frame
from tests.llm_server import Fault, LlmServer
from tests.pipeline.baselines.judge import LLM, loopback

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

Baseline = Callable[[Benchmark, Any, Asker, str], BaselineResult]
BM25 = resolve_model("bm25")
BOTH = pytest.mark.parametrize("baseline", [retrieve_easytool, retrieve_pluto], ids=["easytool", "pluto"])


@pytest.fixture(scope="module")
def tools() -> Benchmark:
    return read_benchmark_folder(Path(demo).parent / "tools")


def config(server: LlmServer) -> AskingConfig:
    return AskingConfig(base_url=server.url, limit=ProviderLimit(8), backoff_seconds=0.02, longest_wait_seconds=0.1)


@BOTH
def test_on_the_demo_tools(tools: Benchmark, baseline: Baseline):
    answers = MemoryAnswers()
    with LlmServer(loopback) as server:
        found = baseline(tools, BM25, LiveAsker(answers, config(server)), LLM)
        asked = server.count
        again = baseline(tools, BM25, LiveAsker(answers, config(server)), LLM)
        assert server.count == asked
    run, target = found.retrieval.run, found.retrieval.target
    assert found.pending == 0 and found.failures == ()
    assert run.queries_answered == tools.queries.height
    assert again.retrieval.run.ranking_hash == run.ranking_hash
    assert found.usage.calls >= asked > tools.tools.height
    truth = dict(tools.ground_truth.iter_rows())
    ranked = run_frame(run, target).group_by("query_id", maintain_order=True).head(10)
    hits = sum(bool(set(truth[query]) & set(rows["tool_id"])) for (query,), rows in ranked.group_by("query_id"))
    assert hits / tools.queries.height > 0.5
    cost = found.retrieval.efficiency
    assert cost.llm_calls_per_tool >= 1
    if baseline is retrieve_pluto:
        assert 1 <= cost.llm_calls_per_query <= 6 and cost.llm_seconds_per_query > 0
        # What a run file holds is what was ranked: scores never rise within a list.
        for start, end in zip(run.offsets[:-1], run.offsets[1:], strict=True):
            assert (run.scores[start : end - 1] > run.scores[start + 1 : end]).all()


@BOTH
def test_some_answers_never_come(tools: Benchmark, baseline: Baseline):
    small = few(tools)

    def fault(number: int, body: dict[str, Any]) -> Fault | None:
        poor = "Orbit Rates" in json.dumps(body["messages"])
        return Fault.invalid_json() if poor else (None, None, Fault.error(503), Fault.prose())[number % 4]

    with LlmServer(loopback, faults=fault) as server:
        found = baseline(small, BM25, LiveAsker(MemoryAnswers(), config(server)), LLM)
    assert found.failures and found.retrieval.run.queries_answered == small.queries.height
    assert all(failed.reason and failed.instead for failed in found.failures)


@BOTH
def test_a_batch_ends_like_live_calls(tools: Benchmark, baseline: Baseline, tmp_path: Path):
    small, answers = few(tools), MemoryAnswers()
    for number in range(12):
        path = tmp_path / f"{number}.jsonl"
        with BatchWriter(answers, path) as writer:
            waiting = baseline(small, BM25, writer, LLM)
        if waiting.retrieval is not None:
            break
        assert waiting.pending == writer.pending > 0
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        (tmp_path / "answers.jsonl").write_text("".join(json.dumps(answered(line)) + "\n" for line in lines))
        imported = BatchAnswers(answers, tmp_path / "answers.jsonl", Budget("batch"))
        baseline(small, BM25, imported, LLM)
        imported.close()
    with LlmServer(loopback) as server:
        live = baseline(small, BM25, LiveAsker(MemoryAnswers(), config(server)), LLM)
    assert waiting.retrieval.run.ranking_hash == live.retrieval.run.ranking_hash
    assert waiting.retrieval.contract_hash == live.retrieval.contract_hash


@BOTH
def test_a_budget_stops_it_and_the_rest_goes_on_later(tools: Benchmark, baseline: Baseline):
    small, answers = few(tools), MemoryAnswers()
    with LlmServer(loopback) as server:
        with pytest.raises(BudgetExceeded):
            baseline(small, BM25, LiveAsker(answers, config(server), Budget("work", max_calls=30)), LLM)
        assert server.count <= 30
        found = baseline(small, BM25, LiveAsker(answers, config(server), Budget("work")), LLM)
        assert found.retrieval is not None
        assert max(server.counts().values()) <= 5  # the draws of one prompt


def few(tools: Benchmark) -> Benchmark:
    """Forty tools and the queries that are labelled with them alone."""
    from dataclasses import replace

    import polars as pl

    kept = tools.tools.head(40)
    truth = tools.ground_truth.filter(
        pl.col("tool_ids").list.eval(pl.element().is_in(kept["tool_id"].to_list())).list.all()
    )
    return replace(
        tools,
        tools=kept,
        ground_truth=truth,
        queries=tools.queries.filter(pl.col("query_id").is_in(truth["query_id"].to_list())),
        subqueries=tools.subqueries.clear(),
        equivalents=tools.equivalents.clear(),
        combinations=tools.combinations.clear(),
    )


def answered(line: dict[str, Any]) -> dict[str, Any]:
    content = json.dumps(loopback(line["body"]))
    message = {"role": "assistant", "content": content}
    body = {
        "model": line["body"]["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }
    return {"custom_id": line["custom_id"], "response": {"status_code": 200, "body": body}, "error": None}
