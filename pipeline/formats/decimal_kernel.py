"""Decimal text to float32, exactly as C ``strtod`` followed by a cast to float: what trec_eval computes.

The result is the float32 nearest to the float64 nearest to the decimal. Short numbers go through one exact
float64 operation (Clinger 1990); longer ones are approximated and taken only when every float64 within the
error bound casts to the same float32. What is left, a few in a hundred million unless someone tries, is handed
to Python's ``float``.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

#: 10**0 … 10**300, each correctly rounded.
POWERS_OF_TEN: npt.NDArray[np.float64] = np.array([float(f"1e{i}") for i in range(301)])

#: Outcomes of ``parse_decimal``.
NUMBER, NOT_A_NUMBER, TOO_LARGE, UNDECIDED = 0, 1, 2, 3

_FLOAT32_MAX = np.float64(np.finfo(np.float32).max)


@numba.njit(cache=True, nogil=True)
def parse_decimal(buffer, start, end):  # type: ignore[no-untyped-def]
    """Read ``buffer[start:end]`` as ``[+-]digits[.digits][e[+-]digits]``, ASCII only.

    Returns:
        (outcome, value): value is a float32, meaningful when the outcome is ``NUMBER``.
    """
    position = start
    negative = False
    if position < end and (buffer[position] == 45 or buffer[position] == 43):
        negative = buffer[position] == 45
        position += 1
    mantissa = np.int64(0)
    exponent = np.int64(0)
    significant = 0
    digits = 0
    exact = True
    while position < end:
        digit = np.int64(buffer[position]) - 48
        if digit < 0 or digit > 9:
            break
        digits += 1
        if significant < 18:
            mantissa = mantissa * 10 + digit
            if mantissa != 0:
                significant += 1
        else:
            exponent += 1
            exact = False
        position += 1
    if position < end and buffer[position] == 46:
        position += 1
        while position < end:
            digit = np.int64(buffer[position]) - 48
            if digit < 0 or digit > 9:
                break
            digits += 1
            if significant < 18:
                mantissa = mantissa * 10 + digit
                exponent -= 1
                if mantissa != 0:
                    significant += 1
            else:
                exact = False
            position += 1
    if digits == 0:
        return NOT_A_NUMBER, np.float32(0)
    if position < end and (buffer[position] | 32) == 101:
        position += 1
        minus = False
        if position < end and (buffer[position] == 45 or buffer[position] == 43):
            minus = buffer[position] == 45
            position += 1
        first = position
        written = np.int64(0)
        while position < end:
            digit = np.int64(buffer[position]) - 48
            if digit < 0 or digit > 9:
                break
            if written < 1000000:
                written = written * 10 + digit
            position += 1
        if position == first:
            return NOT_A_NUMBER, np.float32(0)
        exponent += -written if minus else written
    if position != end:
        return NOT_A_NUMBER, np.float32(0)
    if mantissa == 0:
        return NUMBER, np.float32(0)
    value = np.float64(mantissa)
    if exponent < -300 or exponent > 300:
        return UNDECIDED, np.float32(0)
    if exponent < 0:
        value /= POWERS_OF_TEN[-exponent]
    elif exponent > 0:
        value *= POWERS_OF_TEN[exponent]
    if not (exact and mantissa <= 9007199254740992 and -22 <= exponent <= 22):
        # Relative error at most four half-units of 2**-53, and 1e-17 for dropped digits: 1e-15 covers both.
        low = np.float32(value * (1.0 - 1e-15))
        high = np.float32(value * (1.0 + 1e-15))
        if low != high:
            return UNDECIDED, np.float32(0)
    single = np.float32(-value if negative else value)
    if not (-_FLOAT32_MAX <= np.float64(single) <= _FLOAT32_MAX):
        return TOO_LARGE, single
    return NUMBER, single


@numba.njit(cache=True, nogil=True)
def parse_decimals(blob, offsets, values, outcomes):  # type: ignore[no-untyped-def]
    """``parse_decimal`` over packed tokens; returns how many were not plainly a number."""
    unclear = 0
    for i in range(len(offsets) - 1):
        outcome, value = parse_decimal(blob, offsets[i], offsets[i + 1])
        values[i] = value
        outcomes[i] = outcome
        if outcome != NUMBER:
            unclear += 1
    return unclear


def decide(token: bytes) -> tuple[int, np.float32]:
    """What ``parse_decimal`` left ``UNDECIDED``, decided by Python's correctly rounded ``float``.

    Args:
        token: a decimal whose syntax the kernel has already accepted.
    """
    with np.errstate(over="ignore"):
        value = np.float32(float(token))
    if not np.isfinite(value):
        return TOO_LARGE, value
    return NUMBER, value + np.float32(0)
