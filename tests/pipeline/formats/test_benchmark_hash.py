"""The content hash: the same for the same content, in whatever file, order or spelling; different otherwise."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.benchmark import TABLES, BenchmarkInfo, Judgement, Kind
from pipeline.errors import BenchmarkError
from pipeline.formats import content_hash as hashing
from pipeline.formats.benchmark_folder import read_benchmark_folder, write_benchmark_folder
from pipeline.formats.benchmark_validation import build_benchmark
from pipeline.formats.content_hash import content_hash

INFO = BenchmarkInfo(slug="tiny", title="Tiny", kind=Kind.TOOL, version="1", licence="CC0", source="a test")
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_ID = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=6)
_LABEL = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=4)
_FLAG = st.sampled_from([None, True, False])


@st.composite
def frames(draw: st.DrawFn) -> dict[str, pl.DataFrame]:
    """Consistent tables of a small benchmark."""
    tools = draw(st.lists(_ID, min_size=2, max_size=6, unique=True))
    queries = draw(st.lists(_ID, min_size=1, max_size=3, unique=True))
    sets = st.lists(st.sampled_from(tools), min_size=1, max_size=3, unique=True)
    truth = {query: draw(sets) for query in queries}
    rows: dict[str, list[dict[str, Any]]] = {
        "tools": [
            {"tool_id": t, "documentation": draw(_TEXT), "name": draw(_TEXT), "domain": draw(_LABEL),
             "source": draw(_LABEL), "provider": draw(st.sampled_from(["", "acme"]))}
            for t in tools
        ],
        "queries": [{"query_id": q, "text": draw(_TEXT), "instruction": draw(_TEXT), "domain": draw(_LABEL)}
                    for q in queries],
        "ground_truth": [{"query_id": q, "tool_ids": members} for q, members in truth.items()],
    }  # fmt: skip
    if draw(st.booleans()):
        rows["subqueries"] = [
            {"query_id": q, "position": i, "text": draw(_TEXT), "tool_id": tool}
            for q, members in truth.items()
            for i, tool in enumerate(reversed(members))
        ]
    if draw(st.booleans()):
        rows["equivalents"] = [
            {"query_id": q, "position": 0, "tool_id": tool, "verdict": "valid", "origin": "judged",
             "reason": draw(_TEXT), "retrieval_rank": draw(st.none() | st.integers(0, 2**31 - 1)),
             "same_operation": draw(_FLAG)}
            for q in queries
            for tool in draw(sets)
        ]  # fmt: skip
    if draw(st.booleans()):
        rows["combinations"] = []
        for q in queries:
            for members in draw(st.lists(sets, max_size=4, unique_by=frozenset)):
                verdict = "valid" if set(members) == set(truth[q]) else draw(st.sampled_from(list(Judgement)))
                score = draw(st.none() | st.floats(allow_nan=False, allow_infinity=False))
                rows["combinations"].append(
                    {
                        "query_id": q,
                        "tool_ids": members,
                        "verdict": verdict,
                        "rrf_score": score,
                        "coverage": draw(_FLAG),
                    }
                )
    return {
        name: pl.DataFrame(table, schema={c: t for c, t in TABLES[name].items() if not table or c in table[0]})
        for name, table in rows.items()
    }


@settings(max_examples=40, deadline=None)
@given(frames(), st.randoms(use_true_random=False))
def test_files_orders_and_spellings_make_no_difference(tables: dict[str, pl.DataFrame], random: Any) -> None:
    benchmark = build_benchmark(INFO, tables)
    folder = Path(tempfile.mkdtemp())
    try:
        for table_format in ("jsonl", "parquet"):
            write_benchmark_folder(benchmark, folder / table_format, table_format)  # type: ignore[arg-type]
            again = read_benchmark_folder(folder / table_format)
            assert again.content_hash == benchmark.content_hash
            assert again.notes == () or all("no text" in note for note in again.notes)
            for name in TABLES:
                assert getattr(again, name).equals(getattr(benchmark, name))
    finally:
        shutil.rmtree(folder)
    shuffled = {}
    for name, frame in tables.items():
        columns = list(frame.columns)
        random.shuffle(columns)
        rows = list(range(frame.height))
        random.shuffle(rows)
        shuffled[name] = frame[rows].select(columns)
    assert build_benchmark(INFO, shuffled).content_hash == benchmark.content_hash


def _small(**changes: Any) -> dict[str, pl.DataFrame]:
    rows: dict[str, list[dict[str, Any]]] = {
        "tools": [{"tool_id": "a", "documentation": "{}"}, {"tool_id": "b", "documentation": ""}],
        "queries": [{"query_id": "q", "text": "x"}],
        "ground_truth": [{"query_id": "q", "tool_ids": ["a", "b"]}],
        "combinations": [{"query_id": "q", "tool_ids": ["b"], "verdict": "valid", "rrf_score": 0.5, "coverage": None}],
    } | changes
    return {name: pl.DataFrame(table, strict=False) for name, table in rows.items()}


def _hash(**changes: Any) -> str:
    return build_benchmark(INFO, _small(**changes)).content_hash


@pytest.mark.parametrize(
    "changes",
    [
        {"tools": [{"tool_id": "a", "documentation": "{} "}, {"tool_id": "b", "documentation": ""}]},
        {"tools": [{"tool_id": "a", "documentation": ""}, {"tool_id": "b", "documentation": "{}"}]},
        {"tools": [{"tool_id": "a", "documentation": "{}", "name": "n"}, {"tool_id": "b", "documentation": ""}]},
        {"queries": [{"query_id": "q", "text": "", "instruction": "x"}]},
        {"ground_truth": [{"query_id": "q", "tool_ids": ["b", "a"]}]},
        {"combinations": [{"query_id": "q", "tool_ids": ["b"], "verdict": "unsure", "rrf_score": 0.5}]},
        {"combinations": [{"query_id": "q", "tool_ids": ["b"], "verdict": "valid", "rrf_score": 0.5000000000000001}]},
        {"combinations": [{"query_id": "q", "tool_ids": ["b"], "verdict": "valid", "rrf_score": None}]},
        {
            "combinations": [
                {"query_id": "q", "tool_ids": ["b"], "verdict": "valid", "rrf_score": 0.5, "coverage": False}
            ]
        },
    ],
)
def test_every_change_of_content_shows(changes: dict[str, Any]) -> None:
    assert _hash(**changes) != _hash()


def test_sets_and_absent_columns_make_no_difference() -> None:
    first = [{"query_id": "q", "tool_ids": ["b", "a"], "verdict": "valid"}]
    second = [
        {"query_id": "q", "tool_ids": ["a", "b"], "verdict": "valid", "reason": None, "coverage": None, "judge": ""}
    ]
    assert _hash(combinations=first) == _hash(combinations=second)


def test_what_is_hashed_is_what_the_module_says() -> None:
    """Stored hashes would no longer match if this changed: then the version in the first line must change too."""
    tables = _small()
    benchmark = build_benchmark(INFO, tables)
    text = (
        "equirank benchmark content 1\n"
        "tools 2\n1:a;2:{};0:;0:;0:;0:;\n1:b;0:;0:;0:;0:;0:;\n"
        "queries 1\n1:q;1:x;0:;0:;0:;\n"
        "ground_truth 1\n1:q;[2]1:a1:b;\n"
        "subqueries 0\nequivalents 0\n"
        "combinations 2\n1:q;[1]1:b;f;4602678819172646912;5:valid;0:;0:;-;-;\n1:q;[2]1:a1:b;t;-;5:valid;0:;0:;-;-;\n"
    )
    assert benchmark.content_hash == hashlib.sha256(text.encode()).hexdigest()


def test_blocks_do_not_change_the_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pl.DataFrame({"query_id": [f"q{i % 7}" for i in range(100)], "tool_ids": [[f"t{i}"] for i in range(100)]})
    whole = content_hash({"ground_truth": rows})
    monkeypatch.setattr(hashing, "_BLOCK_ROWS", 3)
    assert content_hash({"ground_truth": rows}) == whole


def test_frames_are_checked_like_files() -> None:
    with pytest.raises(BenchmarkError, match='combinations, row 1: unknown tool "z"'):
        _hash(combinations=[{"query_id": "q", "tool_ids": ["z"], "verdict": "valid"}])
