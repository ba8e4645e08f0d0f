"""How far two rankings of the same retrievers agree: Kendall's τ-b."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def kendall_tau(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Kendall's τ-b of two lists of scores for the same retrievers, ties accounted for.

    τ-b = (concordant − discordant) / √((pairs − ties in first)(pairs − ties in second)): 1 when both order all pairs
    alike, −1 when they order them oppositely. Counts are integers, so the value is exact up to one division.

    Returns:
        τ-b, or None when it is undefined: fewer than two retrievers, or one list is constant.

    Raises:
        ValueError: the lists differ in length or hold a value that is not a number.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} scores cannot be compared with {len(second)}")
    one, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if np.isnan(one).any() or np.isnan(two).any():
        raise ValueError("a score is not a number; leave out retrievers that lack one")
    upper = np.triu_indices(len(one), 1)
    # Comparisons rather than differences: tiny scores must not underflow to a tie.
    by_one = (one[:, None] > one).astype(np.int64) - (one[:, None] < one)
    by_two = (two[:, None] > two).astype(np.int64) - (two[:, None] < two)
    balance = int((by_one * by_two)[upper].sum())
    untied_one = int(np.count_nonzero(by_one[upper]))
    untied_two = int(np.count_nonzero(by_two[upper]))
    if untied_one == 0 or untied_two == 0:
        return None
    return balance / math.sqrt(untied_one * untied_two)
