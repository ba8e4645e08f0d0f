"""Confidence intervals by the stratified paired bootstrap (SCORING §4).

Queries are drawn with replacement within their domain, the same draw for every score of a query, so that differences
between runs and between views are paired. Percentile intervals; a fixed seed gives the same interval on every machine,
since the random numbers are integers of our own counter-based generator and sums run in a fixed order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numba
import numpy as np
import numpy.typing as npt

from pipeline.benchmark import Average
from pipeline.scoring.averages import mean
from pipeline.scoring.illusion import NO_GAIN
from pipeline.scoring.random_words import STEP, mix, stream

FloatArray = npt.NDArray[np.float64]

RESAMPLES = 10_000
CONFIDENCE = 0.95
SEED = 20_260


@dataclass(frozen=True)
class Interval:
    """An estimate and its percentile interval.

    Attributes:
        value: the estimate on the queries themselves; None where it is undefined.
        low: lower end; None where the interval has no finite lower end.
        high: upper end; None where it has none.
        confidence: nominal coverage.
        undefined: share of resamples in which the quantity is undefined.
    """

    value: float | None
    low: float | None
    high: float | None
    confidence: float
    undefined: float = 0.0


@dataclass(frozen=True, eq=False)
class Resampled:
    """Means of several scores, on the queries themselves and on every resample.

    Attributes:
        estimate: float64 (scores,).
        samples: float64 (scores, resamples); column b is one draw of queries for all scores.
        domain_estimate: float64 (scores, domains).
        domain_samples: float64 (scores, domains, resamples).
    """

    estimate: FloatArray
    samples: FloatArray
    domain_estimate: FloatArray
    domain_samples: FloatArray


def resample_means(
    scores: Sequence[npt.NDArray[np.floating]] | FloatArray,
    domain_of: npt.NDArray[np.integer],
    average: Average,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Resampled:
    """Bootstrap the means of paired per-query scores.

    Args:
        scores: (scores, queries); each row is one score of every query, as a metric of one run and view.
        domain_of: (queries,), domain of each query, numbered from 0; the strata.
        average: macro weighs domains equally, micro queries.
        resamples: draws.
        seed: of the draws.

    Raises:
        ValueError: shapes do not fit, there is no query, or a score is not finite.
    """
    values = np.ascontiguousarray(np.asarray(scores, dtype=np.float64).T)
    domains = np.asarray(domain_of, dtype=np.int64)
    if values.ndim != 2 or len(values) != len(domains) or len(values) == 0:
        raise ValueError(f"scores of shape {np.shape(scores)} do not fit {len(domains)} queries")
    if not np.isfinite(values).all():
        raise ValueError("a score is not a finite number")
    order = np.argsort(domains, kind="stable")
    _, starts = np.unique(domains[order], return_index=True)
    bounds = np.append(starts, len(order)).astype(np.int64)
    sizes = np.diff(bounds).astype(np.float64)
    weights = np.full(len(sizes), 1 / len(sizes)) if average is Average.MACRO else sizes / sizes.sum()
    ordered = values[order]
    sums = np.empty((resamples, len(sizes), values.shape[1]))
    _resample(ordered, bounds, np.uint64(seed), sums)
    samples = np.ascontiguousarray((sums / sizes[None, :, None]).transpose(2, 1, 0))
    own = np.array(
        [[mean(column[a:b]) for a, b in pairwise(bounds.tolist())] for column in map(np.ndarray.tolist, ordered.T)]
    )
    return Resampled(_weighted(own, weights), _weighted(samples, weights), own, samples)


def _weighted(by_domain: FloatArray, weights: FloatArray) -> FloatArray:
    """Σ weight × mean over axis 1, domain after domain."""
    total = np.zeros_like(by_domain[:, 0])
    for domain, weight in enumerate(weights.tolist()):
        total += weight * by_domain[:, domain]
    return total


def percentile_interval(
    value: float | None, samples: npt.NDArray[np.floating], confidence: float = CONFIDENCE
) -> Interval:
    """The interval between the percentiles of ``samples``, linear between order statistics (as numpy and scipy).

    A resample in which the quantity is undefined (NaN) could be anything: it counts as −∞ for the lower end and +∞ for
    the upper. An end that falls on one is None.
    """
    undefined = np.isnan(samples)
    share = float(undefined.mean())
    tail = (1 - confidence) / 2
    low = _percentile(np.where(undefined, -np.inf, samples), tail)
    high = _percentile(np.where(undefined, np.inf, samples), 1 - tail)
    return Interval(value, low, high, confidence, share)


def _percentile(samples: FloatArray, share: float) -> float | None:
    ordered = np.sort(samples)
    place = share * (len(ordered) - 1)
    below = int(np.floor(place))
    above = min(below + 1, len(ordered) - 1)
    if not (np.isfinite(ordered[below]) and np.isfinite(ordered[above])):
        return None
    return float(ordered[below] + (place - below) * (ordered[above] - ordered[below]))


def mean_interval(
    scores: npt.NDArray[np.floating],
    domain_of: npt.NDArray[np.integer],
    average: Average,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    confidence: float = CONFIDENCE,
) -> Interval:
    """The interval of one metric's mean; see ``resample_means``."""
    found = resample_means([scores], domain_of, average, resamples=resamples, seed=seed)
    return percentile_interval(float(found.estimate[0]), found.samples[0], confidence)


