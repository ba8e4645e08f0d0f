"""Times and durations as text, in the reader's own time zone."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import streamlit as st

from dashboard.components.numbers import NONE


def clock(moment: datetime | None, *, seconds: bool = False) -> str:
    """``14:03``, with the date in front when it is not today; ``—`` when unknown."""
    if moment is None:
        return NONE
    zone = _zone()
    local, today = moment.astimezone(zone), datetime.now(zone).date()
    text = local.strftime("%H:%M:%S" if seconds else "%H:%M")
    return text if local.date() == today else f"{local.date().isoformat()} {text}"


def duration(seconds: float | None) -> str:
    """A length of time, rounded as far as it is known: ``3 s``, ``2 min``, ``1 h 10 min``, ``3 days``."""
    if seconds is None:
        return NONE
    if seconds < 1:
        return "under 1 s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h" + (f" {rest} min" if rest and hours < 10 else "")
    return f"{round(hours / 24)} days"


def since(start: datetime | None, end: datetime | None = None) -> str:
    """How long something took or has been going on."""
    return NONE if start is None else duration(((end or datetime.now(UTC)) - start).total_seconds())


def _zone() -> ZoneInfo:
    try:
        return ZoneInfo(st.context.timezone or "UTC")
    except (KeyError, ValueError, OSError):
        return ZoneInfo("UTC")
