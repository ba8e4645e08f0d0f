"""What the figures of one run would be if many valid combinations were put together in another way (SCORING §3).

The headline takes each metric's best combination. Beside it: the mean and the worst over combinations, all tools of
all combinations as one reference set (union qrels), and one combination for all three metrics at once.
"""

from __future__ import annotations

from enum import StrEnum

import numba
import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.run import Run
from pipeline.scoring.averages import average_of, scopes
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.discounts import check_cutoffs, gains, ideal
from pipeline.scoring.kernel import METRICS, sort_ranks


class Aggregation(StrEnum):
    """How the combinations of a query become one score; the order is that of ``aggregate``'s first axis.

    ``JOINT`` scores all metrics on the combination that is best by NDCG, then Recall, then Comp, then order.
    """

    MAX = "max"
    MEAN = "mean"
    MIN = "min"
    UNION = "union"
    JOINT = "joint"


#: Columns of ``aggregation_table``.
AGGREGATIONS = {
    "aggregation": pl.String,
    "metric": pl.String,
    "k": pl.Int32,
    "average": pl.String,
    "domain": pl.String,
    "value": pl.Float64,
    "n": pl.Int64,
}


def aggregate(compiled: CompiledBenchmark, run: Run, k: int = 10) -> npt.NDArray[np.float64]:
    """Every query's score under every aggregation; float64 (aggregations, metrics, queries).

    Raises:
        ValueError: k is out of range.
    """
    (depth,) = check_cutoffs((k,))
    out = np.zeros((len(Aggregation), len(METRICS), len(compiled.queries)))
    _aggregate(
        run.offsets,
        run.tools,
        len(compiled.tools),
        compiled.local_offsets,
        compiled.local_tools,
        compiled.block_offsets,
        compiled.block_sizes,
        compiled.block_members,
        compiled.members,
        depth,
        gains(),
        ideal(),
        out,
    )
    return out


def aggregation_table(compiled: CompiledBenchmark, run: Run, k: int = 10) -> pl.DataFrame:
    """The averages of ``aggregate``: macro, micro and by domain; columns of ``AGGREGATIONS``."""
    if len(compiled.queries) == 0:
        return pl.DataFrame(schema=AGGREGATIONS)
    scores = aggregate(compiled, run, k)
    rows = [
        (aggregation.value, metric, k, average, domain, average_of(values, compiled.domain_of[chosen], weighing), n)
        for a, aggregation in enumerate(Aggregation)
        for m, metric in enumerate(METRICS)
        for average, domain, weighing, chosen in scopes(compiled)
        for values in [scores[a, m][chosen]]
        for n in [len(values)]
    ]
    return pl.DataFrame(rows, schema=AGGREGATIONS, orient="row")


@numba.njit(cache=True, nogil=True)
def _aggregate(  # type: ignore[no-untyped-def]
    run_offsets,
    run_tools,
    tools,
    local_offsets,
    local_tools,
    block_offsets,
    block_sizes,
    block_members,
    members,
    depth,
    gain,
    ideal_sum,
    out,
):
    rank_of = np.zeros(tools, dtype=np.int16)
    widest = 1
    for q in range(len(local_offsets) - 1):
        widest = max(widest, local_offsets[q + 1] - local_offsets[q])
    local_rank = np.zeros(widest, dtype=np.int64)
    ranks = np.empty(widest, dtype=np.int64)
    scores = np.empty(3)
    joint = np.empty(3)
    for q in range(len(run_offsets) - 1):
        start = run_offsets[q]
        shown = min(run_offsets[q + 1] - start, depth)
        for r in range(shown):
            rank_of[run_tools[start + r]] = r + 1
        first_local = local_offsets[q]
        locals_here = local_offsets[q + 1] - first_local
        found = 0
        for u in range(locals_here):
            local_rank[u] = rank_of[local_tools[first_local + u]]
            if local_rank[u] > 0:
                ranks[found] = local_rank[u]
                found += 1
        for r in range(shown):
            rank_of[run_tools[start + r]] = 0
        _score(ranks, found, locals_here, depth, gain, ideal_sum, scores)
        out[3, :, q] = scores
        joint[:] = -1.0
        out[2, :, q] = 1.0
        combinations = 0
        for block in range(block_offsets[q], block_offsets[q + 1]):
            size = block_sizes[block]
            for place in range(block_members[block], block_members[block + 1], size):
                found = 0
                for i in range(size):
                    rank = local_rank[members[place + i]]
                    if rank > 0:
                        ranks[found] = rank
                        found += 1
                _score(ranks, found, size, depth, gain, ideal_sum, scores)
                combinations += 1
                for metric in range(3):
                    out[0, metric, q] = max(out[0, metric, q], scores[metric])
                    out[1, metric, q] += scores[metric]
                    out[2, metric, q] = min(out[2, metric, q], scores[metric])
                better = False
                for metric in range(3):
                    if scores[metric] != joint[metric]:
                        better = scores[metric] > joint[metric]
                        break
                if better:
                    joint[:] = scores
        out[1, :, q] /= combinations
        out[4, :, q] = joint


@numba.njit(cache=True, nogil=True)
def _score(ranks, found, size, depth, gain, ideal_sum, scores):  # type: ignore[no-untyped-def]
    """NDCG, Recall and Comp of a set of ``size`` tools with hits at ``ranks[:found]`` (unsorted, 1-based)."""
    sort_ranks(ranks, found)
    total = 0.0
    for i in range(found):
        total += gain[ranks[i] - 1]
    scores[0] = total / ideal_sum[min(size, depth)]
    scores[1] = found / size
    scores[2] = 1.0 if found == size else 0.0
