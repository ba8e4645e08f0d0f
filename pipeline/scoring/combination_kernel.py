"""Kernels of the compiler: canonical order, and combinations as distinct sets of local ids."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True, nogil=True, inline="always")
def _comes_first(a, b, item_offsets, items, rrf):  # type: ignore[no-untyped-def]
    """Whether row a stands before row b, or they are equal: RRF score descending, then ascending tools."""
    if rrf[a] != rrf[b]:
        return rrf[a] > rrf[b]
    i, j = item_offsets[a], item_offsets[b]
    while i < item_offsets[a + 1] and j < item_offsets[b + 1]:
        if items[i] != items[j]:
            return items[i] < items[j]
        i += 1
        j += 1
    return j < item_offsets[b + 1] or i == item_offsets[a + 1]


@numba.njit(cache=True, nogil=True)
def canonical_order(row_offsets, item_offsets, items, rrf):  # type: ignore[no-untyped-def]
    """Sort the tools of every row in place, and merge-sort the rows of every query."""
    for row in range(len(item_offsets) - 1):
        for i in range(item_offsets[row] + 1, item_offsets[row + 1]):
            item = items[i]
            k = i
            while k > item_offsets[row] and items[k - 1] > item:
                items[k] = items[k - 1]
                k -= 1
            items[k] = item
    order = np.arange(len(item_offsets) - 1)
    spare = order.copy()
    for q in range(len(row_offsets) - 1):
        first, last = row_offsets[q], row_offsets[q + 1]
        width = 1
        while width < last - first:
            for left in range(first, last, 2 * width):
                middle, right = min(left + width, last), min(left + 2 * width, last)
                i, j = left, middle
                for k in range(left, right):
                    if j == right or (i < middle and _comes_first(order[i], order[j], item_offsets, items, rrf)):
                        spare[k] = order[i]
                        i += 1
                    else:
                        spare[k] = order[j]
                        j += 1
            order[first:last] = spare[first:last]
            width *= 2
    return order


@numba.njit(cache=True, nogil=True)
def build_combinations(queries, tools, truth_offsets, truth_tools, row_offsets, item_offsets, items):  # type: ignore[no-untyped-def]
    """Local ids, deduplicated combinations (C* first) and blocks of equal size, query by query."""
    most_items = len(items) + len(truth_tools)
    most_rows = len(item_offsets) - 1 + queries
    local_offsets = np.zeros(queries + 1, dtype=np.int64)
    local_tools = np.empty(most_items, dtype=np.int32)
    block_offsets = np.zeros(queries + 1, dtype=np.int64)
    block_sizes = np.empty(most_rows, dtype=np.int32)
    block_members = np.zeros(most_rows + 1, dtype=np.int64)
    combination_offsets = np.zeros(queries + 1, dtype=np.int64)
    members = np.empty(most_items, dtype=np.uint32)
    held = np.zeros(queries, dtype=np.bool_)
    local_of = np.full(tools, -1, dtype=np.int64)
    most = 1
    for q in range(queries):
        most = max(most, row_offsets[q + 1] - row_offsets[q] + 1)
    capacity = 16
    while capacity < 2 * most:
        capacity *= 2
    slots = np.full(capacity, -1, dtype=np.int64)
    starts = np.empty(most + 1, dtype=np.int64)
    locals_made, blocks_made, members_made, combinations_made = 0, 0, 0, 0
    for q in range(queries):
        first_local = locals_made
        first_block = blocks_made
        rows = row_offsets[q + 1] - row_offsets[q]
        size = 16
        while size < 2 * (rows + 1):
            size *= 2
        slots[:size] = -1
        kept = 0
        for row in range(-1, rows):
            if row < 0:
                start, end, source = truth_offsets[q], truth_offsets[q + 1], truth_tools
            else:
                start, end, source = item_offsets[row_offsets[q] + row], item_offsets[row_offsets[q] + row + 1], items
            begin = members_made
            stop = begin
            for i in range(start, end):
                tool = source[i]
                if local_of[tool] < 0:
                    local_of[tool] = locals_made - first_local
                    local_tools[locals_made] = tool
                    locals_made += 1
                local = local_of[tool]
                # Insertion into ascending order, leaving out repeats: a combination is a set.
                place = stop
                while place > begin and members[place - 1] > local:
                    place -= 1
                if place > begin and members[place - 1] == local:
                    continue
                for k in range(stop, place, -1):
                    members[k] = members[k - 1]
                members[place] = local
                stop += 1
            key = np.uint64(14695981039346656037)
            for i in range(begin, stop):
                key = (key ^ np.uint64(members[i])) * np.uint64(1099511628211)
            key ^= key >> np.uint64(29)
            slot = np.int64(key & np.uint64(size - 1))
            repeated = False
            while slots[slot] >= 0:
                other = slots[slot]
                length = starts[other + 1] - starts[other]
                if length == stop - begin:
                    repeated = True
                    for i in range(length):
                        if members[starts[other] + i] != members[begin + i]:
                            repeated = False
                            break
                    if repeated:
                        if other == 0:
                            held[q] = True
                        break
                slot = (slot + 1) & (size - 1)
            if repeated:
                continue
            slots[slot] = kept
            starts[kept] = begin
            starts[kept + 1] = stop
            if blocks_made == first_block or block_sizes[blocks_made - 1] != stop - begin:
                block_sizes[blocks_made] = stop - begin
                blocks_made += 1
            block_members[blocks_made] = stop
            members_made = stop
            kept += 1
        for i in range(first_local, locals_made):
            local_of[local_tools[i]] = -1
        combinations_made += kept
        local_offsets[q + 1] = locals_made
        block_offsets[q + 1] = blocks_made
        combination_offsets[q + 1] = combinations_made
    return (
        local_offsets,
        local_tools[:locals_made].copy(),
        block_offsets,
        block_sizes[:blocks_made].copy(),
        block_members[: blocks_made + 1].copy(),
        combination_offsets,
        members[:members_made].copy(),
        held,
    )
