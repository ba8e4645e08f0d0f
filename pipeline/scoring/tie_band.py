"""How far NDCG could move if tied tools came in another order.

The ranking rule orders ties by id, which says nothing about quality. The band runs from the worst to the best
NDCG over every order of every group of equal float32 scores.

One label: in a group, hits go last or first. The new metric's best order is the best over combinations of each
one's best order. Its worst order is a real search, because pushing one combination down can lift another:
tools in no combination go first (that lowers every combination at once), and the places left are filled by
branch and bound. The search is exact to 1e-12; where it would take too long the lower end is the best
combination's own worst order, which the true value cannot undercut, and the query is marked inexact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

from pipeline.run import Run
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.discounts import gains, ideal
from pipeline.scoring.kernel import Evaluation, bit_count, sort_ranks

#: Most different ways in which a query's combinations may involve tied tools, and most tied tools involved.
MOST_PATTERNS = 512
MOST_CONTESTED = 63

#: Pattern evaluations per query and cutoff before the guaranteed bound is taken instead.
MOST_STEPS = 50_000

#: Orders closer than this count as equal in the search.
TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class TieBand:
    """NDCG under the worst and the best order of tied tools; equal to the score where nothing is tied.

    Attributes:
        old_low: float64 (cutoffs, queries); ``old_high``, ``new_low``, ``new_high`` likewise.
        exact: bool (cutoffs, queries), False where ``new_low`` is a bound that may lie below the worst order.
    """

    old_low: npt.NDArray[np.float64]
    old_high: npt.NDArray[np.float64]
    new_low: npt.NDArray[np.float64]
    new_high: npt.NDArray[np.float64]
    exact: npt.NDArray[np.bool_]


def tie_band(
    compiled: CompiledBenchmark,
    run: Run,
    cutoffs: tuple[int, ...],
    evaluation: Evaluation,
    ties: npt.NDArray[np.int32],
) -> TieBand:
    """The band of every query at ascending ``cutoffs``.

    Args:
        compiled: the labels.
        run: the ranked run.
        cutoffs: ascending.
        evaluation: its scores at the same cutoffs.
        ties: int32 (cutoffs, queries), tied tools inside each cutoff; queries without any are not looked at.
    """
    old, new = evaluation.old[0], evaluation.new[0]
    band = TieBand(old.copy(), old.copy(), new.copy(), new.copy(), np.ones(old.shape, dtype=np.bool_))
    if ties.any():
        _bands(
            run.offsets,
            run.tools,
            run.scores,
            len(compiled.tools),
            compiled.local_offsets,
            compiled.local_tools,
            compiled.block_offsets,
            compiled.block_sizes,
            compiled.block_members,
            compiled.members,
            np.array(cutoffs, dtype=np.int64),
            gains(),
            ideal(),
            ties,
            band.old_low,
            band.old_high,
            band.new_low,
            band.new_high,
            band.exact,
        )
    return band


@numba.njit(cache=True, nogil=True)
def _bands(  # type: ignore[no-untyped-def]
    run_offsets,
    run_tools,
    run_scores,
    tools,
    local_offsets,
    local_tools,
    block_offsets,
    block_sizes,
    block_members,
    members,
    depths,
    gain,
    ideal_sum,
    ties,
    old_low,
    old_high,
    new_low,
    new_high,
    exact,
):
    cutoffs = len(depths)
    rank_of = np.zeros(tools, dtype=np.int32)
    widest, largest, longest = 1, 1, 1
    for q in range(len(local_offsets) - 1):
        widest = max(widest, local_offsets[q + 1] - local_offsets[q])
        longest = max(longest, run_offsets[q + 1] - run_offsets[q])
    for block in range(len(block_sizes)):
        largest = max(largest, block_sizes[block])
    local_rank = np.zeros(widest, dtype=np.int64)
    ranks = np.empty(largest, dtype=np.int64)
    group_start = np.empty(longest, dtype=np.int64)
    group_end = np.empty(longest, dtype=np.int64)
    for q in range(len(run_offsets) - 1):
        if ties[cutoffs - 1, q] == 0:
            continue
        start = run_offsets[q]
        depth = run_offsets[q + 1] - start
        limit = 0
        while limit < depth and limit < depths[cutoffs - 1]:
            end = limit + 1
            while end < depth and run_scores[start + end] == run_scores[start + limit]:
                end += 1
            group_start[limit:end] = limit
            group_end[limit:end] = end
            limit = end
        for r in range(limit):
            rank_of[run_tools[start + r]] = r + 1
        first_local = local_offsets[q]
        for u in range(local_offsets[q + 1] - first_local):
            local_rank[u] = rank_of[local_tools[first_local + u]]
        for r in range(limit):
            rank_of[run_tools[start + r]] = 0

        attained = new_low[:, q].copy()
        new_low[:, q] = 0.0
        new_high[:, q] = 0.0
        first = True
        for block in range(block_offsets[q], block_offsets[q + 1]):
            size = block_sizes[block]
            for place in range(block_members[block], block_members[block + 1], size):
                found = 0
                for i in range(size):
                    rank = local_rank[members[place + i]]
                    if rank > 0:
                        ranks[found] = rank - 1
                        found += 1
                sort_ranks(ranks, found)
                for j in range(cutoffs):
                    best = ideal_sum[min(size, depths[j])]
                    low = _extreme(ranks, found, group_start, group_end, depths[j], gain, False) / best
                    high = _extreme(ranks, found, group_start, group_end, depths[j], gain, True) / best
                    if first:
                        old_low[j, q] = low
                        old_high[j, q] = high
                    new_low[j, q] = max(new_low[j, q], low)
                    new_high[j, q] = max(new_high[j, q], high)
                first = False
        for j in range(cutoffs):
            # Where the best worst order of one combination is already reached, no search is needed.
            if attained[j] > new_low[j, q] + TOLERANCE:
                found_low, found_exact = _lowest(
                    block_offsets[q],
                    block_offsets[q + 1],
                    block_sizes,
                    block_members,
                    members,
                    local_rank,
                    local_offsets[q + 1] - first_local,
                    group_start,
                    group_end,
                    depths[j],
                    gain,
                    ideal_sum,
                    new_low[j, q],
                    attained[j],
                )
                new_low[j, q] = found_low
                exact[j, q] = found_exact


@numba.njit(cache=True, nogil=True)
def _extreme(ranks, found, group_start, group_end, depth, gain, best):  # type: ignore[no-untyped-def]
    """DCG of sorted 0-based ``ranks[:found]`` with the hits of every tie group first, or last."""
    total = 0.0
    i = 0
    while i < found:
        begin, end = group_start[ranks[i]], group_end[ranks[i]]
        after = i
        while after < found and ranks[after] < end:
            after += 1
        place = begin if best else end - (after - i)
        for position in range(place, min(place + after - i, depth)):
            total += gain[position]
        i = after
    return total


@numba.njit(cache=True, nogil=True)
def _lowest(  # type: ignore[no-untyped-def]
    first_block,
    last_block,
    block_sizes,
    block_members,
    members,
    local_rank,
    locals_here,
    group_start,
    group_end,
    depth,
    gain,
    ideal_sum,
    bound,
    attained,
):
    """Smallest value, over all orders of ties, of the best NDCG over combinations; and whether it is exact.

    A contested tool belongs to a combination and is tied. The contested tools of a group take its last places; the
    search decides which of them takes which place, from the top.
    """
    # Contested tools, by rank, so that each group's are neighbours.
    contested = 0
    contested_rank = np.empty(MOST_CONTESTED, dtype=np.int64)
    for u in range(locals_here):
        rank = local_rank[u] - 1
        if rank >= 0 and group_end[rank] - group_start[rank] > 1 and group_start[rank] < depth:
            if contested == MOST_CONTESTED:
                return bound, False
            contested_rank[contested] = rank
            contested += 1
    sort_ranks(contested_rank, contested)
    bit_of = np.full(locals_here, -1, dtype=np.int64)
    for u in range(locals_here):
        rank = local_rank[u] - 1
        if rank >= 0:
            for c in range(contested):
                if contested_rank[c] == rank:
                    bit_of[u] = c
    groups = 0
    group_first = np.empty(contested + 1, dtype=np.int64)
    group_bits = np.zeros(contested, dtype=np.uint64)
    slot_place = np.empty(contested, dtype=np.int64)
    slot_group = np.empty(contested, dtype=np.int64)
    slots = 0
    c = 0
    while c < contested:
        end = group_end[contested_rank[c]]
        after = c
        while after < contested and contested_rank[after] < end:
            group_bits[groups] |= np.uint64(1) << np.uint64(after)
            after += 1
        group_first[groups] = c
        for place in range(end - (after - c), min(end, depth)):
            slot_place[slots] = place
            slot_group[slots] = groups
            slots += 1
        groups += 1
        c = after
    group_first[groups] = contested
    # suffix[g, h]: DCG of h hits on the last places of group g, the least that h of its tools can gain.
    suffix = np.zeros((groups, contested + 1))
    for g in range(groups):
        end = group_end[contested_rank[group_first[g]]]
        for h in range(1, group_first[g + 1] - group_first[g] + 1):
            place = end - h
            suffix[g, h] = suffix[g, h - 1] + (gain[place] if place < depth else 0.0)

    # Combinations that involve the same contested tools differ only in what is settled: the best one counts.
    patterns = 0
    pattern_bits = np.empty(MOST_PATTERNS, dtype=np.uint64)
    pattern_size = np.empty(MOST_PATTERNS, dtype=np.int64)
    sums = np.empty((slots + 1, MOST_PATTERNS))
    for block in range(first_block, last_block):
        size = block_sizes[block]
        for start in range(block_members[block], block_members[block + 1], size):
            bits = np.uint64(0)
            settled = 0.0
            for i in range(size):
                u = members[start + i]
                if bit_of[u] >= 0:
                    bits |= np.uint64(1) << np.uint64(bit_of[u])
                elif 0 < local_rank[u] <= depth:
                    settled += gain[local_rank[u] - 1]
            p = 0
            while p < patterns and not (pattern_bits[p] == bits and pattern_size[p] == size):
                p += 1
            if p == MOST_PATTERNS:
                return bound, False
            if p == patterns:
                pattern_bits[p] = bits
                pattern_size[p] = size
                sums[0, p] = settled
                patterns += 1
            else:
                sums[0, p] = max(sums[0, p], settled)
    # Tools of one group that the same patterns hold are interchangeable.
    kind = np.arange(contested)
    for g in range(groups):
        for b in range(group_first[g], group_first[g + 1]):
            for a in range(group_first[g], b):
                same = True
                for p in range(patterns):
                    if (pattern_bits[p] >> np.uint64(a)) & np.uint64(1) != (
                        pattern_bits[p] >> np.uint64(b)
                    ) & np.uint64(1):
                        same = False
                        break
                if same:
                    kind[b] = kind[a]
                    break

    best = attained
    steps = 0
    used = np.zeros(slots + 1, dtype=np.uint64)
    candidate = np.zeros(slots + 1, dtype=np.int64)
    s = 0
    if slots > 0:
        candidate[0] = group_first[slot_group[0]]
    else:
        return bound, True
    while s >= 0:
        g = slot_group[s]
        c = candidate[s]
        if c == group_first[g + 1]:
            s -= 1
            continue
        candidate[s] += 1
        if (used[s] >> np.uint64(c)) & np.uint64(1):
            continue
        repeated = False
        for a in range(group_first[g], c):
            if kind[a] == kind[c] and not (used[s] >> np.uint64(a)) & np.uint64(1):
                repeated = True
                break
        if repeated:
            continue
        steps += patterns
        if steps > MOST_STEPS:
            return bound, False
        now_used = used[s] | (np.uint64(1) << np.uint64(c))
        worst = 0.0
        for p in range(patterns):
            total = sums[s, p]
            if (pattern_bits[p] >> np.uint64(c)) & np.uint64(1):
                total += gain[slot_place[s]]
            sums[s + 1, p] = total
            for later in range(g, groups):
                total += suffix[later, bit_count(pattern_bits[p] & group_bits[later] & ~now_used)]
            worst = max(worst, total / ideal_sum[min(pattern_size[p], depth)])
        if worst >= best - TOLERANCE:
            continue
        if s + 1 == slots:
            best = worst
            if best <= bound + TOLERANCE:
                return best, True
            continue
        s += 1
        used[s] = now_used
        candidate[s] = group_first[slot_group[s]]
    return best, True
