"""How long work says how far it is, and how it is stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pipeline.errors import EquiRankError


class Cancelled(EquiRankError):
    """The work was stopped on request; what was finished until then is kept in the cache."""


@dataclass(frozen=True)
class Progress:
    """How far a stage is.

    Attributes:
        stage: ``documents``, ``queries``, ``search`` or ``training``.
        done: units finished (texts, queries, folds), those found in the cache included.
        total: units of the stage.
        elapsed_s: seconds since the stage began.
        remaining_s: estimated seconds to its end, from the work done so far; None before anything is known.
    """

    stage: str
    done: int
    total: int
    elapsed_s: float
    remaining_s: float | None


#: Receives progress; called at most about twice a second, and at the end of each stage.
ProgressCallback = Callable[[Progress], None]
#: Asked between batches; True stops the work.
CancelledCallback = Callable[[], bool]


class Stage:
    """Counts one stage's work and reports it.

    Args:
        name: see ``Progress.stage``.
        total: units of the stage.
        progress: None reports nothing.
        cancelled: None never stops.
        done: units that need no work, as those found in a cache.
        work: total effort of the others in any unit that is proportional to time; default their number.
    """

    def __init__(
        self,
        name: str,
        total: int,
        progress: ProgressCallback | None = None,
        cancelled: CancelledCallback | None = None,
        *,
        done: int = 0,
        work: float | None = None,
    ) -> None:
        self._name = name
        self._total = total
        self._progress = progress
        self._cancelled = cancelled
        self._done = done
        self._work = float(total - done) if work is None else work
        self._worked = 0.0
        self._start = time.monotonic()
        self._reported = float("-inf")
        self.check()
        self._report()

    def check(self) -> None:
        """Stop here if that was asked for.

        Raises:
            Cancelled: it was.
        """
        if self._cancelled is not None and self._cancelled():
            raise Cancelled(f"Stopped on request at {self._name} {self._done:,} of {self._total:,}.")

    def advance(self, units: int, work: float | None = None) -> None:
        """Count finished units, report, and stop if that was asked for."""
        self._done += units
        self._worked += units if work is None else work
        self._report()
        self.check()

    def look(self, further: int) -> None:
        """Report with units that are finished but not counted yet, and stop if that was asked for.

        Args:
            further: such units, of what is at work now.
        """
        counted = self._done, self._worked
        self._done, self._worked = min(self._total, self._done + further), self._worked + further
        try:
            self._report()
        finally:
            self._done, self._worked = counted
        self.check()

    def _report(self) -> None:
        now = time.monotonic()
        if self._progress is None or (now - self._reported < 0.5 and self._done < self._total):
            return
        self._reported = now
        elapsed = now - self._start
        remaining = None
        if self._done >= self._total:
            remaining = 0.0
        elif self._worked > 0:
            remaining = elapsed * max(0.0, self._work - self._worked) / self._worked
        self._progress(Progress(self._name, self._done, self._total, elapsed, remaining))
