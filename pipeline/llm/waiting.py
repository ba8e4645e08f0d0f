"""How long to wait before the next try."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

#: Nobody's Retry-After makes us wait longer than this, in seconds.
LONGEST_RETRY_AFTER = 600.0


def wait_seconds(tries: int, first: float, longest: float, retry_after: float | None, jitter: random.Random) -> float:
    """Exponential with full jitter, never sooner than the provider asked for.

    Args:
        tries: how many tries failed so far, from 1.
        first, longest: bounds of the exponential part, in seconds.
        retry_after: what the provider asked for, of ``parse_retry_after``; None if nothing.
        jitter: source of chance.
    """
    ceiling = min(longest, first * 2.0 ** min(tries - 1, 30))
    wait = ceiling * (0.5 + 0.5 * jitter.random())
    if retry_after is None:
        return wait
    # A little later than asked, and not all at once.
    return max(wait, min(retry_after, LONGEST_RETRY_AFTER) + 0.1 * first * jitter.random())


def parse_retry_after(value: str | None) -> float | None:
    """Seconds of a ``Retry-After`` header, ``LONGEST_RETRY_AFTER`` at most; None without a number or a date."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            when = parsedate_to_datetime(value)
        except (ValueError, OverflowError):
            return None
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC)
        seconds = (when - datetime.now(UTC)).total_seconds()
    return min(max(0.0, seconds), LONGEST_RETRY_AFTER) if seconds == seconds else None
