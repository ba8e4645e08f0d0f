"""What else is worth knowing of each query: first ranks, equivalents found, unjudged tools, ties (SCORING §2)."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

from pipeline.run import Run
from pipeline.scoring.compiled import CompiledBenchmark


@dataclass(frozen=True, eq=False)
class QueryFacts:
    """Facts of every query, over its whole list or inside each cutoff.

    Attributes:
        retrieved: int32 (queries,), length of the list; 0 when the run does not answer the query.
        first_truth_rank: int32 (queries,), 1-based rank of the best-placed tool of C*; 0 when none was retrieved.
        best_equivalent_rank: int32 (queries,), the same for equivalents outside C*.
        equivalents_found: int32 (cutoffs, queries), distinct equivalents outside C* among the first K.
        subquery_equivalents_found: int32 (cutoffs, sub-queries), the same for each sub-query
            (``CompiledBenchmark.subquery_offsets``); a tool that serves two sub-queries counts for both.
        unjudged: int32 (cutoffs, queries), tools among the first K that nobody judged for this query: not in C*,
            never judged as an equivalent, in no combination of any verdict.
        ties: int32 (cutoffs, queries), tools among the first K whose float32 score another retrieved tool shares.
    """

    retrieved: npt.NDArray[np.int32]
    first_truth_rank: npt.NDArray[np.int32]
    best_equivalent_rank: npt.NDArray[np.int32]
    equivalents_found: npt.NDArray[np.int32]
    subquery_equivalents_found: npt.NDArray[np.int32]
    unjudged: npt.NDArray[np.int32]
    ties: npt.NDArray[np.int32]


def query_facts(compiled: CompiledBenchmark, run: Run, cutoffs: tuple[int, ...]) -> QueryFacts:
    """Facts of every query at ascending ``cutoffs``."""
    queries, subqueries = len(compiled.queries), int(compiled.subquery_offsets[-1])
    facts = QueryFacts(
        retrieved=np.diff(run.offsets).astype(np.int32),
        first_truth_rank=np.zeros(queries, dtype=np.int32),
        best_equivalent_rank=np.zeros(queries, dtype=np.int32),
        equivalents_found=np.zeros((len(cutoffs), queries), dtype=np.int32),
        subquery_equivalents_found=np.zeros((len(cutoffs), subqueries), dtype=np.int32),
        unjudged=np.zeros((len(cutoffs), queries), dtype=np.int32),
        ties=np.zeros((len(cutoffs), queries), dtype=np.int32),
    )
    _collect(
        run.offsets,
        run.tools,
        run.scores,
        len(compiled.tools),
        np.array(cutoffs, dtype=np.int64),
        compiled.truth_offsets,
        compiled.truth_tools,
        compiled.outside_offsets,
        compiled.outside_tools,
        compiled.judged_offsets,
        compiled.judged_tools,
        compiled.subquery_offsets,
        compiled.equivalent_offsets,
        compiled.equivalent_tools,
        facts.first_truth_rank,
        facts.best_equivalent_rank,
        facts.equivalents_found,
        facts.subquery_equivalents_found,
        facts.unjudged,
        facts.ties,
    )
    return facts


@numba.njit(cache=True, nogil=True)
def _best_rank(rank_of, tools, start, end):  # type: ignore[no-untyped-def]
    """Smallest rank of ``tools[start:end]``, 0 when none was retrieved."""
    best = 0
    for i in range(start, end):
        rank = rank_of[tools[i]]
        if rank > 0 and (best == 0 or rank < best):
            best = rank
    return best


@numba.njit(cache=True, nogil=True)
def _count_within(rank_of, tools, start, end, depths, counts, column):  # type: ignore[no-untyped-def]
    """Add to ``counts[:, column]`` how many of ``tools[start:end]`` stand within each depth."""
    for i in range(start, end):
        rank = rank_of[tools[i]]
        if rank > 0:
            for j in range(len(depths)):
                if rank <= depths[j]:
                    counts[j, column] += 1


@numba.njit(cache=True, nogil=True)
def _collect(  # type: ignore[no-untyped-def]
    run_offsets,
    run_tools,
    run_scores,
    tools,
    depths,
    truth_offsets,
    truth_tools,
    outside_offsets,
    outside_tools,
    judged_offsets,
    judged_tools,
    subquery_offsets,
    equivalent_offsets,
    equivalent_tools,
    first_truth_rank,
    best_equivalent_rank,
    equivalents_found,
    subquery_equivalents_found,
    unjudged,
    ties,
):
    rank_of = np.zeros(tools, dtype=np.int32)
    deepest = depths[len(depths) - 1]
    for q in range(len(run_offsets) - 1):
        start = run_offsets[q]
        depth = run_offsets[q + 1] - start
        if depth == 0:
            continue
        for r in range(depth):
            rank_of[run_tools[start + r]] = r + 1
        first_truth_rank[q] = _best_rank(rank_of, truth_tools, truth_offsets[q], truth_offsets[q + 1])
        best_equivalent_rank[q] = _best_rank(rank_of, outside_tools, outside_offsets[q], outside_offsets[q + 1])
        _count_within(rank_of, outside_tools, outside_offsets[q], outside_offsets[q + 1], depths, equivalents_found, q)
        _count_within(rank_of, judged_tools, judged_offsets[q], judged_offsets[q + 1], depths, unjudged, q)
        for j in range(len(depths)):
            unjudged[j, q] = min(depth, depths[j]) - unjudged[j, q]
        for s in range(subquery_offsets[q], subquery_offsets[q + 1]):
            _count_within(
                rank_of,
                equivalent_tools,
                equivalent_offsets[s],
                equivalent_offsets[s + 1],
                depths,
                subquery_equivalents_found,
                s,
            )
        for r in range(min(depth, deepest)):
            score = run_scores[start + r]
            before = r > 0 and run_scores[start + r - 1] == score
            after = r + 1 < depth and run_scores[start + r + 1] == score
            if before or after:
                for j in range(len(depths)):
                    if r < depths[j]:
                        ties[j, q] += 1
        for r in range(depth):
            rank_of[run_tools[start + r]] = 0
