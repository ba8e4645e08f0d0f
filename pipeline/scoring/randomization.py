"""Two-sided sign-flip randomisation tests on paired per-query scores (SCORING §4).

Under the null hypothesis the two scores of a query may be exchanged, which flips the sign of their difference. The
statistic is the (weighted) mean difference; p = (1 + #{|S| ≥ |S_obs| − ε}) / (B + 1) over B random assignments of
signs. Where at most B assignments exist, all of them are looked at and p is their share: exact, as scipy's
``permutation_test(permutation_type="samples", n_resamples=inf)``. The same seed gives the same p on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.benchmark import Average
from pipeline.scoring.sign_flips import count_reaching

FloatArray = npt.NDArray[np.float64]

FLIPS = 100_000
SEED = 40_111

#: ε as a part of the sum of all weighted scores: sums that differ by rounding alone are equal.
TOLERANCE = 1e-12


@dataclass(frozen=True)
class FlipTest:
    """The outcome of one test.

    Attributes:
        difference: the weighted mean difference that was tested, second minus first, a fraction.
        p: two-sided p value; 1 when no query differs.
        flips: sign assignments looked at.
        exact: whether those were all there are, so that p is no estimate.
    """

    difference: float
    p: float
    flips: int
    exact: bool


def query_weights(domain_of: npt.NDArray[np.integer], average: Average) -> FloatArray:
    """The weight of each query in the mean, summing to 1: equal domains for macro, equal queries for micro.

    Args:
        domain_of: (queries,), domain of each query; domains without queries do not count.
        average: of the mean.

    Raises:
        ValueError: there is no query.
    """
    if len(domain_of) == 0:
        raise ValueError("there is no query to weigh")
    if average is Average.MICRO:
        return np.full(len(domain_of), 1 / len(domain_of))
    _, index, sizes = np.unique(domain_of, return_inverse=True, return_counts=True)
    weights: FloatArray = 1 / (len(sizes) * sizes[index])
    return weights


def compare_pairs(
    scores: Sequence[npt.NDArray[np.floating]] | FloatArray,
    pairs: Sequence[tuple[int, int | None]],
    weights: FloatArray,
    *,
    flips: int = FLIPS,
    seed: int = SEED,
) -> list[FlipTest]:
    """Test many differences at once; all share the same signs, so more pairs of the same scores cost little.

    Args:
        scores: (scores, queries).
        pairs: rows (first, second): the difference is second minus first; None tests a row that is itself a
            difference.
        weights: (queries,), see ``query_weights``.
        flips: B, at least 1.
        seed: of the signs.

    Raises:
        ValueError: shapes do not fit, or a score is not finite.
    """
    rows = np.atleast_2d(np.asarray(scores, dtype=np.float64))
    if rows.ndim != 2 or rows.shape[1] != len(weights):
        raise ValueError(f"scores of shape {rows.shape} do not fit the weights of {len(weights)} queries")
    if not np.isfinite(rows).all():
        raise ValueError("a score is not a finite number")
    if flips < 1:
        raise ValueError(f"{flips} flips are no test")
    weighted = rows * weights
    sizes = np.abs(weighted).sum(axis=1)
    totals = [math.fsum(row.tolist()) for row in weighted]
    outcomes: list[FlipTest | None] = [None] * len(pairs)
    sampled: list[int] = []
    bars: list[float] = []
    for i, (first, second) in enumerate(pairs):
        observed = totals[first] if second is None else totals[second] - totals[first]
        size = float(sizes[first] + (0 if second is None else sizes[second]))
        bar = abs(observed) - TOLERANCE * size
        differing = np.count_nonzero(rows[first] if second is None else rows[second] != rows[first])
        if differing < flips.bit_length():  # 2^differing ≤ flips
            differences = weighted[first] if second is None else (rows[second] - rows[first]) * weights
            sums = _all_sums(differences[differences != 0])
            p = float(np.count_nonzero(np.abs(sums) >= bar)) / len(sums)
            outcomes[i] = FlipTest(observed, p, len(sums), True)
        else:
            outcomes[i] = FlipTest(observed, math.nan, flips, False)
            sampled.append(i)
            bars.append(bar)
    if sampled:
        one = np.array([pairs[i][0] for i in sampled], dtype=np.int64)
        two = np.array([-1 if (other := pairs[i][1]) is None else other for i in sampled], dtype=np.int64)
        counts = count_reaching(weighted, one, two, np.array(bars), flips, seed)
        for i, count in zip(sampled, counts.tolist(), strict=True):
            found = outcomes[i]
            assert found is not None
            outcomes[i] = FlipTest(found.difference, (1 + count) / (flips + 1), flips, False)
    return [outcome for outcome in outcomes if outcome is not None]


def paired_test(
    before: npt.NDArray[np.floating],
    after: npt.NDArray[np.floating],
    domain_of: npt.NDArray[np.integer],
    average: Average,
    *,
    flips: int = FLIPS,
    seed: int = SEED,
) -> FlipTest:
    """Whether the mean of ``after`` differs from that of ``before``: two runs, or two views of one run.

    Raises:
        ValueError: see ``compare_pairs``.
    """
    weights = query_weights(domain_of, average)
    return compare_pairs([before, after], [(0, 1)], weights, flips=flips, seed=seed)[0]


def shrink_test(
    base_old: npt.NDArray[np.floating],
    base_new: npt.NDArray[np.floating],
    tuned_old: npt.NDArray[np.floating],
    tuned_new: npt.NDArray[np.floating],
    domain_of: npt.NDArray[np.integer],
    average: Average,
    *,
    flips: int = FLIPS,
    seed: int = SEED,
) -> FlipTest:
    """Whether the gain of a fine-tuned retriever over its base differs between old and new labels.

    The difference of differences (tuned_old − base_old) − (tuned_new − base_new), query by query; positive when the
    gain shrinks once every valid combination counts.

    Raises:
        ValueError: see ``compare_pairs``.
    """
    change = gain_change(base_old, base_new, tuned_old, tuned_new)
    weights = query_weights(domain_of, average)
    return compare_pairs([change], [(0, None)], weights, flips=flips, seed=seed)[0]


def gain_change(
    base_old: npt.NDArray[np.floating],
    base_new: npt.NDArray[np.floating],
    tuned_old: npt.NDArray[np.floating],
    tuned_new: npt.NDArray[np.floating],
) -> FloatArray:
    """Each query's old gain minus its new gain; float64 (queries,)."""
    change: FloatArray = (np.asarray(tuned_old, dtype=np.float64) - base_old) - (
        np.asarray(tuned_new, dtype=np.float64) - base_new
    )
    return change


def _all_sums(differences: FloatArray) -> FloatArray:
    """The sums under every assignment of signs; float64 (2^n,)."""
    sums = np.zeros(1)
    for difference in differences.tolist():
        sums = np.concatenate([sums - difference, sums + difference])
    return sums
