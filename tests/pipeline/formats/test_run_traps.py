"""Files that could be taken for another run than they hold, or that ask for far more memory than they have bytes."""

from __future__ import annotations

import io
import json
import resource
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.formats.limits import Limits
from pipeline.run import Verdict
from tests.pipeline.formats.run_targets import as_lists, messages, read, small_target


def written(columns: dict[str, Any], **options: Any) -> bytes:
    out = io.BytesIO()
    pl.DataFrame(columns).write_parquet(out, **options)
    return out.getvalue()


def line(**record: object) -> str:
    return json.dumps(record) + "\n"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (line(query_id="q1", ranked_ids=["t01", "t02"], score=[0.1, 0.9]), '"score"'),
        (line(query_id="q1", ranked_ids=["t01", "t02"], Similarity=[0.1, 0.9]), '"Similarity"'),
        (line(query_id="q1", ranked_ids=["t01"], tools=["t02"]), '"tools"'),
        (line(query_id="q1", qid="q2", ranked_ids=["t01"]), '"qid"'),
        (line(query_id="q1", results=[{"tool_id": "t01", "distance": 1}, {"tool_id": "t02", "distance": 0}]), "dist"),
        (line(query_id="q1", results=[{"tool_id": "t01", "rank": 2}, {"tool_id": "t02", "rank": 1}]), "ranks"),
    ],
)
def test_a_line_whose_order_may_be_elsewhere_is_refused(text: str, named: str) -> None:
    reading = read(text, small_target())
    assert reading.report.verdict is Verdict.REFUSE
    assert named in messages(reading)
    assert reading.report.problems[0].line == 1


def test_ranks_beside_items_in_their_order_are_fine() -> None:
    target = small_target()
    results = [{"tool_id": "t02", "rank": 1, "name": "x"}, {"tool_id": "t01", "rank": 2}]
    assert as_lists(read(line(query_id="q1", results=results), target), target) == {"q1": ["t02", "t01"]}


@pytest.mark.parametrize("inner", [{}, [], {"t03": 1}])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda query: query,
        lambda query: {"retrieval": {"test": query}},
        lambda query: {"mteb_model_meta": {"model_name": "m"}, "default": {"test": query}},
    ],
)
def test_an_object_in_the_place_of_a_score_is_never_dropped(wrap: Any, inner: object) -> None:
    for results in ({"t01": 1.0, "t02": inner}, {"t02": inner, "t01": 1.0}):
        reading = read(json.dumps(wrap({"q1": results})), small_target())
        assert reading.report.verdict is Verdict.REFUSE, results
        assert "t02" in messages(reading) or "depths" in messages(reading)


@pytest.mark.parametrize("rank", [2**64 - 1, 2**63])
def test_a_rank_that_no_number_of_ours_holds_is_refused(rank: int) -> None:
    ids = {"query_id": ["q1", "q1"], "tool_id": ["t01", "t02"]}
    reading = read(written({**ids, "rank": pl.Series([1, rank], dtype=pl.UInt64)}), small_target())
    assert str(rank) in messages(reading)
    reading = read(written({**ids, "rank": pl.Series([1, -(2**63)], dtype=pl.Int64)}), small_target())
    assert str(-(2**63)) in messages(reading)


def test_a_table_without_columns_is_refused() -> None:
    assert "no columns" in messages(read(written({}), small_target()))


@pytest.mark.parametrize("dictionary", [True, False])
def test_pages_that_would_fill_the_memory_are_refused_before_they_are_read(dictionary: bool) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    bomb = io.BytesIO()
    columns = {"query_id": ["q1"], "tool_id": ["x" * (64 << 20)], "score": [1.0]}
    pq.write_table(pa.table(columns), bomb, compression="zstd", use_dictionary=dictionary, write_statistics=False)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reading = read(bomb.getvalue(), small_target())
    assert "expands more than 100 times" in messages(reading)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10
    wide = Limits(expansion_ratio=1 << 40)
    assert "longer than 64 KiB" in messages(read(bomb.getvalue(), small_target(), limits=wide))
    small = Limits(expansion_ratio=1 << 40, expanded_bytes=1 << 20)
    assert "expands to more than 1 MiB" in messages(read(bomb.getvalue(), small_target(), limits=small))


def test_columns_that_are_not_read_and_many_row_groups_do_no_harm(tmp_path: Path) -> None:
    target = small_target()
    rows = {
        "notes": [["a" * (1 << 21)], ["b"]] * 6,
        "query_id": ["q1"] * 12,
        "tool_id": [f"t{i:02}" for i in range(1, 13)],
        "score": [float(i) for i in range(12)],
    }
    path = tmp_path / "run"
    for compression in ("zstd", "snappy", "uncompressed"):
        path.write_bytes(written(rows, row_group_size=5, compression=compression))
        assert as_lists(read(path.read_bytes(), target), target)["q1"] == [f"t{i:02}" for i in range(12, 0, -1)]
