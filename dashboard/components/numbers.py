"""Numbers as the pages write them: figures as everywhere, and sizes, days and hashes."""

from __future__ import annotations

from datetime import datetime

from pipeline.formats.figures import MINUS, NONE, decimals_of, figure_text, points, whole

__all__ = ["MINUS", "NONE", "day", "decimals_of", "figure_text", "points", "short_hash", "size", "whole"]


def size(parameters: int | None) -> str:
    """A number of weights: ``22.7M``, ``0.6B``, ``4B``; ``—`` when unknown."""
    if not parameters:
        return NONE
    if parameters >= 500_000_000:
        return f"{parameters / 1e9:.1f}".removesuffix(".0") + "B"
    return f"{parameters / 1e6:.1f}".removesuffix(".0") + "M"


def day(moment: datetime | None) -> str:
    """The date of a moment, ISO; ``—`` when unknown."""
    return NONE if moment is None else moment.date().isoformat()


def short_hash(value: str | None) -> str:
    """The first twelve characters of a hash; ``—`` when there is none."""
    return NONE if not value else value[:12]
