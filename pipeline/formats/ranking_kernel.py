"""The compiled ranking of rows: group by query, find repeats, judge ranks against scores, sort.

The ranking rule (SCORING §2): float32 score descending, ties by tool id bytes descending. Tool positions are in
byte order, so a larger position wins a tie.
"""

from __future__ import annotations

import numba
import numpy as np

#: Places in the figures that ``rank_queries`` fills, one row a query.
(
    TIED_ROWS,
    ALL_TIED,
    DISAGREES,
    RISES,
    RANKS_DIFFER,
    RANK_LOW,
    RANK_HIGH,
    RANKS_REPEAT,
    WORSE_ROW,
    BETTER_ROW,
    REPEATS,
) = range(11)
FIGURES = 11


@numba.njit(cache=True, nogil=True)
def group_by_query(query, queries):  # type: ignore[no-untyped-def]
    """Stable counting sort.

    Returns:
        (offsets, order): rows of query q are ``order[offsets[q]:offsets[q + 1]]``, in file order.
    """
    offsets = np.zeros(queries + 1, dtype=np.int64)
    for i in range(len(query)):
        offsets[query[i] + 1] += 1
    for q in range(queries):
        offsets[q + 1] += offsets[q]
    place = offsets[:-1].copy()
    order = np.empty(len(query), dtype=np.int32)
    for i in range(len(query)):
        order[place[query[i]]] = i
        place[query[i]] += 1
    return offsets, order


@numba.njit(cache=True, nogil=True)
def repeated_rows(offsets, order, tool, tools, first_of):  # type: ignore[no-untyped-def]
    """Rows whose (query, tool) occurred before.

    Args:
        first_of: int32 (capacity, 2); receives the earlier and the repeated row while there is room.

    Returns:
        How many there are.
    """
    seen_by = np.full(tools, -1, dtype=np.int32)
    seen_at = np.empty(tools, dtype=np.int32)
    count = 0
    for q in range(len(offsets) - 1):
        for i in range(offsets[q], offsets[q + 1]):
            row = order[i]
            t = tool[row]
            if seen_by[t] == q:
                if count < len(first_of):
                    first_of[count, 0] = seen_at[t]
                    first_of[count, 1] = row
                count += 1
            else:
                seen_by[t] = q
                seen_at[t] = row
    return count


@numba.njit(cache=True, nogil=True)
def _sort_key(score, tool):  # type: ignore[no-untyped-def]
    """An unsigned integer that is smaller for a better place: score descending, then position descending."""
    bits = np.int64(np.float32(score + np.float32(0)).view(np.int32))
    # Negative floats order backwards: fold them so that integer order is float order.
    if bits < 0:
        bits = np.int64(-2147483648) - bits
    return ((-bits) << np.int64(32)) - np.int64(tool)


