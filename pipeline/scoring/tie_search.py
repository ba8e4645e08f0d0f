"""The orders of tied tools that give one list its lowest and highest NDCG (see ``tie_band``)."""

from __future__ import annotations

import numba
import numpy as np

from pipeline.scoring.kernel import bit_count, sort_ranks

#: Most different ways in which a query's combinations may involve tied tools, and most tied tools involved.
MOST_PATTERNS = 512
MOST_CONTESTED = 63

#: Pattern evaluations per query and cutoff before the guaranteed bound is taken instead.
MOST_STEPS = 50_000

#: Orders closer than this count as equal in the search.
TOLERANCE = 1e-12


@numba.njit(cache=True, nogil=True)
def extreme(ranks, found, group_start, group_end, depth, gain, best):  # type: ignore[no-untyped-def]
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
def lowest(  # type: ignore[no-untyped-def]
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
