from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.baselines.ablation_variants import variant
from pipeline.baselines.field_analysis import recall_frame, single_field_frame, single_field_runs
from pipeline.baselines.masking import mask, masked_runs, masking_frame, mean_score, top_level_fields
from pipeline.baselines.weighted import field_inputs, field_scorer
from pipeline.benchmark import Kind
from pipeline.errors import UsageError
from pipeline.mftr.schema import Argument, Field, Parameter, RewrittenQuery, StandardizedTool, ToolNeed
from pipeline.mftr.settings import PAPER, V2
from pipeline.retrieval.models import resolve_model
from pipeline.retrieval.retrieve import retrieve
from pipeline.scoring.compiler import compile_benchmark
from tests.pipeline.retrieval.small import benchmark

BM25 = resolve_model("bm25")
TOOLS = {
    "a": json.dumps({"name": "storm", "description": "weather", "noise": "letter letter"}),
    "b": json.dumps({"name": "post", "description": "send a letter"}),
    "c": "weather and post as prose",
}
QUERIES = {"q1": ("letter", ["b"]), "q2": ("storm", ["a"])}


def test_masking_takes_one_field_out_and_leaves_the_rest_as_written():
    document = '{"a": "\\u00fc", "b": {"c": [1, 2]}}'
    assert mask(document, "b") == '{"a": "\\u00fc"}'
    assert mask(document, "c") == document
    assert mask('{"a":"ü","b":1}', "b") == '{"a":"ü"}'
    assert mask('{\n  "a": 1,\n  "b": 2\n}', "a") == '{\n  "b": 2\n}'
    assert mask("prose", "a") == "prose"
    assert mask('{"a": 1}', "a") == "{}"
    assert top_level_fields([document, '{"a": 1}', "prose", "[]"]) == {"a": 2, "b": 1}


def test_removing_noise_helps_and_removing_a_needed_name_hurts():
    small = benchmark(TOOLS, QUERIES)
    full, masked = masked_runs(small, BM25)
    compiled = compile_benchmark(small)
    frame = masking_frame(compiled, full, masked)
    change = dict(zip(frame["field"], frame["change_percent"], strict=True))
    # Without the noise, only b has "letter"; without names, "storm" finds nothing.
    assert change["noise"] > 0 > change["name"]
    assert frame["field"].to_list() == sorted(change, key=change.__getitem__)
    assert dict(zip(frame["field"], frame["tools"], strict=True)) == {"name": 2, "description": 2, "noise": 1}
    assert set(frame["full"]) == {mean_score(compiled, retrieve(small, BM25).run, "NDCG", 10)}
    assert change["name"] == pytest.approx(100 * (frame.filter(field="name")["masked"][0] / frame["full"][0] - 1))


def test_masking_needs_json_documents():
    with pytest.raises(UsageError, match="No document"):
        masked_runs(benchmark({"a": "prose"}, {"q": ("prose", ["a"])}), BM25)
    with pytest.raises(UsageError, match="No document"):
        masked_runs(benchmark(TOOLS, QUERIES), BM25, fields=["absent"])
    skills = benchmark({"a": "---\nname: x\n---\n"}, {"q": ("x", ["a"])}, kind=Kind.SKILL)
    with pytest.raises(UsageError, match="skills are Markdown"):
        masked_runs(skills, BM25)


def test_a_run_without_any_hit_has_no_relative_change():
    small = benchmark({"a": '{"description": "x y"}', "b": '{"description": "weather"}'}, {"q": ("weather", ["a"])})
    full, masked = masked_runs(small, BM25)
    assert masking_frame(compile_benchmark(small), full, masked)["change_percent"].to_list() == [None]


def test_each_field_alone():
    small = benchmark({"a": "", "b": ""}, {"q": ("", ["a"])})
    tools = [
        StandardizedTool("a", "weather report", (Parameter("city", {}),)),
        StandardizedTool("b", "mail", (Parameter("receiver", {}),), "weather degrees"),
    ]
    queries = [RewrittenQuery("q", (ToolNeed("none", "weather", "weather degrees"),))]
    inputs = field_inputs(small, variant("mftr"), standardized=tools, rewritten=queries)
    scorer = field_scorer(inputs, BM25)
    compiled = compile_benchmark(small)
    frame = single_field_frame(compiled, scorer, single_field_runs(scorer, inputs.target))
    assert frame["field"].to_list() == [field.value for field in Field]
    assert frame["tools"].to_list() == [2, 2, 1, 0]
    assert frame["ndcg_10"][0] == 1.0  # the description finds a first
    assert frame["ndcg_10"][2] < 1.0  # the response finds b first
    # No query has arguments and no tool has examples: the order of ids is not a figure.
    assert frame["queries"].to_list() == [1, 0, 1, 0]
    assert frame["ndcg_10"].is_null().to_list() == frame["recall_10"].is_null().to_list() == [False, True, False, True]


def test_a_query_that_a_field_says_nothing_about_is_not_ranked_by_ids():
    small = benchmark({"a": "", "b": ""}, {"p": ("", ["b"]), "q": ("", ["b"])})
    tools = [StandardizedTool(name, name, (Parameter(name, {"description": name}),)) for name in ("storm", "letter")]
    tools = [replace(tool, tool_id=tool_id) for tool, tool_id in zip(tools, "ab", strict=True)]
    needs = (ToolNeed("weather", "weather", "weather"),)
    queries = [RewrittenQuery("p", needs), RewrittenQuery("q", needs, (Argument("letter", "letter"),))]
    inputs = field_inputs(small, variant("mftr"), standardized=tools, rewritten=queries)
    scorer = field_scorer(inputs, BM25)
    for settings in (PAPER, V2):
        runs = single_field_runs(scorer, inputs.target, settings)
        assert np.diff(runs[Field.PARAMETERS].offsets).tolist() == [0, 2], "p has no arguments; by ids b would be first"
        assert runs[Field.DESCRIPTION].queries_answered == 0, "the word is in no description"
        frame = single_field_frame(compile_benchmark(small), scorer, runs)
        assert frame["ndcg_10"].to_list() == [None, 0.5, None, None]


def test_recall_rises_with_k_and_stops_at_the_depth_of_the_runs():
    small = benchmark({f"t{i}": "weather " * (i + 1) for i in range(5)}, {"q": ("weather", ["t0", "t4"])})
    compiled = compile_benchmark(small)
    run = retrieve(small, BM25, depth=5).run
    frame = recall_frame(compiled, {"BM25": run}, (1, 3, 5, 200), run_depth=5)
    assert frame["k"].to_list() == [1, 3, 5]
    assert frame["recall"].is_sorted() and frame["recall"][-1] == 1.0
    assert recall_frame(compiled, {"BM25": run}, (200,)).height == 0
    assert recall_frame(compiled, {}).height == 0


@pytest.mark.shared
def test_masking_of_real_documents_keeps_their_style(shared: Path):
    with gzip.open(shared / "data" / "tools.jsonl.gz", "rt") as stream:
        documents = [json.loads(line)["documentation"] for _, line in zip(range(3000), stream, strict=False)]
    for text in documents[::50]:
        for field in top_level_fields([text]):
            rest = json.loads(text)
            del rest[field]
            masked = mask(text, field)
            assert json.loads(masked) == rest and len(masked) < len(text)