@numba.njit(cache=True, nogil=True)
def rank_queries(offsets, order, tool, score, rank, has_rank, figures, out_tool, out_score):  # type: ignore[no-untyped-def]
    """Sort every query's rows and compare the file's ranks with its scores.

    Args:
        rank: int32, ignored unless ``has_rank``.
        figures: int64 (queries, FIGURES), filled.
        out_tool, out_score: ranked rows, in place of ``order``.
    """
    longest = 0
    for q in range(len(offsets) - 1):
        longest = max(longest, offsets[q + 1] - offsets[q])
    keys = np.empty(longest, dtype=np.int64)
    places = np.empty(longest, dtype=np.int64)
    for q in range(len(offsets) - 1):
        begin, end = offsets[q], offsets[q + 1]
        count = end - begin
        if count == 0:
            continue
        in_order = True
        for i in range(count):
            row = order[begin + i]
            keys[i] = _sort_key(score[row], tool[row])
            places[i] = row
            if i > 0 and keys[i] < keys[i - 1]:
                in_order = False
        if not in_order:
            by_key = np.argsort(keys[:count], kind="mergesort")
            for i in range(count):
                places[i] = order[begin + by_key[i]]
        tied = 0
        for i in range(count):
            row = places[i]
            out_tool[begin + i] = tool[row]
            out_score[begin + i] = score[row]
        for i in range(count):
            value = out_score[begin + i]
            if (i > 0 and out_score[begin + i - 1] == value) or (i + 1 < count and out_score[begin + i + 1] == value):
                tied += 1
        figures[q, TIED_ROWS] = tied
        figures[q, ALL_TIED] = 1 if count > 1 and out_score[begin] == out_score[end - 1] else 0
        if not has_rank:
            continue
        # Ranks of strictly better scores must never be worse: carry the worst rank of the score groups above.
        low = rank[places[0]]
        high = low
        worst_row = -1
        best_above = high
        rises = True
        group_start = 0
        for i in range(count + 1):
            if i < count:
                r = rank[places[i]]
                low = min(low, r)
                high = max(high, r)
            if i == count or out_score[begin + i] != out_score[begin + group_start]:
                for j in range(group_start, i):
                    row = places[j]
                    if worst_row >= 0:
                        if rank[row] < rank[worst_row] and figures[q, DISAGREES] == 0:
                            figures[q, DISAGREES] = 1
                            figures[q, WORSE_ROW] = worst_row
                            figures[q, BETTER_ROW] = row
                        if rank[row] >= best_above:
                            rises = False
                for j in range(group_start, i):
                    row = places[j]
                    if worst_row < 0 or rank[row] > rank[worst_row]:
                        best_above = rank[row] if worst_row < 0 else best_above
                        worst_row = row
                    best_above = min(best_above, rank[row])
                group_start = i
        figures[q, RANKS_DIFFER] = 1 if low != high else 0
        figures[q, RANK_LOW] = low
        figures[q, RANK_HIGH] = high
        # "Rises" needs at least two scores; better scores then have the worse ranks throughout.
        figures[q, RISES] = 1 if rises and out_score[begin] != out_score[end - 1] else 0
        for i in range(count):
            keys[i] = rank[order[begin + i]]
        ascending = True
        for i in range(1, count):
            if keys[i] <= keys[i - 1]:
                ascending = False
                break
        if not ascending:
            keys[:count].sort()
            for i in range(1, count):
                if keys[i] == keys[i - 1]:
                    figures[q, RANKS_REPEAT] = 1
                    break


@numba.njit(cache=True, nogil=True)
def truncate(offsets, tool, score, depth):  # type: ignore[no-untyped-def]
    """The first ``depth`` rows of every query, and how many queries were longer."""
    kept = np.zeros(len(offsets), dtype=np.int64)
    longer = 0
    for q in range(len(offsets) - 1):
        count = offsets[q + 1] - offsets[q]
        if count > depth:
            longer += 1
            count = depth
        kept[q + 1] = kept[q] + count
    out_tool = np.empty(kept[-1], dtype=np.int32)
    out_score = np.empty(kept[-1], dtype=np.float32)
    for q in range(len(offsets) - 1):
        for i in range(kept[q + 1] - kept[q]):
            out_tool[kept[q] + i] = tool[offsets[q] + i]
            out_score[kept[q] + i] = score[offsets[q] + i]
    return kept, out_tool, out_score, longer


@numba.njit(cache=True, nogil=True)
def truth_on_top(offsets, tool, truth_offsets, truth_tools, tools):  # type: ignore[no-untyped-def]
    """Whether every query with results begins with exactly its ground truth, in any order."""
    wanted = np.full(tools, -1, dtype=np.int32)
    for q in range(len(offsets) - 1):
        count = truth_offsets[q + 1] - truth_offsets[q]
        if offsets[q + 1] == offsets[q]:
            continue
        if offsets[q + 1] - offsets[q] < count:
            return False
        for i in range(truth_offsets[q], truth_offsets[q + 1]):
            wanted[truth_tools[i]] = q
        for i in range(count):
            if wanted[tool[offsets[q] + i]] != q:
                return False
    return True


@numba.njit(cache=True, nogil=True)
def half_precision(score):  # type: ignore[no-untyped-def]
    """(exact, fractions): whether every score is a float16 or every one a bfloat16, and how many are not whole."""
    float16 = True
    bfloat16 = True
    fractions = 0
    for i in range(len(score)):
        value = np.float32(score[i])
        bits = value.view(np.int32)
        if bits & 0xFFFF:
            bfloat16 = False
        if float16 and value != 0:
            # Eleven significant bits, and no bits below 2**-24.
            scaled = np.float64(value) * 16777216.0
            if bits & 0x1FFF or abs(value) > 65504 or scaled != np.floor(scaled):
                float16 = False
        if value != np.floor(value):
            fractions += 1
        if not float16 and not bfloat16:
            return False, fractions
    return True, fractions
