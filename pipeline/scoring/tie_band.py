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
from pipeline.scoring.kernel import Evaluation, sort_ranks
from pipeline.scoring.tie_search import TOLERANCE, extreme, lowest


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
                    low = extreme(ranks, found, group_start, group_end, depths[j], gain, False) / best
                    high = extreme(ranks, found, group_start, group_end, depths[j], gain, True) / best
                    if first:
                        old_low[j, q] = low
                        old_high[j, q] = high
                    new_low[j, q] = max(new_low[j, q], low)
                    new_high[j, q] = max(new_high[j, q], high)
                first = False
        for j in range(cutoffs):
            # Where the best worst order of one combination is already reached, no search is needed.
            if attained[j] > new_low[j, q] + TOLERANCE:
                found_low, found_exact = lowest(
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
