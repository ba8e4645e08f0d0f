"""Compiling labels, and keeping the result in a file."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pipeline.benchmark import Average, Benchmark
from pipeline.errors import BenchmarkError
from pipeline.identifiers import IdTable
from pipeline.scoring import compiled as compiled_module
from pipeline.scoring.compiled import CompiledBenchmark, CompiledFileError
from pipeline.scoring.compiled_cache import FolderCache
from pipeline.scoring.compiler import compile_benchmark
from tests.pipeline.scoring.small_benchmarks import benchmark, canonical, frame

TOOLS = ["b", "a", "é", "Z", "𐀀", "\uffff", "10", "9"]
LABELS = {
    "q2": ("web", "s", ["b", "a"], [["a", "b"], ["Z"], ["b", "é"], ["é", "b", "b"], ["Z"]]),
    "q10": ("", "t", ["9"], []),
    "q1": ("code", "s", ["10"], [["𐀀"], ["\uffff"]]),
}
EQUIVALENTS = [
    {"query_id": "q1", "position": 0, "tool_id": "𐀀", "verdict": "valid"},
    {"query_id": "q1", "position": 0, "tool_id": "10", "verdict": "valid"},
    {"query_id": "q2", "position": 1, "tool_id": "é", "verdict": "valid"},
    {"query_id": "q2", "position": 1, "tool_id": "9", "verdict": "invalid"},
]


@pytest.fixture
def bench() -> Benchmark:
    return benchmark(TOOLS, LABELS, equivalents=EQUIVALENTS, invalid=[("q10", ["a", "Z"])])


def same(one: CompiledBenchmark, two: CompiledBenchmark) -> bool:
    for field in fields(CompiledBenchmark):
        a, b = getattr(one, field.name), getattr(two, field.name)
        if isinstance(a, np.ndarray):
            if a.dtype != b.dtype or not np.array_equal(a, b):
                return False
        elif isinstance(a, IdTable):
            if a.ids != b.ids or a.find(a.ids).tolist() != b.find(a.ids).tolist():
                return False
        elif a != b:
            return False
    return True


def combinations(compiled: CompiledBenchmark, query: str) -> list[set[str]]:
    position = compiled.queries.ids.index(query)
    count = int(np.diff(compiled.combination_offsets)[position])
    return [{compiled.tools[int(t)] for t in compiled.combination(position, i)} for i in range(count)]


def test_ids_are_sorted_by_bytes_and_groups_keep_their_first_order(bench: Benchmark) -> None:
    compiled = compile_benchmark(bench)
    assert compiled.tools.ids == sorted(TOOLS, key=str.encode)
    assert compiled.queries.ids == ["q1", "q10", "q2"]
    assert compiled.domain_names == ("web", "", "code")
    assert compiled.source_names == ("s", "t")
    assert [compiled.domain_names[i] for i in compiled.domain_of] == ["code", "", "web"]
    assert [compiled.source_names[i] for i in compiled.source_of] == ["s", "t", "s"]
    assert compiled.headline is Average.MACRO
    assert compiled.has_combinations


def test_combinations_are_distinct_sets_with_the_ground_truth_first(bench: Benchmark) -> None:
    compiled = compile_benchmark(bench)
    assert combinations(compiled, "q2") == [{"a", "b"}, {"Z"}, {"b", "é"}]
    assert combinations(compiled, "q10") == [{"9"}]
    assert combinations(compiled, "q1") == [{"10"}, {"\uffff"}, {"𐀀"}]
    assert compiled.notes == ()
    with pytest.raises(IndexError, match="has 1 valid combinations, no number 1"):
        compiled.combination(1, 1)


def test_missing_ground_truth_is_added_and_noted(bench: Benchmark) -> None:
    rows = [
        {"query_id": "q1", "tool_ids": ["a"], "verdict": "valid"},
        {"query_id": "q2", "tool_ids": ["Z"], "verdict": "valid"},
        {"query_id": "q2", "tool_ids": ["b", "a"], "verdict": "valid"},
        {"query_id": "q2", "tool_ids": ["9"], "verdict": "unsure"},
    ]
    compiled = compile_benchmark(replace(bench, combinations=frame("combinations", rows)))
    assert combinations(compiled, "q1") == [{"10"}, {"a"}]
    assert combinations(compiled, "q2") == [{"a", "b"}, {"Z"}]
    assert compiled.notes == ("the ground truth was added to the combinations of 1 queries that lacked it",)


def test_the_order_of_rows_does_not_matter_and_many_sizes_fit() -> None:
    tools = [f"t{i:04}" for i in range(700)]
    others = [tools[i : i + 1 + i % 3] for i in range(1, 600)]
    bench = benchmark(tools, {"p": ("d", "s", [tools[0]], others), "q": ("d", "s", [tools[5]], others[:50])})
    compiled = compile_benchmark(bench)
    assert combinations(compiled, "p") == canonical([[tools[0]], *others])
    assert combinations(compiled, "q") == canonical([[tools[5]], *others[:50]])
    mixed = bench.combinations.sample(fraction=1.0, shuffle=True, seed=1)
    assert same(compile_benchmark(replace(bench, combinations=mixed)), compiled)


def test_combinations_stand_in_rrf_order_and_unknown_scores_last(bench: Benchmark) -> None:
    scored: list[tuple[list[str], float | None]] = [(["10"], 0.1), (["a", "b"], None), (["Z"], 0.2), (["9"], 0.3)]
    scored += [(["é"], 0.2), (["a"], None), (["b"], float("nan"))]
    rows = [{"query_id": "q1", "tool_ids": ids, "verdict": "valid", "rrf_score": rrf} for ids, rrf in scored]
    compiled = compile_benchmark(replace(bench, combinations=frame("combinations", rows)))
    assert combinations(compiled, "q1") == [{"10"}, {"9"}, {"Z"}, {"é"}, {"a"}, {"a", "b"}, {"b"}]


def test_labels_with_unknown_tools_empty_sets_or_no_ground_truth_are_refused(bench: Benchmark) -> None:
    unknown = frame("combinations", [{"query_id": "q1", "tool_ids": ["nowhere"], "verdict": "valid"}])
    with pytest.raises(BenchmarkError, match="unknown tool ids\n  tool 'nowhere'"):
        compile_benchmark(replace(bench, combinations=unknown))
    empty = frame("combinations", [{"query_id": "q1", "tool_ids": [], "verdict": "valid"}])
    with pytest.raises(BenchmarkError, match="1 empty tool sets"):
        compile_benchmark(replace(bench, combinations=empty))
    with pytest.raises(BenchmarkError, match="1 queries have no ground truth\n  query 'q2'"):
        compile_benchmark(replace(bench, ground_truth=bench.ground_truth.filter(pl.col("query_id") != "q2")))


def test_a_saved_file_reads_back_the_same(bench: Benchmark, tmp_path: Path) -> None:
    compiled = compile_benchmark(bench)
    compiled.save(tmp_path / "file.npz")
    assert same(CompiledBenchmark.load(tmp_path / "file.npz"), compiled)


def test_a_damaged_or_outdated_file_is_refused_and_the_cache_builds_it_again(
    bench: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = compile_benchmark(bench)
    cache = FolderCache(tmp_path / "compiled")
    path = cache.path("key")
    assert same(cache.compiled("key", lambda: compiled), compiled)
    good = path.read_bytes()
    flipped = bytearray(good)
    flipped[good.index(b"members.npy") + 200] ^= 1
    for bad in (b"", b"not a zip", good[: len(good) // 2], bytes(flipped), good[:-30]):
        path.write_bytes(bad)
        with pytest.raises(CompiledFileError, match="build it again"):
            CompiledBenchmark.load(path)
        assert same(cache.compiled("key", lambda: compiled), compiled)
        assert same(CompiledBenchmark.load(path), compiled)
    monkeypatch.setattr(compiled_module, "COMPILER_VERSION", "of another time")
    with pytest.raises(CompiledFileError, match="another version"):
        CompiledBenchmark.load(path)


def test_the_cache_is_used(bench: Benchmark, tmp_path: Path) -> None:
    def never() -> CompiledBenchmark:
        raise AssertionError("compiled again")

    cache = FolderCache(tmp_path)
    compiled = cache.compiled("key", lambda: compile_benchmark(bench))
    assert same(cache.compiled("key", never), compiled)
    with pytest.raises(AssertionError, match="compiled again"):
        cache.compiled("another key", never)


def test_a_folder_that_cannot_be_written_is_no_obstacle(bench: Benchmark, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file where the folder should be")
    compiled = compile_benchmark(bench)
    assert same(FolderCache(blocked / "cache").compiled("key", lambda: compiled), compiled)
