from __future__ import annotations

import pytest

from pipeline.scoring.benchmark_statistics import benchmark_statistics
from tests.pipeline.scoring.small_benchmarks import benchmark

LABELS = {
    "q1": ("web", "s", ["a", "b"], [["a", "c"], ["c", "a"], ["d", "c"]]),
    "q2": ("web", "s", ["a"], []),
    "q3": ("code", "s", ["b"], [["e"]]),
}


def equivalent(query: str, position: int, tool: str, verdict: str = "valid") -> dict[str, object]:
    return {"query_id": query, "position": position, "tool_id": tool, "verdict": verdict}


def test_counts_of_table_one_by_hand() -> None:
    rows = [
        equivalent("q1", 0, "a"),
        equivalent("q1", 0, "d"),
        equivalent("q1", 1, "c"),
        equivalent("q1", 1, "e", "invalid"),
        equivalent("q3", 0, "b"),
        equivalent("q3", 0, "e"),
        equivalent("q3", 0, "c"),
        equivalent("q2", 0, "c", "unsure"),
    ]
    subqueries = [{"query_id": "q1", "position": p, "text": "", "tool_id": t} for p, t in enumerate("ab")]
    bench = benchmark("abcde", LABELS, equivalents=rows, subqueries=subqueries, invalid=[("q2", ["c"])])
    overall, web, code = benchmark_statistics(bench).rows(named=True)
    assert overall == {
        "domain": None,
        "queries": 3,
        "tools_per_query": 4 / 3,
        "subqueries": 4,
        "verified_items": 8,
        "items_per_subquery": 2.0,
        "subqueries_with_equivalent": 0.75,
        "combinations": 6,
        "combinations_per_query": 2.0,
        "queries_with_alternative": pytest.approx(2 / 3),
    }
    assert (web["domain"], web["queries"], web["subqueries"], web["verified_items"]) == ("web", 2, 3, 5)
    assert (web["combinations"], web["queries_with_alternative"]) == (4, 0.5)
    assert (code["domain"], code["verified_items"], code["combinations"]) == ("code", 3, 2)


def test_what_was_never_annotated_is_unknown_rather_than_zero() -> None:
    labels = {"q1": ("web", "s", ["a", "b"], [])}
    (overall, _) = benchmark_statistics(benchmark("ab", labels)).rows(named=True)
    assert (overall["queries"], overall["tools_per_query"], overall["subqueries"]) == (1, 2.0, 2)
    for name in ("verified_items", "items_per_subquery", "subqueries_with_equivalent"):
        assert overall[name] is None
    for name in ("combinations", "combinations_per_query", "queries_with_alternative"):
        assert overall[name] is None
