"""Discounts of DCG, ideal sums, and prefix sums for every pattern of hits in the first sixteen ranks.

All sums are made in rank order, one addend after another, as trec_eval does, so that every NDCG is
bit-identical with it.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

#: Ranks that the table of prefix sums covers.
TABLE_RANKS = 16

#: The deepest cutoff that is scored.
DEEPEST = 1000

Floats = npt.NDArray[np.float64]


def check_cutoffs(cutoffs: tuple[int, ...]) -> tuple[int, ...]:
    """Distinct cutoffs in ascending order.

    Raises:
        ValueError: there are none, or one is not between 1 and 1,000.
    """
    if not cutoffs or any(not 1 <= k <= DEEPEST for k in cutoffs):
        raise ValueError(f"cutoffs must lie between 1 and {DEEPEST}, found {list(cutoffs)}")
    return tuple(sorted(set(cutoffs)))


@lru_cache(maxsize=1)
def gains() -> Floats:
    """1 / log2(i + 2) for the 0-based rank i; float64 (1000,).

    ``math.log2`` is the C library's, which trec_eval calls too; numpy's vectorised one may differ in the last bit.
    """
    return np.array([1.0 / math.log2(i + 2) for i in range(DEEPEST)])


@lru_cache(maxsize=1)
def ideal() -> Floats:
    """DCG of n hits in the first n ranks; float64 (1001,), 0 for n = 0."""
    sums = [0.0]
    for gain in gains().tolist():
        sums.append(sums[-1] + gain)
    return np.array(sums)


@lru_cache(maxsize=1)
def prefix_sums() -> Floats:
    """DCG of the hits in the first sixteen ranks; float64 (65536,), bit r of the index is a hit at 0-based rank r."""
    table = np.zeros(1 << TABLE_RANKS)
    for rank in range(TABLE_RANKS):
        # The highest bit is the last rank, so it is added last: rank order.
        table[1 << rank : 2 << rank] = table[: 1 << rank] + gains()[rank]
    return table