def difference_interval(
    before: npt.NDArray[np.floating],
    after: npt.NDArray[np.floating],
    domain_of: npt.NDArray[np.integer],
    average: Average,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    confidence: float = CONFIDENCE,
) -> Interval:
    """The interval of a paired difference of means: a gain (two runs) or a lift (old and new of one run)."""
    found = resample_means([before, after], domain_of, average, resamples=resamples, seed=seed)
    value = float(found.estimate[1] - found.estimate[0])
    return percentile_interval(value, found.samples[1] - found.samples[0], confidence)


@dataclass(frozen=True)
class IllusionIntervals:
    """The intervals behind ``GainSplit``, all from the same draws.

    Attributes:
        gain_old: gain with one label a query.
        gain_new: gain with all valid combinations.
        artifact: gain_old − gain_new.
        share: 1 − gain_new / gain_old; undefined wherever gain_old ≤ 0, so its ends are None when the old gain is not
            clearly positive.
    """

    gain_old: Interval
    gain_new: Interval
    artifact: Interval
    share: Interval


def illusion_intervals(
    base_old: npt.NDArray[np.floating],
    base_new: npt.NDArray[np.floating],
    tuned_old: npt.NDArray[np.floating],
    tuned_new: npt.NDArray[np.floating],
    domain_of: npt.NDArray[np.integer],
    average: Average,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    confidence: float = CONFIDENCE,
) -> IllusionIntervals:
    """Gains of a fine-tuned retriever over its base and the illusion share (SCORING §3), with intervals.

    Args:
        base_old: (queries,), the base's metric against the one label.
        base_new: the base's metric over all valid combinations.
        tuned_old: the fine-tuned retriever's metric against the one label.
        tuned_new: the fine-tuned retriever's metric over all valid combinations.
        domain_of: see ``resample_means``.
        average: see ``resample_means``.
        resamples: draws.
        seed: of the draws.
        confidence: nominal coverage.
    """
    rows = [base_old, base_new, tuned_old, tuned_new]
    found = resample_means(rows, domain_of, average, resamples=resamples, seed=seed)
    return illusion_of(found.estimate, found.samples, confidence)


def illusion_of(estimate: FloatArray, samples: FloatArray, confidence: float = CONFIDENCE) -> IllusionIntervals:
    """The intervals behind a gain split, from means that were resampled together.

    Args:
        estimate: (4,), means of base old, base new, tuned old and tuned new.
        samples: (4, resamples), the same on every resample.
        confidence: nominal coverage.
    """
    old, new = samples[2] - samples[0], samples[3] - samples[1]
    old_value, new_value = float(estimate[2] - estimate[0]), float(estimate[3] - estimate[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(old > NO_GAIN, 1 - new / old, np.nan)
    return IllusionIntervals(
        gain_old=percentile_interval(old_value, old, confidence),
        gain_new=percentile_interval(new_value, new, confidence),
        artifact=percentile_interval(old_value - new_value, old - new, confidence),
        share=percentile_interval(1 - new_value / old_value if old_value > NO_GAIN else None, shares, confidence),
    )


@numba.njit(cache=True, nogil=True)
def _resample(values, bounds, seed, sums):  # type: ignore[no-untyped-def]
    """Sums of resampled rows: ``sums[b, d]`` over as many draws from domain d as it has queries."""
    resamples, domains, scores = sums.shape
    half = np.uint64(32)
    low = np.uint64(0xFFFFFFFF)
    total = np.empty(scores)
    for b in range(resamples):
        state = stream(seed, np.uint64(b))
        for d in range(domains):
            start, count = bounds[d], bounds[d + 1] - bounds[d]
            size = np.uint64(count)
            total[:] = 0.0
            i = 0
            while i < count:
                state += STEP
                word = mix(state)
                # Each half of 64 random bits draws one query, by multiplication instead of division.
                first = start + np.int64(((word & low) * size) >> half)
                for s in range(scores):
                    total[s] += values[first, s]
                i += 1
                if i < count:
                    second = start + np.int64(((word >> half) * size) >> half)
                    for s in range(scores):
                        total[s] += values[second, s]
                    i += 1
            for s in range(scores):
                sums[b, d, s] = total[s]
