"""Task files: which tools each setting hands over, and the shape that ToolBench's runner reads."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import polars as pl
import pytest

from pipeline.benchmark import Benchmark
from pipeline.downstream.api_entry import api_entry
from pipeline.downstream.task_file import CategoryFrom, only_tasks, task_records, write_tasks
from pipeline.downstream.tool_sets import Choice, annotated_sets, expanded_sets, retrieved_sets
from pipeline.errors import BenchmarkError, UsageError
from pipeline.formats.benchmark_folder import read_benchmark_folder
from pipeline.formats.ranking import RANKING
from pipeline.jobs.first_start import demo_folder
from tests.pipeline.scoring.small_benchmarks import benchmark


@pytest.fixture(scope="module")
def demo() -> Benchmark:
    return read_benchmark_folder(demo_folder("tools"))


def small(scores: list[float | None]) -> Benchmark:
    """q1 has its label and three other sets, q2 its label alone; the scores are of q1's sets in order."""
    made = benchmark(
        ["a", "b", "c", "d"],
        {"q1": ("web", "s", ["a", "b"], [["a", "c"], ["d"], ["b", "d"]]), "q2": ("web", "s", ["b"], [])},
        invalid=[("q1", ["c", "d"])],
    )
    every = pl.Series("rrf_score", [*scores, 9.0], dtype=pl.Float64)
    return replace(made, combinations=made.combinations.with_columns(every))


def ranking(rows: dict[str, list[str]]) -> pl.DataFrame:
    flat = [(query, tool, -float(i), i) for query, tools in rows.items() for i, tool in enumerate(tools, start=1)]
    return pl.DataFrame(flat, schema=RANKING, orient="row")


def test_the_highest_score_among_other_valid_sets_replaces_the_label() -> None:
    sets = expanded_sets(small([0.9, 0.2, 0.4, 0.4]))
    # d and b+d are equal in score: by ids, b+d comes first; c+d scores more and is invalid.
    assert sets.tools == {"q1": ("b", "d"), "q2": ("b",)}
    assert sets.notes == ("1 task gets another set than the label, 1 the label itself",)
    assert expanded_sets(small([0.9, 0.2, 0.4, 0.4]), keep_label=True).tools["q1"] == ("a", "b")
    assert expanded_sets(small([0.9, 0.1, None, None])).tools["q1"] == ("a", "c")


def test_a_run_chooses_the_set_that_it_ranks_best() -> None:
    # NDCG@3: a+c has (1 + 1/2) / (1 + 1/log2 3) = 0.92; d has nothing, b+d only b at rank 2.
    runs = {"q1": ["a", "b", "c", "d"]}
    chosen = expanded_sets(small([0.9, 0.1, 0.4, 0.4]), choose=Choice.RUN, ranking=ranking(runs), k=3)
    assert chosen.tools["q1"] == ("a", "c")
    assert chosen.notes[1] == "the run has no results for 1 task; there the score decides"
    # With d at rank 1 a set of one is complete; within K = 1 nothing else counts.
    first = expanded_sets(small([0.9, 0.5, 0.1, 0.4]), choose=Choice.RUN, ranking=ranking({"q1": ["d", "b", "a"]}), k=1)
    assert first.tools["q1"] == ("b", "d")  # min(|C|, 1) = 1: both are complete, the score decides
    second = expanded_sets(
        small([0.9, 0.5, 0.1, 0.4]), choose=Choice.RUN, ranking=ranking({"q1": ["d", "c", "b"]}), k=2
    )
    assert second.tools["q1"] == ("d",)
    with pytest.raises(UsageError, match="needs a run"):
        expanded_sets(small([None] * 4), choose=Choice.RUN)


def test_a_run_hands_over_its_first_results() -> None:
    sets = retrieved_sets(small([None] * 4), ranking({"q1": ["d", "a", "c"]}), 2)
    assert sets.tools == {"q1": ("d", "a"), "q2": ()}
    assert sets.notes == ('the run has no results for 1 task, which get no tools: "q2"',)
    with pytest.raises(UsageError, match="K is 0"):
        retrieved_sets(small([None] * 4), ranking({}), 0)


def test_one_label_a_query_cannot_be_expanded() -> None:
    with pytest.raises(BenchmarkError, match=r"small@1 has one label a query .* expand it first"):
        expanded_sets(benchmark(["a"], {"q": ("web", "", ["a"], [])}))


