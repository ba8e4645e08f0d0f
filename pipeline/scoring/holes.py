"""What unjudged tools could change: holes in the labels, and how far a run's figures depend on them.

A label set is never complete. Three readings beside the figure itself, which counts unjudged tools as wrong and so is
the lower bound: the condensed list (unjudged tools taken out before scoring, as by Sakai, SIGIR 2007), the upper
bound (every unjudged tool among the first K stands for a member that a combination lacks), and the judged share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.run import Run
from pipeline.scoring.averages import average_of, scopes
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.discounts import check_cutoffs, gains, ideal
from pipeline.scoring.kernel import METRICS, evaluate
from pipeline.scoring.membership import judged_rows

#: ``lower`` is the published figure; ``judged`` the share of judged tools among the first K of the scope's lists
#: (judged@K), null where nothing was retrieved.
HOLES = {
    "view": pl.String,
    "metric": pl.String,
    "k": pl.Int32,
    "average": pl.String,
    "domain": pl.String,
    "lower": pl.Float64,
    "condensed": pl.Float64,
    "upper": pl.Float64,
    "judged": pl.Float64,
    "n": pl.Int64,
}


@dataclass(frozen=True, eq=False)
class Holes:
    """Scores of every query under three readings of unjudged tools, at one cutoff.

    Attributes:
        lower: float64 (2, 3, queries), old and new, metrics as in ``METRICS``; unjudged tools are wrong.
        condensed: the same on the list without unjudged tools.
        upper: the same where each unjudged tool may stand for one missing member of the reference set.
        judged: int64 (queries,), judged tools among the first K.
        shown: int64 (queries,), tools among the first K.
    """

    lower: npt.NDArray[np.float64]
    condensed: npt.NDArray[np.float64]
    upper: npt.NDArray[np.float64]
    judged: npt.NDArray[np.int64]
    shown: npt.NDArray[np.int64]


def holes(compiled: CompiledBenchmark, run: Run, k: int = 10) -> Holes:
    """Score a run with its holes left, taken out and filled.

    Raises:
        ValueError: k is out of range.
    """
    (depth,) = check_cutoffs((k,))
    judged = judged_rows(compiled, run)
    plain = evaluate(compiled, run, (depth,))
    condensed = evaluate(compiled, without_rows(run, ~judged), (depth,))
    upper = np.zeros((2, len(METRICS), len(compiled.queries)))
    counts = np.zeros((2, len(compiled.queries)), dtype=np.int64)
    _fill_holes(
        run.offsets,
        run.tools,
        judged,
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
        upper,
        counts,
    )
    lower = np.stack([plain.old[:, 0], plain.new[:, 0]])
    return Holes(lower, np.stack([condensed.old[:, 0], condensed.new[:, 0]]), upper, counts[0], counts[1])


def hole_table(compiled: CompiledBenchmark, run: Run, k: int = 10) -> pl.DataFrame:
    """The averages of ``holes``: macro, micro and by domain; columns of ``HOLES``."""
    if len(compiled.queries) == 0:
        return pl.DataFrame(schema=HOLES)
    found = holes(compiled, run, k)
    rows = []
    for average, domain, weighing, chosen in scopes(compiled):
        shown = int(found.shown[chosen].sum())
        judged = int(found.judged[chosen].sum()) / shown if shown else None
        for v, view in enumerate(("old", "new")):
            for m, metric in enumerate(METRICS):
                values = [
                    average_of(reading[v, m][chosen], compiled.domain_of[chosen], weighing)
                    for reading in (found.lower, found.condensed, found.upper)
                ]
                rows.append((view, metric, k, average, domain, *values, judged, int(chosen.sum())))
    return pl.DataFrame(rows, schema=HOLES, orient="row")


def without_rows(run: Run, dropped: npt.NDArray[np.bool_]) -> Run:
    """The run without some of its rows; what follows moves up. It has no ranking hash of its own.

    Args:
        run: the run.
        dropped: bool (rows,).
    """
    kept = ~dropped
    before = np.zeros(len(kept) + 1, dtype=np.int64)
    np.cumsum(kept, out=before[1:])
    return Run(before[run.offsets], run.tools[kept], run.scores[kept], ranking_hash="")


@numba.njit(cache=True, nogil=True)
def _fill_holes(  # type: ignore[no-untyped-def]
    run_offsets,
    run_tools,
    judged,
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
    upper,
    counts,
):
    rank_of = np.zeros(tools, dtype=np.int16)
    widest = 1
    for q in range(len(local_offsets) - 1):
        widest = max(widest, local_offsets[q + 1] - local_offsets[q])
    local_rank = np.zeros(widest, dtype=np.int64)
    counted = np.zeros(depth, dtype=np.bool_)
    for q in range(len(run_offsets) - 1):
        start = run_offsets[q]
        shown = min(run_offsets[q + 1] - start, depth)
        for r in range(shown):
            rank_of[run_tools[start + r]] = r + 1
            counts[0, q] += judged[start + r]
        counts[1, q] = shown
        first_local = local_offsets[q]
        for u in range(local_offsets[q + 1] - first_local):
            local_rank[u] = rank_of[local_tools[first_local + u]]
        for r in range(shown):
            rank_of[run_tools[start + r]] = 0
        first = True
        for block in range(block_offsets[q], block_offsets[q + 1]):
            size = block_sizes[block]
            for place in range(block_members[block], block_members[block + 1], size):
                for r in range(shown):
                    counted[r] = not judged[start + r]
                for i in range(size):
                    rank = local_rank[members[place + i]]
                    if rank > 0:
                        counted[rank - 1] = True
                # A set of this size cannot count more than so many tools: the best placed ones.
                total = 0.0
                hits = 0
                for r in range(shown):
                    if counted[r] and hits < size:
                        total += gain[r]
                        hits += 1
                ndcg = total / ideal_sum[min(size, depth)]
                comp = 1.0 if hits == size else 0.0
                if first:
                    upper[0, 0, q] = ndcg
                    upper[0, 1, q] = hits / size
                    upper[0, 2, q] = comp
                    first = False
                upper[1, 0, q] = max(upper[1, 0, q], ndcg)
                upper[1, 1, q] = max(upper[1, 1, q], hits / size)
                upper[1, 2, q] = max(upper[1, 2, q], comp)
