"""The stratified paired bootstrap against scipy, plain sums and itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import bootstrap

from pipeline.benchmark import Average
from pipeline.scoring.statistics import (
    difference_interval,
    illusion_intervals,
    mean_interval,
    percentile_interval,
    resample_means,
)


def plain_stratified(values: np.ndarray, domains: np.ndarray, average: Average, draws: int) -> np.ndarray:
    """Means of resamples by numpy's generator."""
    rng = np.random.default_rng(11)
    means, sizes = [], []
    for domain in np.unique(domains):
        group = values[domains == domain]
        means.append(group[rng.integers(0, len(group), (draws, len(group)))].mean(axis=1))
        sizes.append(len(group))
    weights = np.full(len(sizes), 1 / len(sizes)) if average is Average.MACRO else np.array(sizes) / sum(sizes)
    drawn: np.ndarray = weights @ np.array(means)
    return drawn


def test_one_stratum_equals_scipys_percentile_interval():
    values = np.random.default_rng(1).random(25)
    ours = mean_interval(values, np.zeros(25, dtype=int), Average.MICRO, resamples=40_000)
    theirs = bootstrap((values,), np.mean, method="percentile", n_resamples=40_000, rng=np.random.default_rng(2))
    low, high = theirs.confidence_interval
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=0.004)
    assert ours.value == pytest.approx(values.mean())


@pytest.mark.parametrize("average", list(Average))
def test_strata_equal_a_plain_bootstrap(average: Average):
    rng = np.random.default_rng(3)
    domains = np.repeat([0, 1, 2], [30, 8, 5])
    rng.shuffle(domains)
    values = rng.random(43) + 0.5 * domains
    ours = resample_means([values], domains, average, resamples=40_000).samples[0]
    theirs = plain_stratified(values, domains, average, 40_000)
    assert ours.std() == pytest.approx(theirs.std(), rel=0.02)
    assert np.percentile(ours, [2.5, 50, 97.5]) == pytest.approx(np.percentile(theirs, [2.5, 50, 97.5]), abs=0.006)


def test_every_draw_of_a_domain_comes_from_it_and_all_queries_are_drawn():
    domains = np.array([0, 1, 1, 1])
    found = resample_means([[5.0, 1.0, 10.0, 100.0]], domains, Average.MICRO, resamples=3_000)
    assert (found.domain_samples[0, 0] == 5).all()
    sums = np.unique(np.round(found.domain_samples[0, 1] * 3).astype(int))
    assert len(sums) == 10 and sums.min() == 3 and sums.max() == 300


def test_draws_are_paired_between_scores():
    values = np.random.default_rng(4).random(30)
    domains = np.random.default_rng(5).integers(0, 2, 30)
    shifted = difference_interval(values, values + 0.125, domains, Average.MACRO, resamples=200)
    assert (shifted.low, shifted.value, shifted.high) == pytest.approx((0.125, 0.125, 0.125))


def test_the_same_seed_gives_the_same_interval_for_ever():
    values = np.random.default_rng(8).random(12)
    domains = np.arange(12) % 3
    found = mean_interval(values, domains, Average.MACRO, resamples=1_000, seed=1)
    assert found == mean_interval(values, domains, Average.MACRO, resamples=1_000, seed=1)
    assert found != mean_interval(values, domains, Average.MACRO, resamples=1_000, seed=2)


def test_percentiles_are_numpys_and_undefined_resamples_open_the_ends():
    samples = np.random.default_rng(6).random(777)
    found = percentile_interval(0.5, samples, 0.9)
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(samples, [5, 95])))
    half = np.where(np.arange(777) % 2 == 0, np.nan, samples)
    opened = percentile_interval(None, half)
    assert (opened.low, opened.high) == (None, None)
    assert opened.undefined == pytest.approx(0.5, abs=0.01)


def test_the_share_has_no_interval_where_the_old_gain_may_be_none():
    rng = np.random.default_rng(7)
    base, domains = rng.random(40), np.zeros(40, dtype=int)
    unclear = illusion_intervals(base, base, base + rng.normal(0.01, 0.3, 40), base, domains, Average.MICRO)
    assert (unclear.share.low, unclear.share.high) == (None, None)
    clear = illusion_intervals(base, base, base + 0.2, base + 0.1, domains, Average.MICRO)
    assert (clear.share.low, clear.share.value, clear.share.high) == pytest.approx((0.5, 0.5, 0.5))


def test_wrong_inputs_are_refused():
    with pytest.raises(ValueError, match="do not fit"):
        resample_means([[1.0, 2.0]], np.array([0]), Average.MICRO)
    with pytest.raises(ValueError, match="finite"):
        resample_means([[np.nan]], np.array([0]), Average.MICRO)
