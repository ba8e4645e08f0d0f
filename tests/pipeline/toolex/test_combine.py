"""Combinations in the order of reciprocal rank fusion, against enumerating them all."""

from __future__ import annotations

import itertools
import math
import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.toolex.combine import RankedTool, best_first, can_serve, combine
from pipeline.toolex.settings import RepeatedTool

TOOLS = ["a", "b", "c", "d", "e", "ä", "z1", "z10", "z2"]


@st.composite
def ranked_lists(draw):
    """Up to four sub-queries with a few verified tools each; ranks may repeat, within a list and across lists."""
    return [
        [RankedTool(tool, draw(st.integers(1, 9))) for tool in tools]
        for tools in draw(
            st.lists(st.lists(st.sampled_from(TOOLS), min_size=1, max_size=5, unique=True), min_size=1, max_size=4)
        )
    ]


def brute_force(lists):
    choices = [
        (-math.fsum(1 / (60 + tool.rank) for tool in chosen), tuple(tool.tool_id for tool in chosen))
        for chosen in itertools.product(*lists)
    ]
    return [(-score, ids) for score, ids in sorted(choices)]


@given(ranked_lists())
@settings(max_examples=200, deadline=None)
def test_every_choice_comes_in_the_order_of_the_whole_product(lists):
    assert list(best_first(lists)) == brute_force(lists)


@given(ranked_lists(), st.integers(1, 12), st.sampled_from(list(RepeatedTool)))
@settings(max_examples=200, deadline=None)
def test_candidates_equal_those_of_the_whole_product(lists, cap, repeated):
    truth = [tools[0] for tools in lists]
    made = combine(lists, truth, cap=cap, repeated_tool=repeated)
    own = {tool.tool_id for tool in truth}
    expected: dict[frozenset[str], float] = {}
    for score, ids in brute_force(lists):
        if set(ids) == own or (repeated is RepeatedTool.DROP and len(set(ids)) < len(ids)):
            continue
        expected.setdefault(frozenset(ids), score)
    assert [(frozenset(c.tool_ids), c.score) for c in made.candidates] == list(expected.items())[:cap]
    assert all(len(set(c.tool_ids)) == len(c.tool_ids) for c in made.candidates)
    assert made.truncated == (len(expected) > cap)
    assert made.product == math.prod(map(len, lists))
    assert set(made.truth.tool_ids) == own


def test_twenty_to_the_fifth_takes_neither_a_second_nor_memory():
    lists = [[RankedTool(f"q{q}-t{rank}", rank) for rank in range(1, 21)] for q in range(5)]
    tracemalloc.start()
    start = time.perf_counter()
    made = combine(lists, [tools[7] for tools in lists], cap=100)
    elapsed = time.perf_counter() - start
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert made.product == 20**5 and made.truncated and len(made.candidates) == 100
    assert elapsed < 1 and peak < 100e6
    scores = [candidate.score for candidate in made.candidates]
    assert scores == sorted(scores, reverse=True) and scores[0] == pytest.approx(5 / 61)
    # The 100th of all 3.2 million: nothing outside scores more.
    best = sorted(math.fsum(1 / (60 + r) for r in ranks) for ranks in itertools.product(range(1, 9), repeat=5))
    assert scores == best[::-1][:100]


def test_sub_queries_that_share_all_their_tools_end_in_time():
    tools = [RankedTool(f"t{rank}", rank) for rank in range(1, 9)]
    start = time.perf_counter()
    made = combine([tools] * 8, tools, cap=100)
    assert time.perf_counter() - start < 5
    # All 8⁸ choices without a repeated tool are C* itself; the bound on choices says that more may have been left out.
    assert made.candidates == () and made.truncated


def test_the_ground_truth_is_exempt_even_if_it_ranks_last_or_was_not_retrieved():
    lists = [[RankedTool("x", 1), RankedTool("gold", 21)], [RankedTool("y", 1), RankedTool("fool", 21)]]
    made = combine(lists, [lists[0][1], lists[1][1]], cap=1)
    assert made.truth.tool_ids == ("gold", "fool") and made.truth.score == pytest.approx(2 / 81)
    assert [c.tool_ids for c in made.candidates] == [("x", "y")] and made.truncated


def test_a_repeated_tool_is_dropped_or_collapsed():
    lists = [[RankedTool("a", 1), RankedTool("b", 2)], [RankedTool("a", 1), RankedTool("c", 2)]]
    truth = [lists[0][1], lists[1][1]]
    dropped = combine(lists, truth, cap=10)
    assert [c.tool_ids for c in dropped.candidates] == [("a", "c"), ("b", "a")]
    collapsed = combine(lists, truth, cap=10, repeated_tool=RepeatedTool.COLLAPSE)
    assert [c.tool_ids for c in collapsed.candidates] == [("a",), ("a", "c"), ("b", "a")]


@given(
    st.lists(st.sets(st.sampled_from("abcde"), min_size=1), min_size=1, max_size=4), st.sets(st.sampled_from("abcdef"))
)
@settings(max_examples=300, deadline=None)
def test_serving_a_query_equals_membership_in_the_product(lists, chosen):
    product = {frozenset(choice) for choice in itertools.product(*lists)}
    assert can_serve(sorted(chosen), [frozenset(tools) for tools in lists]) == (frozenset(chosen) in product)
