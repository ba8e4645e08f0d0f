"""Real runs, read from their files and scored, against figures computed by other code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from pipeline.formats.benchmark_folder import read_benchmark_folder
from pipeline.formats.run_file import read_run
from pipeline.run import Order
from pipeline.scoring.averages import scores_json, summarise
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.compiler import compile_benchmark
from pipeline.scoring.scores import score_run

pytestmark = pytest.mark.shared

GORILLA = {
    "tensorflowhub": "gorilla-tensor",
    "torchhub": "gorilla-pytorch",
    "huggingface": "gorilla-huggingface",
}


def summary_of(compiled: CompiledBenchmark, path: Path, order: Order | None = None) -> pl.DataFrame:
    reading = read_run(path, compiled.target, order=order)
    assert reading.run is not None, reading.report.problems
    return summarise(score_run(compiled, reading.run), compiled)


@pytest.mark.parametrize(("hub", "source"), GORILLA.items())
def test_gorilla_runs_score_as_expected_old_and_new(hub: str, source: str, shared: Path, tmp_path: Path) -> None:
    script = shared / "checks" / "make_benchmark.py"
    options = ["--source", source, "--basis", "identical api_call"]
    command = [sys.executable, str(script), str(shared / "data"), str(tmp_path), source, *options]
    subprocess.run(command, check=True, capture_output=True)
    compiled = compile_benchmark(read_benchmark_folder(tmp_path / source))
    name = f"gorilla_apibench_{hub}_gpt_index.trec"
    figures = scores_json(summary_of(compiled, shared / "data" / "runs" / name))
    expected = json.loads((shared / "data" / "runs" / "expected.json").read_text())["runs"][name]["scores"]
    for at, views in expected.items():
        for view, metrics in views.items():
            for metric, value in metrics.items():
                assert figures[view][f"{metric}{at}"]["micro"] == pytest.approx(value, abs=1e-9)


def test_the_accepted_cases_score_as_expected(shared: Path) -> None:
    compiled = compile_benchmark(read_benchmark_folder(shared / "benchmarks" / "apibank"))
    expected = json.loads((shared / "cases" / "expected_scores.json").read_text())["scores"]
    assert expected
    for name, values in expected.items():
        figures = scores_json(summary_of(compiled, shared / "cases" / "runs" / name))["old"]
        found = {metric: figures[metric]["micro"] for metric in values}
        assert found == pytest.approx(values, abs=1e-9), name
