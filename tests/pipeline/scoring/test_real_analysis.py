"""A real run over real labels: rank curves and the split, recomputed from the files alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.formats.benchmark_folder import read_benchmark_folder
from pipeline.formats.ranking import ranking_frame
from pipeline.formats.run_file import read_run
from pipeline.scoring.compiler import compile_benchmark
from pipeline.scoring.equivalent_ranks import four_way_split, negative_ranks, rank_curves, rank_table
from pipeline.scoring.query_card import query_card
from pipeline.scoring.scores import score_run

pytestmark = pytest.mark.shared


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_curves_and_split_of_a_real_run(shared: Path, tmp_path: Path):
    script = shared / "checks" / "make_benchmark.py"
    options = ["--source", "gorilla-tensor", "--basis", "identical api_call"]
    command = [sys.executable, str(script), str(shared / "data"), str(tmp_path), "gorilla-tensor", *options]
    subprocess.run(command, check=True, capture_output=True)
    folder = tmp_path / "gorilla-tensor"
    path = shared / "data" / "runs" / "gorilla_apibench_tensorflowhub_gpt_index.trec"
    benchmark = read_benchmark_folder(folder)
    compiled = compile_benchmark(benchmark)
    run = read_run(path, compiled.target).run
    assert run is not None
    table = rank_table(score_run(compiled, run).per_query, compiled, negative_ranks(compiled, run))
    curves = rank_curves(table)

    ranked: dict[str, list[tuple[float, str]]] = {}
    for line in path.read_text().splitlines():
        query, _, tool, _, score, _ = line.split()
        ranked.setdefault(query, []).append((float(score), tool))
    lists = {q: [tool for _, tool in sorted(rows, reverse=True)] for q, rows in ranked.items()}
    truth = {str(row["query_id"]): set(row["tool_ids"]) for row in lines(folder / "ground_truth.jsonl")}  # type: ignore[call-overload]
    valid: dict[str, set[str]] = {}
    for row in lines(folder / "equivalents.jsonl"):
        if row["verdict"] == "valid":
            valid.setdefault(str(row["query_id"]), set()).add(str(row["tool_id"]))
    outside = {q: tools - truth[q] for q, tools in valid.items() if tools - truth[q]}
    assert curves.queries == len(outside) > 0

    def best(query: str, tools: set[str]) -> float:
        return next((i for i, tool in enumerate(lists.get(query, []), start=1) if tool in tools), float("inf"))

    for target, ranks in (
        ("truth", [best(q, truth[q]) for q in outside]),
        ("equivalent", [best(q, tools) for q, tools in outside.items()]),
    ):
        expected = [sum(rank <= r for rank in ranks) for r in range(1, 21)]
        assert curves.curves.filter(target=target)["queries"].to_list() == expected
    cells = [(best(q, truth[q]) <= 10, best(q, tools) <= 10) for q, tools in outside.items()]
    order = [(True, True), (True, False), (False, True), (False, False)]
    assert four_way_split(table)["queries"].to_list() == [cells.count(cell) for cell in order]

    query = next(iter(outside))
    card = query_card(benchmark, query, {"gpt": ranking_frame(run, compiled.target)})
    assert card.lists["tool_id"].to_list() == lists.get(query, [])[:10]
    assert set(card.equivalents.filter(verdict="valid")["tool_id"]) == valid[query]
