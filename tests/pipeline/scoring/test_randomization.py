"""Sign-flip tests against scipy and plain enumeration; Holm against a worked example."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import permutation_test

from pipeline.benchmark import Average
from pipeline.scoring.holm import holm
from pipeline.scoring.randomization import (
    compare_pairs,
    gain_change,
    paired_test,
    query_weights,
    shrink_test,
)
from pipeline.scoring.sign_flips import BLOCK, count_reaching


def scipy_p(before: np.ndarray, after: np.ndarray, weights: np.ndarray) -> float:
    def statistic(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
        # Rounded, because scipy's tolerance for equal sums vanishes where the observed difference is 0.
        return np.round(((y - x) * weights).sum(axis=axis), 12)

    return float(
        permutation_test(
            (before, after), statistic, permutation_type="samples", n_resamples=np.inf, vectorized=True
        ).pvalue
    )


@given(st.integers(0, 2**32 - 1), st.integers(2, 10), st.sampled_from([0, 1, 3]), st.sampled_from(list(Average)))
@settings(max_examples=40, deadline=None)
def test_small_cases_equal_scipys_exact_test(seed: int, queries: int, levels: int, average: Average):
    rng = np.random.default_rng(seed)
    before, after = rng.random((2, queries))
    if levels:  # few levels make ties between sums, which is where tolerances matter
        before, after = np.round(before * levels) / levels, np.round(after * levels) / levels
    domain_of = rng.integers(0, 3, queries)
    found = paired_test(before, after, domain_of, average)
    assert found.exact
    assert found.p == pytest.approx(scipy_p(before, after, query_weights(domain_of, average)), abs=1e-12)
    assert found.difference == pytest.approx(float(((after - before) * query_weights(domain_of, average)).sum()))


def test_sampled_p_is_near_the_exact_one():
    rng = np.random.default_rng(1)
    before, after = rng.random((2, 14))
    weights = query_weights(np.zeros(14, dtype=int), Average.MICRO)
    exact = compare_pairs([before, after], [(0, 1)], weights, flips=2**14)[0]
    sampled = compare_pairs([before, after], [(0, 1)], weights, flips=2**14 - 1)[0]
    assert exact.exact and not sampled.exact
    assert sampled.p == pytest.approx(exact.p, abs=4 * np.sqrt(exact.p * (1 - exact.p) / 2**14))
    assert sampled.p * 2**14 == pytest.approx(round(sampled.p * 2**14))


def test_the_same_seed_gives_the_same_p_in_any_company():
    rng = np.random.default_rng(2)
    scores = rng.random((11, 203))
    weights = query_weights(rng.integers(0, 3, 203), Average.MACRO)
    pairs = list(itertools.combinations(range(11), 2))
    together = compare_pairs(scores, pairs, weights, flips=BLOCK + 37, seed=5)
    assert together == compare_pairs(scores, pairs, weights, flips=BLOCK + 37, seed=5)
    for pair in [(0, 1), (3, 10), (8, 9)]:
        alone = compare_pairs(scores[list(pair)], [(0, 1)], weights, flips=BLOCK + 37, seed=5)[0]
        assert alone == together[pairs.index(pair)]
    assert together != compare_pairs(scores, pairs, weights, flips=BLOCK + 37, seed=6)


def test_the_kernel_sums_signs_it_shares_between_scores():
    # A bar of the full size is reached only where all signs agree: 2 of 2^3 assignments.
    scores = np.array([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]])
    first, second = np.array([0, 1, 1]), np.array([-1, -1, 0])
    counts = count_reaching(scores, first, second, np.array([3.0, 6.0, 3.0]), 40_000, 3)
    assert counts[0] == counts[1] == counts[2]
    assert counts[0] / 40_000 == pytest.approx(0.25, abs=0.01)


def test_signs_are_balanced_and_independent_across_queries():
    n, flips = 130, 20_000
    values = np.zeros((n + n - 1, n))
    for i in range(n):
        values[i, i] = 1
    for i in range(n - 1):
        values[n + i, [i, i + 1]] = 1
    rows = np.arange(n, n + n - 1)
    counts = count_reaching(values, rows, np.full(len(rows), -1), np.full(len(rows), 1.5), flips, 9)
    assert np.abs(counts / flips - 0.5).max() < 5 * 0.5 / np.sqrt(flips)


def test_no_difference_has_p_one_and_a_large_one_the_smallest_p():
    zero, one = np.zeros(500), np.ones(500)
    domains = np.zeros(500, dtype=int)
    assert paired_test(one, one, domains, Average.MICRO).p == 1
    found = paired_test(zero, one, domains, Average.MICRO, flips=999)
    assert (found.difference, found.p) == (1, 1 / 1000)


def test_p_is_uniform_enough_under_the_null():
    rng = np.random.default_rng(4)
    pairs = [(2 * i, 2 * i + 1) for i in range(400)]
    scores = rng.random((800, 60))
    p = [t.p for t in compare_pairs(scores, pairs, query_weights(np.zeros(60), Average.MICRO), flips=999)]
    assert 0.02 < np.mean(np.array(p) <= 0.05) < 0.09


def test_the_shrink_test_is_a_test_of_the_difference_of_differences():
    rng = np.random.default_rng(5)
    base_old, base_new, tuned_old, tuned_new = rng.random((4, 9))
    domains = rng.integers(0, 2, 9)
    found = shrink_test(base_old, base_new, tuned_old, tuned_new, domains, Average.MACRO)
    change = gain_change(base_old, base_new, tuned_old, tuned_new)
    weights = query_weights(domains, Average.MACRO)
    assert found.difference == pytest.approx(float((((tuned_old - base_old) - (tuned_new - base_new)) * weights).sum()))
    assert found.p == pytest.approx(scipy_p(np.zeros(9), change, weights), abs=1e-12)


def test_weights_make_the_macro_mean():
    weights = query_weights(np.array([0, 0, 0, 5]), Average.MACRO)
    assert weights.tolist() == pytest.approx([1 / 6, 1 / 6, 1 / 6, 1 / 2])
    with pytest.raises(ValueError, match="no query"):
        query_weights(np.array([], dtype=int), Average.MICRO)


def test_wrong_inputs_are_refused():
    weights = np.full(3, 1 / 3)
    with pytest.raises(ValueError, match="do not fit"):
        compare_pairs([np.zeros(4)], [(0, None)], weights)
    with pytest.raises(ValueError, match="finite"):
        compare_pairs([np.array([0, np.nan, 1])], [(0, None)], weights)


def test_holm_steps_down():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1, 1]
    assert holm([]) == []
    with pytest.raises(ValueError, match="p value"):
        holm([1.2])