def test_a_task_file_reads_back_as_toolbench_reads_it(demo: Benchmark) -> None:
    out = io.StringIO()
    expanded = expanded_sets(demo)
    assert write_tasks(task_records(demo, expanded, category=CategoryFrom.SOURCE), out) == demo.queries.height
    tasks = json.loads(out.getvalue())
    assert [task["query_id"] for task in tasks] == demo.queries["query_id"].to_list()
    truths = dict(demo.ground_truth.select("query_id", "tool_ids").iter_rows())
    sources = dict(demo.queries.select("query_id", "source").iter_rows())
    named = {}
    for task in tasks:
        assert set(task) == {"query_id", "query", "category", "setting", "api_list", "relevant APIs"}
        assert (task["setting"], task["category"]) == ("expanded", sources[task["query_id"]])
        assert tuple(api["tool_id"] for api in task["api_list"]) == expanded.tools[task["query_id"]]
        for api in task["api_list"]:
            # What the runner looks up or reads, always there and of its type.
            assert all(isinstance(api[key], str) and api[key] for key in ("category_name", "tool_name", "api_name"))
            assert isinstance(api["api_description"], str)
            for parameter in (*api["required_parameters"], *api["optional_parameters"]):
                assert set(parameter) == {"name", "type", "description", "default"}
                assert all(isinstance(parameter[key], str) for key in ("name", "type", "description"))
            named[api["tool_id"]] = [api["tool_name"], api["api_name"]]
    # The label is named whatever is handed over.
    for task in tasks:
        assert len(task["relevant APIs"]) == len(truths[task["query_id"]])
        for tool, pair in zip(truths[task["query_id"]], task["relevant APIs"], strict=True):
            assert named.get(tool, pair) == pair


def test_only_some_tasks(demo: Benchmark) -> None:
    some = only_tasks(demo, ["ev-002", "ev-001"])
    assert [task["query_id"] for task in task_records(some, annotated_sets(some))] == ["ev-001", "ev-002"]
    with pytest.raises(BenchmarkError, match='1 task is no query of demo-tools@1: "ev-1"'):
        only_tasks(demo, ["ev-001", "ev-1"])


def entry(documentation: object, **fields: str) -> dict[str, object]:
    text = documentation if isinstance(documentation, str) else json.dumps(documentation)
    tool = dict.fromkeys(("name", "domain", "source", "provider"), "")
    return api_entry({"tool_id": "t1", "documentation": text, **tool, **fields})  # type: ignore[return-value]


def test_toolbench_documents_keep_their_own_fields() -> None:
    parameter = {"name": "id", "type": "string", "description": "Which", "default": ""}
    found = entry(
        {
            "category_name": "Food", "tool_name": "Drinks", "api_name": "One drink", "api_description": "Get one",
            "required_parameters": [parameter], "optional_parameters": [{"name": "n", "type": "NUMBER"}],
            "method": "get", "template_response": {"id": "str"},
        },
        domain="web",
    )  # fmt: skip
    assert found == {
        "category_name": "Food", "tool_name": "Drinks", "api_name": "One drink", "api_description": "Get one",
        "required_parameters": [{**parameter, "type": "STRING"}],
        "optional_parameters": [{"name": "n", "type": "NUMBER", "description": "", "default": ""}],
        "method": "GET", "template_response": {"id": "str"}, "tool_id": "t1",
    }  # fmt: skip


def test_other_documents_become_the_same_shape() -> None:
    openapi = {
        "openapi": "3.1.0",
        "info": {"title": "Rates"},
        "paths": {
            "/convert": {
                "get": {
                    "operationId": "convert", "summary": "Convert an amount",
                    "parameters": [
                        {"name": "to", "required": True, "schema": {"type": "string", "default": "EUR"}},
                        {"name": "at", "required": False, "schema": {"type": "integer"}},
                    ],
                }
            }
        },
    }  # fmt: skip
    found = entry(openapi, domain="money")
    assert [found[key] for key in ("category_name", "tool_name", "api_name", "api_description")] == [
        "money", "Rates", "convert", "Convert an amount",
    ]  # fmt: skip
    assert found["required_parameters"] == [{"name": "to", "type": "STRING", "description": "", "default": "EUR"}]
    assert found["optional_parameters"] == [{"name": "at", "type": "NUMBER", "description": "", "default": ""}]
    said = {"name": "f", "parameters": {"n": {"type": "int, optional, default=3"}, "xs": {"type": "List[a, b]"}}}
    function = entry(said)
    assert [(p["name"], p["type"]) for p in function["optional_parameters"]] == [("n", "NUMBER")]  # type: ignore[attr-defined]
    assert [(p["name"], p["type"]) for p in function["required_parameters"]] == [("xs", "List[a, b]")]  # type: ignore[attr-defined]


def test_a_text_is_the_description_as_a_whole() -> None:
    found = entry("# Rotate pages\nTurns every page.", name="rotate", source="pdf")
    assert found == {
        "category_name": "pdf", "tool_name": "rotate", "api_name": "rotate",
        "api_description": "# Rotate pages\nTurns every page.", "required_parameters": [], "optional_parameters": [],
        "tool_id": "t1",
    }  # fmt: skip
    assert entry("{broken")["api_name"] == "t1"
