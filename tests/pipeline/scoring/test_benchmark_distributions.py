from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.retrieval.document_tokens import count_tokens
from pipeline.scoring.benchmark_distributions import Spread, benchmark_distributions, quantile, spread_of
from tests.pipeline.scoring.small_benchmarks import benchmark

LABELS = {
    "q1": ("web", "s", ["a", "b"], [["a", "c"], ["c", "a"], ["d", "c"]]),
    "q2": ("web", "s", ["a"], []),
    "q3": ("code", "s", ["b"], [["e"]]),
}


def equivalent(query: str, position: int, tool: str, verdict: str = "valid") -> dict[str, object]:
    return {"query_id": query, "position": position, "tool_id": tool, "verdict": verdict}


def test_distributions_by_hand() -> None:
    rows = [
        equivalent("q1", 0, "a"), equivalent("q1", 0, "d"), equivalent("q1", 0, "e"),
        equivalent("q1", 1, "c", "unsure"), equivalent("q3", 0, "e"), equivalent("q3", 0, "c"),
    ]  # fmt: skip
    found = benchmark_distributions(benchmark("abcde", LABELS, equivalents=rows), [3, 0, 3, 7, 3])

    def counted(spread: Spread) -> dict[int, int]:
        return dict(spread_of(found, spread).select("value", "n").iter_rows())

    assert counted(Spread.TOOLS_PER_QUERY) == {1: 2, 2: 1}
    assert counted(Spread.COMBINATIONS) == {1: 1, 2: 1, 3: 1}
    # Needs: two of q1 (two beyond the label, none), one of q2 (none), one of q3 (two).
    assert counted(Spread.EQUIVALENTS) == {0: 2, 2: 2}
    assert counted(Spread.TOKENS) == {0: 1, 3: 3, 7: 1}
    assert spread_of(found, Spread.TOOL_SOURCES).rows() == [("", 0, 5)]


def test_what_was_never_annotated_has_no_distribution() -> None:
    found = benchmark_distributions(benchmark("ab", {"q": ("", "", ["a"], [])}), [1, 1])
    assert spread_of(found, Spread.COMBINATIONS).is_empty()
    assert spread_of(found, Spread.EQUIVALENTS).is_empty()


def test_there_is_a_length_for_every_tool() -> None:
    with pytest.raises(ValueError, match="1 lengths for 2 tools"):
        benchmark_distributions(benchmark("ab", {"q": ("", "", ["a"], [])}), [1])


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.sampled_from([0.1, 0.25, 0.5, 0.75, 0.9, 1.0]))
def test_quantiles_are_those_of_the_sorted_list(lengths: list[int], share: float) -> None:
    tools = [f"t{i}" for i in range(len(lengths))]
    found = benchmark_distributions(benchmark(tools, {"q": ("", "", ["t0"], [])}), lengths)
    expected = min(v for v in lengths if sum(n for w, n in Counter(lengths).items() if w <= v) >= share * len(lengths))
    assert quantile(spread_of(found, Spread.TOKENS), share) == expected


def test_tokens_are_counted_whole_and_in_order() -> None:
    assert count_tokens(["get weather", "", "get", "get weather"]).tolist() == [2, 0, 1, 2]
    assert count_tokens(["get " * 2000]).tolist() == [2000], "nothing is cut at the model's limit"
