"""Which retrievers of a leaderboard cannot be told apart: groups anchored on their leaders (SCORING §4).

The best run leads the first group. It is tested against every run below it, Holm-adjusted over those tests; the group
ends before the first run that differs, and that run leads the next group. Neighbours in different groups may well be
close: a group says who cannot be told from its leader, nothing else. Groups are a property of the full table; a
filter on a page hides rows and moves no group.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.benchmark import Average
from pipeline.scoring.averages import average_of
from pipeline.scoring.holm import holm
from pipeline.scoring.randomization import FLIPS, SEED, compare_pairs, query_weights

#: Level of the tests.
ALPHA = 0.05

#: ``group`` counts from 1; ``difference`` is the leader's value minus the run's; ``p`` is of the test against the
#: leader and ``p_holm`` its adjusted value; all three are null for the leaders.
TIE_GROUPS = {
    "run_id": pl.String,
    "place": pl.Int32,
    "value": pl.Float64,
    "group": pl.Int32,
    "leader": pl.String,
    "difference": pl.Float64,
    "p": pl.Float64,
    "p_holm": pl.Float64,
}


def tie_groups(
    scores: Mapping[str, npt.NDArray[np.floating]],
    domain_of: npt.NDArray[np.integer],
    average: Average,
    *,
    alpha: float = ALPHA,
    flips: int = FLIPS,
    seed: int = SEED,
) -> pl.DataFrame:
    """Group all ranked runs of one figure of one board.

    Args:
        scores: run id → (queries,), the scores that the board ranks by; all ranked runs of one level, no others.
        domain_of: (queries,), domain of each query.
        average: what the board ranks by.
        alpha: a run differs from the leader when its adjusted p is at most this.
        flips: see ``compare_pairs``.
        seed: see ``compare_pairs``.

    Returns:
        One row a run, best first (equal means by run id), columns of ``TIE_GROUPS``.

    Raises:
        ValueError: scores do not fit the queries, or one is not finite.
    """
    if not scores:
        return pl.DataFrame(schema=TIE_GROUPS)
    weights = query_weights(domain_of, average)
    values = {run: average_of(np.asarray(row, dtype=np.float64), domain_of, average) for run, row in scores.items()}
    order = sorted(scores, key=lambda run: (-values[run], run))
    # One pass makes the sums of all runs; counting every pair then costs less than a second pass would.
    pairs = [(i, j) for i in range(len(order)) for j in range(i + 1, len(order))]
    tests = dict(
        zip(
            pairs,
            compare_pairs([scores[run] for run in order], pairs, weights, flips=flips, seed=seed),
            strict=True,
        )
    )
    rows: list[tuple[str, int, float, int, str, float | None, float | None, float | None]] = []
    leader, group = 0, 0
    while leader < len(order):
        group += 1
        below = range(leader + 1, len(order))
        adjusted = holm([tests[leader, other].p for other in below])
        rows.append((order[leader], leader + 1, values[order[leader]], group, order[leader], None, None, None))
        following = len(order)
        for other, p_holm in zip(below, adjusted, strict=True):
            if p_holm <= alpha:
                following = other
                break
            value = values[order[other]]
            difference = values[order[leader]] - value
            p = tests[leader, other].p
            rows.append((order[other], other + 1, value, group, order[leader], difference, p, p_holm))
        leader = following
    return pl.DataFrame(rows, schema=TIE_GROUPS, orient="row")
