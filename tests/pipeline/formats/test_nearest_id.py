"""What an unknown id most likely stands for, in words."""

from __future__ import annotations

import pytest

from pipeline.formats.nearest_id import NearestId

KNOWN = ["toolACE_tool_1", "toolACE_tool_22", "café", "x"]


@pytest.mark.parametrize(
    ("unknown", "hint"),
    [
        ("toolace_tool_1", '; the known tool "toolACE_tool_1" differs from it only in upper and lower case'),
        (" x", '; the known tool "x" differs from it only in surrounding spaces'),
        ('"x"', '; the known tool "x" differs from it only in quotes'),
        (
            "' X '",
            '; the known tool "x" differs from it only in surrounding spaces and quotes and upper and lower case',
        ),
        ("cafe\u0301", '; the known tool "café" differs from it only in Unicode normalisation (NFC)'),
        ("toolACE_tool_2", '; the nearest known tool is "toolACE_tool_1"'),
        ("something quite different", ""),
    ],
)
def test_hints(unknown: str, hint: str) -> None:
    assert NearestId(KNOWN, "tool").hint(unknown) == hint


def test_look_ups_are_limited_but_answers_are_kept() -> None:
    nearest = NearestId(KNOWN, "tool", limit=1)
    first = nearest.hint("X")
    assert first
    assert nearest.hint("CAFÉ") == ""
    assert nearest.hint("X") == first
