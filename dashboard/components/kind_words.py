"""Numbers of what a benchmark retrieves: its kind is the word, ``tool`` or ``skill``."""

from __future__ import annotations

from dashboard.components.numbers import whole


def counted(number: int, word: str) -> str:
    """``1 skill``, ``12 skills``."""
    return f"{whole(number)} {word}" if number == 1 else f"{whole(number)} {word}s"
