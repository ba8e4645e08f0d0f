"""The preset that is taken where nobody names one follows from what was measured."""

from __future__ import annotations

import re
from pathlib import Path

from pipeline.mftr.settings import DEFAULT_PRESET, PRESETS, preset_by_measurement

MEASURED = Path(__file__).resolve().parents[3] / "benchmarks" / "mftr.md"


def test_ours_is_taken_only_where_it_is_nowhere_worse_by_a_point() -> None:
    assert preset_by_measurement([0.002, -0.01]) == "v2"
    assert preset_by_measurement([0.002, -0.0101]) == "paper"
    assert preset_by_measurement([]) == "paper"


def test_the_default_is_what_the_committed_measurement_says() -> None:
    table = MEASURED.read_text(encoding="utf-8").split("## v2 minus paper", 1)[1].split("\n## ", 1)[0]
    header, _, *rows = [line for line in table.splitlines() if line.startswith("|")]
    column = [cell.strip() for cell in header.split("|")].index("NDCG")
    ends = [re.search(r"\[([+-][\d.]+), [+-][\d.]+\]", row.replace("\\", "").split("|")[column]) for row in rows]
    assert len(ends) >= 10 and all(ends)
    lows = [float(found[1]) / 100 for found in ends if found is not None]
    assert preset_by_measurement(lows) == DEFAULT_PRESET
    assert DEFAULT_PRESET in PRESETS
