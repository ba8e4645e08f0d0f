"""The scoring kernels: three metrics at every cutoff, with one label and as the best over all combinations.

Cutoffs up to 64 go by bit masks: bit r of a tool's mask says that the run has it at 0-based rank r, and the OR
over a combination's members says which ranks it hits. Deeper cutoffs sort the ranks that a combination hits.
Both sum in rank order, so both are bit-identical with trec_eval.

The kernels release the GIL and start no threads of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

from pipeline.run import Run
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.discounts import gains, ideal, prefix_sums

#: Order of the first axis of every result.
METRICS = ("NDCG", "Recall", "Comp")

#: The deepest cutoff that fits a bit mask.
MASK_RANKS = 64

#: From this size on, sorting by library beats insertion.
INSERTION_LIMIT = 24


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores of every query.

    Attributes:
        old: float64 (3, cutoffs, queries), against C* alone; axis 0 as in ``METRICS``.
        new: float64 (3, cutoffs, queries), the best over the query's valid combinations, each metric for itself.
        winner: int32 (3, cutoffs, queries), the first combination that reaches ``new`` (0 is C*).
    """

    old: npt.NDArray[np.float64]
    new: npt.NDArray[np.float64]
    winner: npt.NDArray[np.int32]


def evaluate(compiled: CompiledBenchmark, run: Run, cutoffs: tuple[int, ...]) -> Evaluation:
    """Score a ranked run at ascending ``cutoffs``; a query without results scores 0."""
    shallow = sum(k <= MASK_RANKS for k in cutoffs)
    labels = (
        compiled.local_offsets,
        compiled.local_tools,
        compiled.block_offsets,
        compiled.block_sizes,
        compiled.block_members,
        compiled.members,
    )
    ranking = (run.offsets, run.tools, len(compiled.tools))
    parts = []
    if shallow:
        parts.append(_empty(cutoffs[:shallow], len(compiled.queries)))
        depths = np.array(cutoffs[:shallow], dtype=np.int64)
        out = (parts[-1].old, parts[-1].new, parts[-1].winner)
        _by_masks(*ranking, *labels, depths, gains(), ideal(), prefix_sums(), *out)
    if shallow < len(cutoffs):
        parts.append(_empty(cutoffs[shallow:], len(compiled.queries)))
        depths = np.array(cutoffs[shallow:], dtype=np.int64)
        out = (parts[-1].old, parts[-1].new, parts[-1].winner)
        _by_ranks(*ranking, *labels, depths, gains(), ideal(), *out)
    if len(parts) == 1:
        return parts[0]
    return Evaluation(
        old=np.concatenate([part.old for part in parts], axis=1),
        new=np.concatenate([part.new for part in parts], axis=1),
        winner=np.concatenate([part.winner for part in parts], axis=1),
    )


def _empty(cutoffs: tuple[int, ...], queries: int) -> Evaluation:
    shape = (len(METRICS), len(cutoffs), queries)
    return Evaluation(np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.int32))


