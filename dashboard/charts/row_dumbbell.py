"""The small drawing in a leaderboard row: where a retriever stood with one label, and where it stands now."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence

from dashboard.charts.palette import Ground, colours

WIDTH, HEIGHT, MARGIN = 136, 26, 8


def shared_range(values: Sequence[float | None]) -> tuple[float, float]:
    """Ends of the axis that all rows share: the figures' range, widened to the next 5 points, at least 10 wide.

    Args:
        values: fractions; None is skipped.
    """
    known = [value for value in values if value is not None]
    if not known:
        return 0.0, 1.0
    low = max(0.0, (int(min(known) * 20)) / 20)
    high = min(1.0, (int(max(known) * 20) + 1) / 20)
    if high - low < 0.1:
        low = max(0.0, high - 0.1)
    return low, high


def row_dumbbell(old: float | None, new: float | None, low: float, high: float, ground: Ground) -> str | None:
    """An SVG data URI: grey ring at ``old``, accent disc at ``new``, a line between; None when both are unknown.

    Args:
        old: fraction scored with one label a query.
        new: fraction scored with every valid answer.
        low: left end of the axis, the same for all rows.
        high: right end of the axis.
        ground: the theme it is shown on.
    """
    if old is None and new is None:
        return None
    shades = colours(ground)

    def place(value: float) -> float:
        clipped = min(max(value, low), high)
        return MARGIN + (clipped - low) / (high - low) * (WIDTH - 2 * MARGIN)

    middle = HEIGHT / 2
    parts = [
        f'<line x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{middle}" y2="{middle}" '
        f'stroke="{shades.grid}" stroke-width="1"/>'
    ]
    if old is not None and new is not None:
        parts.append(
            f'<line x1="{place(old):.1f}" x2="{place(new):.1f}" y1="{middle}" y2="{middle}" '
            f'stroke="{shades.line}" stroke-width="4" stroke-linecap="round"/>'
        )
    if old is not None:
        parts.append(f'<circle cx="{place(old):.1f}" cy="{middle}" r="4.5" fill="{shades.muted}"/>')
    if new is not None:
        parts.append(f'<circle cx="{place(new):.1f}" cy="{middle}" r="5.5" fill="{shades.accent}"/>')
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(parts)}</svg>'
    )
    return "data:image/svg+xml;base64," + b64encode(svg.encode()).decode()
