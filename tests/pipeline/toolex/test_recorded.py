"""Real documents: verdicts that people gave by reading take the judge's place."""

from __future__ import annotations

import gzip
import json
import re

import numpy as np
import polars as pl
import pytest

from pipeline.benchmark import BenchmarkInfo, Kind
from pipeline.formats.benchmark_validation import build_benchmark
from pipeline.retrieval.models import resolve_model
from pipeline.retrieval.retrieve import retrieve
from pipeline.scoring.compiler import compile_benchmark
from pipeline.scoring.scores import score_run
from pipeline.toolex.candidates import library_pool
from pipeline.toolex.expand import expand
from pipeline.toolex.new_version import expanded_benchmark
from pipeline.toolex.pool_bias import leave_one_out, pool_bias
from pipeline.toolex.provenance import candidate_ranks_frame
from pipeline.toolex.settings import PoolMember, ToolexSettings
from tests.pipeline.toolex.demo_judge import RecordedJudge, fenced, user_text

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def triples(shared):
    with (shared / "data" / "equivalents.jsonl").open(encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def real_benchmark(shared, triples):
    """The queries that the triples are about, over all tools."""
    folder = shared / "data"
    with gzip.open(folder / "tools.jsonl.gz", "rt", encoding="utf-8") as stream:
        tools = [(row["id"], row["documentation"], row["id"], row["source"]) for row in map(json.loads, stream)]
    wanted = {triple["query_id"] for triple in triples}
    with gzip.open(folder / "queries.jsonl.gz", "rt", encoding="utf-8") as stream:
        queries = [row for row in map(json.loads, stream) if row["id"] in wanted]
    asked = [(row["id"], row["query"], row["instruction"], row["source"], row["source"]) for row in queries]
    frames = {
        "tools": pl.DataFrame(tools, schema=["tool_id", "documentation", "name", "source"], orient="row").with_columns(
            domain=pl.col("source")
        ),
        "queries": pl.DataFrame(
            asked, schema=["query_id", "text", "instruction", "domain", "source"], orient="row"
        ).with_columns(pl.col("instruction").cast(pl.String)),
        "ground_truth": pl.DataFrame(
            [(row["id"], row["gt_ids"]) for row in queries], schema=["query_id", "tool_ids"], orient="row"
        ),
    }
    return build_benchmark(BenchmarkInfo("real", "Real documents", Kind.TOOL, "1", "", ""), frames)


class Recorded:
    """Sub-query = the query's text; a candidate is accepted where a person called it equivalent."""

    def __init__(self, benchmark, triples):
        self.documents = dict(benchmark.tools.select("tool_id", "documentation").iter_rows())
        self.equivalent = {
            (row["query"], self.documents[row["gt_id"]], self.documents[row["candidate_id"]])
            for row in triples
            if row["verdict"] == "equiv"
        }

    def __call__(self, body):
        shown = list(fenced(user_text(body)))
        labels = dict(shown)
        if "subquery" in labels:
            yes = (labels["subquery"], labels["reference"], labels["candidate"]) in self.equivalent
            return {"same_operation": yes, "inputs_available": yes, "reason": "Judged by reading."}
        if "checklist" in labels:
            return {"coverage": True, "dependency_consistent": True, "reason": "Not judged here."}
        numbers = [int(label.split()[1]) for label, _ in shown if re.fullmatch(r"tool \d+", label)]
        return {"subqueries": [{"tool": number, "text": labels["query"]} for number in numbers]}


def check_on_real_documents(benchmark, triples, models, cache=None):
    """What must hold; MiniLM takes long to encode all the documents, so nothing but BM25 is in the suite."""
    members = tuple(PoolMember(model) for model in models)
    settings = ToolexSettings(pool=members)
    judge = RecordedJudge(Recorded(benchmark, triples))
    expansion = expand(benchmark, settings, judge, library_pool(benchmark, members, settings.depth, cache=cache))
    made = expanded_benchmark(benchmark, expansion, "2")

    # Every accepted candidate that the pool retrieved is in a combination; the others are known as not retrieved.
    ranks = candidate_ranks_frame(expansion)
    retrieved = set(ranks.filter(pl.col("rank").is_not_null()).select("query_id", "tool_id").iter_rows())
    accepted = {(row["query_id"], row["candidate_id"]) for row in triples if row["verdict"] == "equiv"}
    combined = {
        (query, tool)
        for query, tools in made.combinations.filter(verdict="valid").select("query_id", "tool_ids").iter_rows()
        for tool in tools
    }
    assert accepted & retrieved <= combined
    not_retrieved = accepted - retrieved
    assert not_retrieved.isdisjoint(combined)
    assert len(accepted & retrieved) > len(not_retrieved)

    # No query's new score is below its old one, and the mean rises.
    compiled = compile_benchmark(made)
    runs = {}
    for model in models:
        runs[model] = retrieve(made, resolve_model(model), depth=20, cache=cache).run
        frame = score_run(compiled, runs[model], (10,)).per_query
        for metric in ("NDCG", "Recall", "Comp"):
            lift = (frame[f"new_{metric}@10"] - frame[f"old_{metric}@10"]).to_numpy()
            assert (lift >= 0).all() and np.mean(lift) > 0.01
    return made, ranks, runs


def test_recorded_verdicts_on_real_documents_with_bm25(shared, triples):
    benchmark = real_benchmark(shared, triples)
    assert benchmark.tools.height == 10_871 and benchmark.queries.height == 63
    made, ranks, runs = check_on_real_documents(benchmark, triples, ["bm25"])
    bias = pool_bias(made, ranks)
    assert bias.only_one == 1.0  # a pool of one
    without = leave_one_out(made, ranks, runs)
    compiled = compile_benchmark(made)
    old = score_run(compiled, runs["bm25"], (10,)).per_query
    by_domain = old.join(made.queries.select("query_id", "domain"), on="query_id").group_by("domain")
    macro = by_domain.agg(pl.col("old_NDCG@10").mean())["old_NDCG@10"].mean()
    # Without its only member the pool has found nothing, and the new score is the old one.
    assert without["without"].item() == pytest.approx(macro) and without["change"].item() < 0
