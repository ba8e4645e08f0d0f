"""The versions that a stored score, its statistics or a cached file depends on."""

from __future__ import annotations

#: Kept with every score row; raise it when any published figure could come out different.
SCORER_VERSION = "1"

#: Part of the cache key of compiled ground truth; raise it when its arrays change in meaning or layout.
COMPILER_VERSION = "1"

#: Kept with the statistics of runs and boards; raise it when an interval, a control, a test or a reading could come
#: out different, and they are made anew.
STATISTICS_VERSION = "1"
