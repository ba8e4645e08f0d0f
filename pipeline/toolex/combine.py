"""Stage 3, first half: combinations of verified tools in the order of reciprocal rank fusion, never all of them.

A combination picks one verified tool for each sub-query; its score is Σ 1 / (60 + rank). They are enumerated best
first with a heap whose entries grow with what is taken, not with the product: 20⁵ combinations cost no more than the
hundred that are kept. Equal scores go by the tools' ids, position by position, so that the order is the same
everywhere.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.retrieval.fusion import RRF_K
from pipeline.toolex.records import Combination
from pipeline.toolex.settings import RepeatedTool

#: Choices looked at for one query at most. Many choices can make one set, or none under ``drop``, when sub-queries
#: share their tools; what lies beyond counts as cut off.
MOST_CHOICES = 50_000


@dataclass(frozen=True, slots=True)
class RankedTool:
    """A verified tool of a sub-query with the rank it counts with, from 1."""

    tool_id: str
    rank: int


@dataclass(frozen=True, slots=True)
class Combinations:
    """What is to be audited for one query.

    Attributes:
        truth: C* with its score.
        candidates: distinct sets other than C*, best first, at most the cap.
        truncated: whether there are, or may be, more.
        product: how many choices there are: the product of the sizes.
    """

    truth: Combination
    candidates: tuple[Combination, ...]
    truncated: bool
    product: int


def best_first(lists: Sequence[Sequence[RankedTool]], k: int = RRF_K) -> Iterator[tuple[float, tuple[str, ...]]]:
    """Every choice of one tool a list, by score descending, then by ids ascending; (score, ids), lazily.

    Args:
        lists: the verified tools of each sub-query, in any order.
        k: damps the first ranks.
    """
    shares = [
        sorted(((1.0 / (k + tool.rank), tool.tool_id) for tool in tools), key=lambda item: (-item[0], item[1]))
        for tools in lists
    ]
    if not shares or not all(shares):
        return

    def entry(places: tuple[int, ...], last: int) -> tuple[float, tuple[str, ...], tuple[int, ...], int]:
        chosen = [options[place] for options, place in zip(shares, places, strict=True)]
        # Summed exactly and rounded once: equal ranks in another order give equal scores.
        return -math.fsum(share for share, _ in chosen), tuple(tool for _, tool in chosen), places, last

    heap = [entry((0,) * len(shares), 0)]
    while heap:
        negative, ids, places, last = heapq.heappop(heap)
        yield -negative, ids
        # Each choice has one predecessor (its last raised place lowered by one), which is never after it.
        for position in range(last, len(shares)):
            if places[position] + 1 < len(shares[position]):
                raised = (*places[:position], places[position] + 1, *places[position + 1 :])
                heapq.heappush(heap, entry(raised, position))


def combine(
    lists: Sequence[Sequence[RankedTool]],
    truth: Sequence[RankedTool],
    *,
    cap: int,
    repeated_tool: RepeatedTool = RepeatedTool.DROP,
    k: int = RRF_K,
) -> Combinations:
    """The combinations of one query.

    Args:
        lists: the verified tools of each sub-query, ground-truth tools among them.
        truth: the ground-truth tool of each sub-query.
        cap: distinct sets kept besides C*.
        repeated_tool: what becomes of a choice that takes one tool twice.
        k: damps the first ranks.
    """
    own = Combination(tuple(tool.tool_id for tool in truth), math.fsum(1.0 / (k + tool.rank) for tool in truth))
    seen = {frozenset(own.tool_ids)}
    kept: list[Combination] = []
    truncated = False
    for looked_at, (score, ids) in enumerate(best_first(lists, k)):
        if looked_at >= MOST_CHOICES:
            truncated = True
            break
        members = frozenset(ids)
        if members in seen or (len(members) < len(ids) and repeated_tool is RepeatedTool.DROP):
            continue
        if len(kept) >= cap:
            truncated = True
            break
        seen.add(members)
        kept.append(Combination(tuple(dict.fromkeys(ids)), score))
    return Combinations(own, tuple(kept), truncated, math.prod(len(tools) for tools in lists))


def can_serve(tools: Sequence[str], lists: Sequence[frozenset[str]]) -> bool:
    """Whether a set is a choice of one tool a list that leaves none of its tools out (a tool may serve several lists).

    Args:
        tools: the set.
        lists: the verified tools of each sub-query.
    """
    chosen = frozenset(tools)
    options = [chosen & verified for verified in lists]
    if not all(options):
        return False
    # Every list is served; it remains to give each tool a list of its own (augmenting paths).
    owner: dict[int, str] = {}

    def place(tool: str, tried: set[int]) -> bool:
        for position, verified in enumerate(options):
            if tool in verified and position not in tried:
                tried.add(position)
                if position not in owner or place(owner[position], tried):
                    owner[position] = tool
                    return True
        return False

    return all(place(tool, set()) for tool in sorted(chosen))
