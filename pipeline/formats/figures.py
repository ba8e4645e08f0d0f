"""Figures as text: ×100, one decimal, a real minus sign; reported figures keep the digits that were printed."""

from __future__ import annotations

from collections.abc import Iterable

MINUS = "\N{MINUS SIGN}"
NONE = "—"
#: The papers' sign of significance on a printed figure; no other thing is marked with it.
SIGNIFICANT_MARK = "†"


def significance_note(printed: Iterable[str | None]) -> str:
    """What the sign on printed figures means; empty where none of them carries it."""
    if not any(SIGNIFICANT_MARK in (text or "") for text in printed):
        return ""
    return f"{SIGNIFICANT_MARK} as the paper marks it: significant over its strongest baseline."


def figure_text(value: float | None, printed: str | None = None) -> str:
    """A figure ×100: the digits and marks of the paper where it is printed, else one decimal; ``—`` when unknown.

    Args:
        value: a fraction.
        printed: as printed, already in points (``45.2``, ``51.67†``), None for figures computed here.
    """
    if value is None:
        return NONE
    return printed.replace("-", MINUS) if printed else points(value)


def decimals_of(*printed: str | None) -> int:
    """Decimals for a difference of printed figures: as many as the one with the most, at least one."""
    return max([1, *(sum(c.isdigit() for c in text.partition(".")[2]) for text in printed if text)])


def points(value: float | None, decimals: int = 1, *, signed: bool = False) -> str:
    """A fraction ×100, ``52.0``; ``—`` when unknown; with ``signed`` also ``+5.1`` and ``−0.3``."""
    if value is None or value != value:
        return NONE
    text = f"{100 * value:+.{decimals}f}" if signed else f"{100 * value:.{decimals}f}"
    if float(text) == 0:
        text = text.lstrip("+-")
    return text.replace("-", MINUS)


def whole(value: int | None) -> str:
    """A count with thin spaces between thousands; ``—`` when unknown."""
    return NONE if value is None else f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
