"""What a board shows of its statistics: tie groups, intervals, the random control, judged@K."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from dashboard.components.numbers import NONE, points

#: Keys of the columns that are made here.
STATISTICS = ("tie_group", "old_interval", "new_interval", "lift_interval", "control", "judged")


def statistics_texts(row: Mapping[str, Any]) -> dict[str, str]:
    """The columns of one row as texts; ``—`` where a run has no per-query scores or its statistics are to be made."""
    group = row.get("tie_group")
    return {
        "tie_group": NONE if group is None else str(group),
        **{f"{name}_interval": _interval(row, name) for name in ("old", "new", "lift")},
        "control": points(row.get("control"), signed=True),
        "judged": NONE if row.get("judged") is None else f"{points(row['judged'], 0)} %",
    }


def is_empty(board: pl.DataFrame) -> dict[str, bool]:
    """Which of the columns say nothing in any row."""
    sources = {
        "tie_group": "tie_group",
        "old_interval": "old_low",
        "new_interval": "new_low",
        "lift_interval": "lift_low",
        "control": "control",
        "judged": "judged",
    }
    return {
        key: column not in board.columns or board[column].null_count() == board.height
        for key, column in sources.items()
    }


def _interval(row: Mapping[str, Any], name: str) -> str:
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    if low is None or high is None:
        return NONE
    signed = name == "lift"
    return f"{points(low, signed=signed)} to {points(high, signed=signed)}"
