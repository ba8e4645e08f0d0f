"""Colours: one accent, grey for "one label", and one colour a retriever family, for light and dark grounds.

Every family colour reaches a contrast of at least 4.5 on its ground (a test measures it), so that a label in
the colour of its line can be read. A family keeps its colour in every chart.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256


class Ground(StrEnum):
    """The theme a chart is drawn on."""

    LIGHT = "light"
    DARK = "dark"


@dataclass(frozen=True)
class Colours:
    """The colours of one theme, as hex.

    Attributes:
        accent: the new metric, links, the chosen thing.
        muted: the old metric, one label a query.
        line: between an old and a new point.
        grid: axes and grid lines.
        categories: colours for families, in the order they are given out.
        unknown: for what belongs to no known family.
    """

    ground: str
    text: str
    faint: str
    accent: str
    muted: str
    line: str
    grid: str
    categories: tuple[str, ...]
    unknown: str


LIGHT = Colours(
    ground="#ffffff",
    text="#191d24",
    faint="#5b6675",
    accent="#1f5fbf",
    muted="#98a2b0",
    line="#a9c2e6",
    grid="#e7ebf0",
    categories=("#1f5fbf", "#b4560f", "#1c7c54", "#8a3ffc", "#a3195b", "#0f7c8a", "#6b6b00", "#6f4e37"),
    unknown="#3b4658",
)
DARK = Colours(
    ground="#0f1217",
    text="#e8ebf0",
    faint="#9aa5b4",
    accent="#6ea8ff",
    muted="#8a94a3",
    line="#35507a",
    grid="#242a33",
    categories=("#6ea8ff", "#f0a35e", "#5fc796", "#b99bff", "#f08bb8", "#58c7d6", "#cfc957", "#c9a58a"),
    unknown="#c5cedb",
)

#: Families of the published tables have fixed places, so that neighbours never share a colour.
_PLACES = {
    "qwen3": 0,
    "tool-embed": 1,
    "lexical": 7,
    "bm25": 7,
    "e5": 2,
    "gte": 3,
    "gritlm": 4,
    "nv-embed": 5,
    "skillret": 6,
    "minilm": 3,
    "bge": 4,
    "contriever": 6,
    "toolbench-ir": 1,
    "colt": 0,
}


def colours(ground: Ground) -> Colours:
    """The colours of a theme."""
    return DARK if ground is Ground.DARK else LIGHT


def family_colour(family: str, ground: Ground) -> str:
    """The colour of a retriever family; new families get a fixed one from their name, and "" none of a family's."""
    if not family:
        return colours(ground).unknown
    categories = colours(ground).categories
    folded = family.casefold()
    place = _PLACES.get(folded)
    if place is None:
        place = sha256(folded.encode()).digest()[0]
    return categories[place % len(categories)]