@numba.njit(cache=True, nogil=True, inline="always")
def bit_count(word):  # type: ignore[no-untyped-def]
    """Number of set bits; LLVM makes one instruction of it."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@numba.njit(cache=True, nogil=True)
def _by_masks(  # type: ignore[no-untyped-def]
    run_offsets,
    run_tools,
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
    prefix,
    old,
    new,
    winner,
):
    cutoffs = len(depths)
    deepest = depths[cutoffs - 1]
    rank_of = np.zeros(tools, dtype=np.uint8)
    widest = 1
    for q in range(len(local_offsets) - 1):
        widest = max(widest, local_offsets[q + 1] - local_offsets[q])
    hit = np.zeros(widest, dtype=np.uint64)
    cut = np.empty(cutoffs, dtype=np.uint64)
    for j in range(cutoffs):
        cut[j] = ~np.uint64(0) >> np.uint64(64 - depths[j])
    best_sum = np.empty(cutoffs)
    best_hits = np.empty(cutoffs, dtype=np.int64)
    low = np.uint64(0xFFFF)
    for q in range(len(run_offsets) - 1):
        start = run_offsets[q]
        depth = min(run_offsets[q + 1] - start, deepest)
        if depth == 0:
            continue
        for r in range(depth):
            rank_of[run_tools[start + r]] = r + 1
        any_hit = False
        first_local = local_offsets[q]
        for u in range(local_offsets[q + 1] - first_local):
            rank = rank_of[local_tools[first_local + u]]
            if rank > 0:
                hit[u] = np.uint64(1) << np.uint64(rank - 1)
                any_hit = True
            else:
                hit[u] = 0
        for r in range(depth):
            rank_of[run_tools[start + r]] = 0
        if not any_hit:
            continue
        combination = 0
        for block in range(block_offsets[q], block_offsets[q + 1]):
            size = block_sizes[block]
            best_sum[:] = 0.0
            best_hits[:] = 0
            previous = np.uint64(0)
            for place in range(block_members[block], block_members[block + 1], size):
                mask = np.uint64(0)
                for i in range(size):
                    mask |= hit[members[place + i]]
                # A mask that has just been scored, or none at all, cannot beat what is there.
                if mask != previous:
                    previous = mask
                    for j in range(cutoffs):
                        seen = mask & cut[j]
                        total = prefix[seen & low]
                        rest = seen >> np.uint64(16)
                        rank = 16
                        while rest:
                            if rest & np.uint64(1):
                                total += gain[rank]
                            rest >>= np.uint64(1)
                            rank += 1
                        hits = bit_count(seen)
                        if total > best_sum[j]:
                            best_sum[j] = total
                            value = total / ideal_sum[min(size, depths[j])]
                            if value > new[0, j, q]:
                                new[0, j, q] = value
                                winner[0, j, q] = combination
                        if hits > best_hits[j]:
                            best_hits[j] = hits
                            value = hits / size
                            if value > new[1, j, q]:
                                new[1, j, q] = value
                                winner[1, j, q] = combination
                            if hits == size and new[2, j, q] == 0.0:
                                new[2, j, q] = 1.0
                                winner[2, j, q] = combination
                if combination == 0:
                    # C* comes first, so what stands here is its own score.
                    for metric in range(3):
                        for j in range(cutoffs):
                            old[metric, j, q] = new[metric, j, q]
                combination += 1


@numba.njit(cache=True, nogil=True)
def sort_ranks(ranks, count):  # type: ignore[no-untyped-def]
    """Sort ``ranks[:count]`` ascending in place."""
    if count > INSERTION_LIMIT:
        ranks[:count].sort()
        return
    for i in range(1, count):
        value = ranks[i]
        k = i
        while k > 0 and ranks[k - 1] > value:
            ranks[k] = ranks[k - 1]
            k -= 1
        ranks[k] = value


@numba.njit(cache=True, nogil=True)
def _by_ranks(  # type: ignore[no-untyped-def]
    run_offsets,
    run_tools,
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
    old,
    new,
    winner,
):
    cutoffs = len(depths)
    deepest = depths[cutoffs - 1]
    rank_of = np.zeros(tools, dtype=np.int16)
    widest, largest = 1, 1
    for q in range(len(local_offsets) - 1):
        widest = max(widest, local_offsets[q + 1] - local_offsets[q])
    for block in range(len(block_sizes)):
        largest = max(largest, block_sizes[block])
    local_rank = np.zeros(widest, dtype=np.int16)
    ranks = np.empty(largest, dtype=np.int64)
    for q in range(len(run_offsets) - 1):
        start = run_offsets[q]
        depth = min(run_offsets[q + 1] - start, deepest)
        for r in range(depth):
            rank_of[run_tools[start + r]] = r + 1
        any_hit = False
        first_local = local_offsets[q]
        for u in range(local_offsets[q + 1] - first_local):
            local_rank[u] = rank_of[local_tools[first_local + u]]
            any_hit = any_hit or local_rank[u] > 0
        for r in range(depth):
            rank_of[run_tools[start + r]] = 0
        if not any_hit:
            continue
        combination = 0
        for block in range(block_offsets[q], block_offsets[q + 1]):
            size = block_sizes[block]
            for place in range(block_members[block], block_members[block + 1], size):
                found = 0
                for i in range(size):
                    rank = local_rank[members[place + i]]
                    if rank > 0:
                        ranks[found] = rank
                        found += 1
                sort_ranks(ranks, found)
                total = 0.0
                hits = 0
                for j in range(cutoffs):
                    while hits < found and ranks[hits] <= depths[j]:
                        total += gain[ranks[hits] - 1]
                        hits += 1
                    value = total / ideal_sum[min(size, depths[j])]
                    if value > new[0, j, q]:
                        new[0, j, q] = value
                        winner[0, j, q] = combination
                    value = hits / size
                    if value > new[1, j, q]:
                        new[1, j, q] = value
                        winner[1, j, q] = combination
                    if hits == size and new[2, j, q] == 0.0:
                        new[2, j, q] = 1.0
                        winner[2, j, q] = combination
                if combination == 0:
                    for metric in range(3):
                        for j in range(cutoffs):
                            old[metric, j, q] = new[metric, j, q]
                combination += 1
