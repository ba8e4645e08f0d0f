import random

import pytest
from scipy.stats import kendalltau

from pipeline.scoring.rank_agreement import kendall_tau


def test_equals_scipy_with_and_without_ties() -> None:
    rng = random.Random(4)
    for _ in range(300):
        n, levels = rng.randint(2, 30), rng.choice([2, 5, 10**6])
        one = [rng.randint(0, levels) / levels for _ in range(n)]
        two = [rng.randint(0, levels) / levels for _ in range(n)]
        found = kendall_tau(one, two)
        if len(set(one)) == 1 or len(set(two)) == 1:
            assert found is None
        else:
            assert found == pytest.approx(kendalltau(one, two).statistic, abs=1e-14)


def test_extremes_and_undefined_cases() -> None:
    assert kendall_tau([1, 2, 3], [10, 20, 30]) == 1.0
    assert kendall_tau([1, 2, 3], [3, 2, 1]) == -1.0
    assert kendall_tau([1.0], [2.0]) is None
    assert kendall_tau([], []) is None
    assert kendall_tau([1, 1, 1], [1, 2, 3]) is None
    with pytest.raises(ValueError, match="3 scores cannot be compared with 2"):
        kendall_tau([1, 2, 3], [1, 2])
    with pytest.raises(ValueError, match="not a number"):
        kendall_tau([1, float("nan")], [1, 2])
