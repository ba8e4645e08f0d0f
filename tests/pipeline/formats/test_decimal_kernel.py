"""Decimal text to float32: equal to C strtod and a cast, which Python's float and numpy do."""

from __future__ import annotations

import random
from decimal import Decimal

import numpy as np
import pytest

from pipeline.formats.decimal_kernel import NOT_A_NUMBER, NUMBER, TOO_LARGE, UNDECIDED, decide, parse_decimals
from pipeline.formats.rows import float32_scores, scores_from_text
from pipeline.identifiers import pack


def outcomes(tokens: list[str]) -> tuple[np.ndarray, np.ndarray]:
    blob, offsets = pack(tokens)
    values, codes = np.empty(len(tokens), np.float32), np.empty(len(tokens), np.uint8)
    parse_decimals(blob, offsets, values, codes)
    return values, codes


def nasty(random_: random.Random) -> str:
    """Long mantissas, huge and tiny exponents, and decimals on or beside the border between two float32."""
    kind = random_.random()
    if kind < 0.25:
        return f"{random_.uniform(-100, 100):.{random_.randint(0, 25)}f}"
    if kind < 0.45:
        return repr(random_.uniform(-1, 1) * 10.0 ** random_.randint(-60, 45))
    if kind < 0.85:
        single = np.array(random_.getrandbits(32), dtype=np.uint32).view(np.float32)
        if not np.isfinite(single):
            return "1"
        above = np.nextafter(single, np.float32(np.inf))
        border = Decimal((float(single) + float(above)) / 2) if np.isfinite(above) else Decimal(1)
        nudged = border * (1 + random_.choice([0, 0, 1, -1]) * Decimal(10) ** -random_.randint(10, 40))
        return format(nudged, random_.choice(["e", ".30e", ".17e", ".9e", ".18e"]))
    digits = "".join(random_.choice("0123456789") for _ in range(random_.randint(1, 40)))
    point = random_.randint(0, len(digits))
    return digits[:point] + "." + digits[point:] + random_.choice(["", f"e{random_.randint(-400, 400)}", "E+5"])


def test_equals_strtod_and_cast() -> None:
    random_ = random.Random(7)
    tokens = [nasty(random_) for _ in range(60_000)]
    values, codes = outcomes(tokens)
    assert not (codes == NOT_A_NUMBER).any()
    assert (codes == UNDECIDED).sum() > 1000, "the border cases are there"
    with np.errstate(over="ignore"):
        want = np.array([float(token) for token in tokens]).astype(np.float32)
    for i, token in enumerate(tokens):
        code, value = decide(token.encode()) if codes[i] == UNDECIDED else (codes[i], values[i])
        if np.isfinite(want[i]):
            assert code == NUMBER, token
            assert value == want[i], token
        else:
            assert code == TOO_LARGE, token


def test_ordinary_scores_need_no_second_look() -> None:
    random_ = random.Random(1)
    tokens = [repr(random_.uniform(-50, 50)) for _ in range(20_000)] + [
        f"{random_.random():.9f}" for _ in range(20_000)
    ]
    values, codes = outcomes(tokens)
    assert (codes == NUMBER).mean() > 0.999
    assert (values[codes == NUMBER] == np.array([float(t) for t in tokens]).astype(np.float32)[codes == NUMBER]).all()


@pytest.mark.parametrize(
    "token", ["0", "-0", "+1", "1.", ".5", "00012", "1e5", "1E-5", "1e+05", "0e999999999", "1e-400", "9" * 60]
)
def test_accepts(token: str) -> None:
    values, wrong = scores_from_text([token])
    want = np.float32(float(token)) if float(token) < 3e38 else np.float32(np.inf)
    assert (wrong == {} and values[0] == want) or not np.isfinite(want)


@pytest.mark.parametrize(
    "token",
    ["", "+", "-", ".", "e5", "1e", "1e+", "1_0", "0x10", "nan", "NaN", "inf", "-Infinity", "1,5", "1.5.2", "1e5.5",
     "--1",
     "1 ", " 1", "1f", "1d", "١", "１", "½", "1e400", "1e39", "-3.5e38", "1e999999999999", "high", "\u20131", "\ud800"],
)  # fmt: skip
def test_refuses(token: str) -> None:
    _, wrong = scores_from_text(["0.5", token, "1"])
    assert list(wrong) == [1]
    assert wrong[1].startswith(("score ", "the score is empty"))


def test_largest_float32() -> None:
    values, wrong = scores_from_text(["3.4028235e38", "3.40282356e38", "3.4028236e38"])
    assert values[0] == values[1] == np.finfo(np.float32).max
    assert list(wrong) == [2]


def test_parsed_numbers() -> None:
    values, wrong = float32_scores([1, 2.5, Decimal("0.1"), 10**400, Decimal("1e39"), -(10**30)])
    assert values[[0, 1, 2, 5]].tolist() == [1, 2.5, np.float32(0.1), np.float32(-1e30)]
    assert list(wrong) == [3, 4]
