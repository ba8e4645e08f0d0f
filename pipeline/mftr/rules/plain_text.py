"""Plain text, and JSON in which no key is known: the text is the description, with the sections it marks."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.mftr.rules.parameters import settle
from pipeline.mftr.rules.prose import read_prose
from pipeline.mftr.rules.values import LONGEST, tidy
from pipeline.mftr.schema import StandardizedTool


def read(tool_id: str, text: str) -> StandardizedTool:
    """Prose about an API, a paragraph, or nothing."""
    prose = read_prose(text)
    return StandardizedTool(
        tool_id,
        prose.description or tidy(text) * (not prose.parameters),
        settle(prose.parameters),
        prose.response,
        prose.examples,
    )


def read_json(tool_id: str, value: object) -> StandardizedTool:
    """The texts of a JSON value one after another."""
    return StandardizedTool(tool_id, tidy(" ".join(_texts(value, 12, [LONGEST]))))


def _texts(value: object, depth: int, left: list[int]) -> Iterator[str]:
    if depth == 0 or left[0] <= 0:
        return
    if isinstance(value, str):
        text = tidy(value)
        left[0] -= len(text) + 1
        yield text
    elif isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _texts(member, depth - 1, left)
