"""The data files beside this package: read as text, printed digits turned into fractions without rounding."""

from __future__ import annotations

import csv
import re
import tomllib
from decimal import Decimal
from importlib.resources import files
from typing import Any

#: Units whose printed numbers are hundredths.
HUNDREDTHS = frozenset({"%", "pp"})
#: What a paper prints where there is no figure.
DASH = "-"
_NUMBER = re.compile(r"[+-]?\d+(?:,\d{3})*(?:\.\d+)?")


def read_csv(name: str) -> list[dict[str, str]]:
    """Rows of ``data/<name>``, every field as text.

    Raises:
        ValueError: a row has more or fewer fields than the header.
    """
    text = (files("pipeline.published") / "data" / name).read_text(encoding="utf-8")
    reader = csv.DictReader(text.splitlines())
    rows: list[dict[str, str]] = []
    for row in reader:
        if None in row or None in row.values():
            raise ValueError(f"data/{name} line {reader.line_num}: the number of fields differs from the header's")
        rows.append(row)
    return rows


def read_toml(name: str) -> dict[str, Any]:
    """Content of ``data/<name>``."""
    return tomllib.loads((files("pipeline.published") / "data" / name).read_text(encoding="utf-8"))


def parse_printed(printed: str, hundredths: bool) -> Decimal:
    """The exact number behind printed digits: ``45.2`` in hundredths is 0.452, ``7,360`` is 7360.

    Raises:
        ValueError: not a plain decimal number.
    """
    if _NUMBER.fullmatch(printed) is None:
        raise ValueError(f"{printed!r} is not a printed number")
    number = Decimal(printed.replace(",", ""))
    return number / 100 if hundredths else number


def numbers_in(printed: str, unit: str) -> list[Decimal]:
    """Every number of a printed list or range, scaled like ``parse_printed``."""
    return [parse_printed(match, unit in HUNDREDTHS) for match in _NUMBER.findall(printed)]
