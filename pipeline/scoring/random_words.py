"""Random words by counting: the finaliser of splitmix64 turns any counter into 64 well-mixed bits.

Integers only, so the same seed gives the same draws on every machine, and any draw can be made without the ones
before it.
"""

from __future__ import annotations

import numba
import numpy as np

#: What a counter advances by: 2⁶⁴ divided by the golden ratio, made odd.
STEP = np.uint64(0x9E3779B97F4A7C15)


@numba.njit(cache=True, nogil=True)
def mix(value):  # type: ignore[no-untyped-def]
    """The finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014); uint64 to uint64."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@numba.njit(cache=True, nogil=True)
def stream(seed, number):  # type: ignore[no-untyped-def]
    """Where the counter of stream ``number`` starts: far from every other stream's; add ``STEP`` before each ``mix``.

    Args:
        seed, number: uint64.
    """
    return mix(mix(seed + STEP) + number * STEP)


@numba.njit(cache=True, nogil=True)
def below(word, size):  # type: ignore[no-untyped-def]
    """A number in [0, size) from the low half of a word, by multiplication; ``size`` is a uint64 below 2³²."""
    return ((word & np.uint64(0xFFFFFFFF)) * size) >> np.uint64(32)
