"""Two versions of a small benchmark, and two boards, compared by hand."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from pipeline.scoring.board_moves import SAME_ROW, board_moves
from pipeline.scoring.version_changes import version_changes
from tests.pipeline.scoring.small_benchmarks import benchmark, frame

BEFORE = benchmark(
    "abcd",
    {
        "q1": ("web", "s", ["a", "b"], [["a", "c"]]),
        "q2": ("web", "s", ["a"], []),
        "q3": ("code", "s", ["b"], []),
        "q4": ("code", "s", ["d"], []),
    },
    equivalents=[{"query_id": "q1", "position": 1, "tool_id": "c", "verdict": "valid"}],
)
AFTER = benchmark(
    "abce",
    {
        "q1": ("web", "s", ["b", "a"], [["c", "a"], ["e", "c"]]),
        "q2": ("other", "s", ["a"], []),
        "q3": ("code", "s", ["c"], []),
        "q5": ("code", "s", ["e"], []),
    },
    equivalents=[
        {"query_id": "q1", "position": 1, "tool_id": "c", "verdict": "invalid"},
        {"query_id": "q1", "position": 0, "tool_id": "e", "verdict": "valid"},
    ],
)


def test_everything_that_moved_is_counted() -> None:
    after = replace(
        AFTER,
        tools=AFTER.tools.with_columns(
            documentation=pl.when(pl.col("tool_id") == "b").then(pl.lit("changed")).otherwise("documentation")
        ),
    )
    found = version_changes(BEFORE, after).counts
    assert {row[0]: row[1:] for row in found.rows()} == {
        # (before, after, added, removed, changed)
        "queries": (4, 4, 1, 1, 1),
        "tools": (4, 4, 1, 1, 1),
        "ground truth": (4, 4, 1, 1, 1),
        "sub-queries": (0, 0, 0, 0, 0),
        "equivalents": (1, 1, 1, 1, None),
        # {a,b} {a,c} {a} {b} {d} → {a,b} {a,c} {c,e} {a} {c} {e}
        "combinations": (5, 6, 3, 2, None),
    }


def test_each_query_says_what_moved() -> None:
    rows = {row.pop("query_id"): row for row in version_changes(BEFORE, AFTER).queries.to_dicts()}
    assert list(rows) == ["q1", "q2", "q3", "q4", "q5"]
    assert rows["q1"] == {
        "state": "same", "ground_truth_changed": False, "equivalents_added": 1, "equivalents_removed": 1,
        "combinations_added": 1, "combinations_removed": 0,
    }  # fmt: skip
    assert [rows[q]["state"] for q in ("q2", "q4", "q5")] == ["changed", "removed", "added"]
    assert (rows["q3"]["ground_truth_changed"], rows["q3"]["combinations_added"]) == (True, 1)
    assert (rows["q4"]["combinations_removed"], rows["q5"]["combinations_added"]) == (1, 1)


def test_nothing_moves_between_a_version_and_its_copy() -> None:
    shuffled = replace(BEFORE, **{t: getattr(BEFORE, t)[::-1] for t in ("tools", "queries", "combinations")})
    found = version_changes(BEFORE, shuffled)
    assert found.queries.is_empty()
    assert found.counts.select(pl.sum("added", "removed", "changed")).row(0) == (0, 0, 0)


def test_absent_text_is_empty_text() -> None:
    row = {"query_id": "q", "position": 0, "tool_id": "a"}
    one = benchmark("a", {"q": ("", "", ["a"], [])}, subqueries=[row])
    other = replace(one, subqueries=frame("subqueries", [row | {"text": ""}]))
    assert version_changes(one, other).queries.is_empty()


def board(**rows: tuple[float | None, float | None, str | None]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            dict.fromkeys(SAME_ROW, key)
            | {"level": "query", "place": None, "retriever": key.title(), "family": None, "run_id": f"{key}-run",
               "old": old, "new": new, "ranking_hash": ranking, "flags": ["partial"] if key == "part" else []}
            for key, (old, new, ranking) in rows.items()
        ],
        schema_overrides={
            "old": pl.Float64, "new": pl.Float64, "ranking_hash": pl.String, "place": pl.String,
            "flags": pl.List(pl.String),
        },
    )  # fmt: skip


def test_scores_and_ranks_that_moved() -> None:
    # Half a run is compared with nobody, whatever its figures are.
    part = (0.7, 0.75, "h6")
    before = board(part=part, a=(0.5, 0.6, "h1"), b=(0.4, 0.5, "h2"), gone=(0.9, 0.9, "h3"), c=(0.1, None, "h4"))
    after = board(part=part, b=(0.4, 0.8, "h2"), a=(0.5, 0.7, "other"), fresh=(0.1, 0.1, "h5"), c=(0.1, 0.9, "h4"))
    moved = board_moves(before, after)
    assert moved.select("retriever", "rank_before", "rank_after", "rank_change", "same_ranking").rows() == [
        ("B", 2, 1, 1, True),
        ("A", 1, 2, -1, False),
    ]
    assert moved.row(0, named=True)["new_after"] - moved.row(0, named=True)["new_before"] == pytest.approx(0.3)


def test_versions_without_new_figures_are_ranked_by_the_old_ones() -> None:
    moved = board_moves(board(a=(0.5, None, None), b=(0.6, None, None)), board(a=(0.5, 0.9, None), b=(0.6, 0.8, None)))
    assert moved.select("retriever", "rank_before", "rank_after", "same_ranking").rows() == [
        ("A", 2, 1, None),
        ("B", 1, 2, None),
    ]
