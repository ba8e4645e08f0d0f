from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import bootstrap

from pipeline.benchmark import Average
from pipeline.scoring.averages import mean
from pipeline.scoring.statistics import (
    difference_interval,
    illusion_intervals,
    mean_interval,
    percentile_interval,
    resample_means,
)


def scores(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random(count) ** 2


ONE = np.zeros(80, dtype=np.int32)


def test_the_interval_of_a_mean_is_scipys() -> None:
    values = scores(80, 0)
    found = mean_interval(values, ONE, Average.MICRO)
    peer = bootstrap((values,), np.mean, n_resamples=10_000, method="percentile", rng=1).confidence_interval
    assert found.value == mean(values.tolist())
    assert (found.low, found.high) == pytest.approx((peer.low, peer.high), abs=0.004)


def test_the_interval_of_a_gain_is_scipys_paired_one() -> None:
    before = scores(80, 1)
    after = before + 0.05 + 0.1 * scores(80, 2)
    found = difference_interval(before, after, ONE, Average.MICRO)
    peer = bootstrap(
        (before, after),
        lambda a, b, axis: b.mean(axis=axis) - a.mean(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=10_000,
        method="percentile",
        rng=1,
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx((peer.low, peer.high), abs=0.001)
    apart = mean_interval(after, ONE, Average.MICRO)
    assert found.high - found.low < (apart.high - apart.low) / 3


@pytest.mark.parametrize("average", list(Average))
def test_strata_are_resampled_apart(average: Average) -> None:
    values, domain_of = np.concatenate([scores(30, 3), 5 + scores(90, 4)]), np.repeat([7, 2], [30, 90])
    found = mean_interval(values, domain_of, average)
    weights = (0.5, 0.5) if average is Average.MACRO else (0.25, 0.75)
    peer = bootstrap(
        (values[:30], values[30:]),
        lambda a, b, axis: weights[0] * a.mean(axis=axis) + weights[1] * b.mean(axis=axis),
        vectorized=True,
        n_resamples=10_000,
        method="percentile",
        rng=1,
    ).confidence_interval
    assert found.value == pytest.approx(weights[0] * values[:30].mean() + weights[1] * values[30:].mean(), abs=1e-12)
    assert (found.low, found.high) == pytest.approx((peer.low, peer.high), abs=0.004)
    assert found.high - found.low < 0.2  # 2.5 would be the spread without strata


def test_draws_are_the_same_for_every_score_and_every_time() -> None:
    rows = [scores(80, 5), scores(80, 6)]
    two = resample_means(rows, ONE, Average.MACRO, resamples=200)
    one = resample_means(rows[1:], ONE, Average.MACRO, resamples=200)
    np.testing.assert_array_equal(two.samples[1], one.samples[0])
    other = resample_means(rows, ONE, Average.MACRO, resamples=200, seed=1)
    assert not np.array_equal(two.samples, other.samples)
    assert two.samples[0, :3] == pytest.approx(resample_means(rows, ONE, Average.MACRO, resamples=3).samples[0], abs=0)
    np.testing.assert_array_equal(two.domain_samples[:, 0], two.samples)


def test_every_query_is_drawn_equally_often() -> None:
    found = resample_means(np.eye(7), np.zeros(7, dtype=np.int64), Average.MICRO, resamples=20_000)
    counts = found.samples * 7
    assert counts.sum(axis=0) == pytest.approx(np.full(20_000, 7))
    assert counts.mean(axis=1) == pytest.approx(np.ones(7), abs=0.03)
    assert counts.var(axis=1) == pytest.approx(np.full(7, 6 / 7), abs=0.05)
    together = np.corrcoef(counts)[np.triu_indices(7, 1)]
    assert together == pytest.approx(np.full(21, -1 / 6), abs=0.03)


def test_illusion() -> None:
    base, noise = scores(400, 7), 0.02 * scores(400, 8)
    domain_of = np.arange(400) % 3
    found = illusion_intervals(base, base + 0.1, base + 0.08 + noise, base + 0.14, domain_of, Average.MACRO)
    assert found.gain_new.value == pytest.approx(0.04)
    assert (found.gain_new.low, found.gain_new.high) == pytest.approx((0.04, 0.04))
    assert found.artifact.value == pytest.approx(found.gain_old.value - 0.04)
    assert found.share.value == pytest.approx(1 - 0.04 / found.gain_old.value)
    assert found.share.low == pytest.approx(1 - 0.04 / found.gain_old.low)
    assert found.share.high == pytest.approx(1 - 0.04 / found.gain_old.high)
    assert found.share.low < found.share.value < found.share.high


def test_the_share_has_no_interval_where_the_old_gain_may_be_none() -> None:
    base = scores(60, 9)
    tuned = scores(60, 10)
    found = illusion_intervals(base, base, tuned, tuned, np.zeros(60, dtype=np.int64), Average.MICRO)
    assert found.share.undefined > 0.025
    assert found.share.low is None
    assert found.share.high is None
    none = illusion_intervals(base, base, base, base, np.zeros(60, dtype=np.int64), Average.MICRO)
    assert (none.share.value, none.share.undefined) == (None, 1.0)
    assert (none.gain_old.low, none.gain_old.high) == (0, 0)


def test_undefined_resamples_widen_the_interval() -> None:
    samples = np.arange(1000, dtype=np.float64)
    whole = percentile_interval(500.0, samples)
    assert (whole.low, whole.high) == pytest.approx(tuple(np.percentile(samples, [2.5, 97.5])))
    samples[::100] = np.nan
    few = percentile_interval(500.0, samples)
    assert few.low < whole.low
    assert few.high > whole.high
    assert few.undefined == 0.01


def test_refuses_what_has_no_mean() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        mean_interval(scores(3, 0), ONE, Average.MICRO)
    with pytest.raises(ValueError, match="do not fit"):
        mean_interval(np.empty(0), np.empty(0, dtype=np.int64), Average.MICRO)
    with pytest.raises(ValueError, match="finite"):
        mean_interval(np.array([1.0, np.nan]), np.zeros(2, dtype=np.int64), Average.MICRO)
