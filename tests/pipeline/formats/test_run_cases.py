"""The 53 sloppy and hostile files, each with the verdict it must get."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.formats.run_file import read_run
from pipeline.run import Order, RunTarget
from tests.pipeline.formats.run_targets import folder_target

pytestmark = pytest.mark.shared

#: Accepted files with the content of plain.trec.
LIKE_PLAIN = [
    "tabs_and_spaces.trec",
    "shuffled_rows.trec",
    "rank_zero_everywhere.trec",
    "crlf.trec",
    "bom.trec",
    "header.trec",
    "gz.trec.gz",
    "json_named_txt.txt",
    "toolret_nested.json",
    "mteb_predictions.json",
    "skillret_results.json",
    "ir_metadata.trec",
    "columns.parquet",
    "columns.csv",
    "ranked.jsonl",
    "lists_no_scores.json",
]


@pytest.fixture(scope="module")
def target(shared: Path) -> RunTarget:
    return folder_target(shared / "benchmarks" / "apibank")


@pytest.fixture(scope="module")
def runs(shared: Path) -> Path:
    return shared / "cases" / "runs"


def test_every_case_gets_its_verdict(shared: Path, runs: Path, target: RunTarget) -> None:
    cases: dict[str, dict[str, Any]] = json.loads((shared / "cases" / "expected.json").read_text())
    assert len(cases) == 53
    faults = []
    for name, case in cases.items():
        report = read_run(runs / name, target).report
        text = " ".join(problem.message for problem in report.problems).lower()
        if report.verdict != case["verdict"]:
            faults.append(f"{name}: {report.verdict}, must be {case['verdict']}: {text}")
        if case["verdict"] == "refuse":
            if case["mention"] and not any(mention.lower() in text for mention in case["mention"]):
                faults.append(f"{name}: names none of {case['mention']}: {text}")
            if case["line"] and case["line"] not in [problem.line for problem in report.problems]:
                faults.append(f"{name}: line {case['line']} is not named: {text}")
            if case["line"] and f"line {case['line']}: " not in text:
                faults.append(f"{name}: the message does not begin with its line: {text}")
        faults += [f"{name}: flag {flag} missing" for flag in case["flags"] if flag not in report.flags]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("name", LIKE_PLAIN)
def test_same_ranking_as_plain(name: str, runs: Path, target: RunTarget) -> None:
    plain, other = (read_run(runs / file, target).run for file in ("plain.trec", name))
    assert plain is not None
    assert other is not None
    assert np.array_equal(plain.offsets, other.offsets)
    assert np.array_equal(plain.tools, other.tools)
    assert plain.ranking_hash == other.ranking_hash


def test_declared_distance_ranks_like_plain(runs: Path, target: RunTarget) -> None:
    plain, distances = (
        read_run(runs / "plain.trec", target).run,
        read_run(runs / "distances.trec", target, order=Order.DISTANCE).run,
    )
    assert plain is not None
    assert distances is not None
    assert plain.ranking_hash == distances.ranking_hash


def test_declared_rank_ranks_all_tied_like_plain(runs: Path, target: RunTarget) -> None:
    plain = read_run(runs / "plain.trec", target).run
    reading = read_run(runs / "all_tied.trec", target, order=Order.RANK)
    assert plain is not None
    assert reading.run is not None
    assert plain.ranking_hash == reading.run.ranking_hash
    assert reading.report.verdict == "normalise"
    assert (np.diff(reading.run.scores[:20]) < 0).all()


def test_other_benchmark_is_named(runs: Path, target: RunTarget) -> None:
    asked: list[str] = []

    def identify(sample: Any) -> str | None:
        asked.extend(sample)
        return "toolace@1"

    report = read_run(runs / "other_benchmark.trec", target, identify=identify).report
    assert "these ids match benchmark toolace@1" in report.problems[0].message
    assert asked[0] == "toolACE_query_0"


def peak_bytes() -> int:
    """Most memory this process has had resident.

    ``ru_maxrss`` begins with the parent's peak on Linux (it survives ``exec``), so the kernel's own figure comes first.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) << 10 for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


_BOMB = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.pipeline.formats.run_targets import folder_target
from tests.pipeline.formats.test_run_cases import peak_bytes
from pipeline.formats.run_file import read_run
report = read_run(Path(sys.argv[3]), folder_target(Path(sys.argv[2]))).report
assert report.verdict == "refuse", report
assert "limit" in report.problems[0].message, report
print(peak_bytes())
"""


def test_bomb_is_refused_in_little_memory(shared: Path, runs: Path) -> None:
    root = Path(__file__).resolve().parents[3]
    command = [
        sys.executable,
        "-c",
        _BOMB,
        str(root),
        str(shared / "benchmarks" / "apibank"),
        str(runs / "bomb.trec.gz"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=root, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 300e6, f"{int(done.stdout) / 1e6:.0f} MB"


def test_real_runs_read_as_the_reference_reads_them(shared: Path) -> None:
    """Every list of the published runs, ranked as pytrec_eval would, over a benchmark made of their own ids."""
    from tests.pipeline.formats.run_targets import as_lists, make_target

    for path in sorted((shared / "data" / "runs").glob("*.trec")):
        rows = [line.split() for line in path.read_text().splitlines() if line.strip()]
        target = make_target(sorted({row[0] for row in rows}), sorted({row[2] for row in rows}))
        want: dict[str, list[tuple[float, bytes]]] = {}
        for query, _, tool, _, score, _ in rows:
            want.setdefault(query, []).append((float(np.float32(float(score))), tool.encode()))
        reading = read_run(path, target)
        got = as_lists(reading, target)
        assert got == {q: [t.decode() for _, t in sorted(results, reverse=True)] for q, results in want.items()}
