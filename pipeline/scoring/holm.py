"""Holm's step-down adjustment of p values for a family of tests (Scandinavian Journal of Statistics 6, 1979)."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p values, in the order given: rejecting those ≤ α keeps the chance of any false rejection ≤ α.

    The i-th smallest of m (from 0) is multiplied by m − i; values never fall along the order and stop at 1.

    Raises:
        ValueError: a value is not between 0 and 1.
    """
    wrong = [p for p in p_values if not 0 <= p <= 1]
    if wrong:
        raise ValueError(f"{wrong[0]} is no p value; they lie between 0 and 1")
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for i, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - i) * p_values[place]))
        adjusted[place] = largest
    return adjusted
