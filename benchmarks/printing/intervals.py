"""Intervals as cells of a table."""

from __future__ import annotations

from pipeline.scoring.statistics import Interval


def points(interval: Interval) -> str:
    """A difference in points with its interval."""
    assert interval.value is not None, "a difference is never undefined"
    assert interval.low is not None
    assert interval.high is not None
    return f"{100 * interval.value:+.2f} [{100 * interval.low:+.2f}, {100 * interval.high:+.2f}]"


def percent(interval: Interval) -> str:
    """A share of a gain in percent; — where it is undefined."""
    if interval.value is None:
        return "— (no gain under one label)"
    ends = ["—" if end is None else f"{100 * end:.0f}" for end in (interval.low, interval.high)]
    return f"{100 * interval.value:.0f} % [{ends[0]}, {ends[1]}]"
