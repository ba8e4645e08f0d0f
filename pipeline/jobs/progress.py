"""What a job says while it runs: how far it is (an event) and its log (a stream), both kept by DBOS.

Writing from a step fails once the job was cancelled or taken over by another worker: that is how its work stops.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from pipeline.retrieval.progress import Progress

#: Name of the event and of the stream.
PROGRESS = "progress"
LOG = "log"

#: Stages in the order they come, with what a reader sees.
STAGES = {
    "checking": "checking the model",
    "standardizing": "putting documents into fields",
    "rewriting": "rewriting queries",
    "documents": "encoding documents",
    "queries": "encoding queries",
    "training scores": "scoring what is learned from",
    "training": "learning",
    "search": "ranking",
    "scoring": "scoring",
    "waiting": "waiting",
    "decompose": "decomposing queries",
    "verify": "verifying candidates",
    "audit": "auditing combinations",
}


@dataclass(frozen=True)
class JobProgress:
    """How far a job is.

    Attributes:
        stage: a key of ``STAGES``.
        done, total: units of the stage (texts, queries, folds).
        remaining_s: estimated seconds to the end of the stage, None when not known.
        at: when this was written.
    """

    stage: str
    done: int
    total: int
    remaining_s: float | None
    at: datetime

    @property
    def fraction(self) -> float:
        """Of the stage, 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else 0.0

    @property
    def words(self) -> str:
        """The stage as a reader sees it."""
        return STAGES.get(self.stage, self.stage)


@dataclass(frozen=True)
class LogLine:
    """One line of a job's log."""

    at: datetime
    text: str


def as_event(progress: JobProgress) -> dict[str, Any]:
    """The JSON of an event."""
    return {**asdict(progress), "at": progress.at.timestamp()}


def from_event(value: Any) -> JobProgress | None:
    """The progress of an event's JSON; None when there was none."""
    if not isinstance(value, dict):
        return None
    return JobProgress(**{**value, "at": datetime.fromtimestamp(value["at"], UTC)})


def from_stream(value: Any) -> LogLine:
    """The line of a stream's JSON."""
    return LogLine(datetime.fromtimestamp(value["at"], UTC), str(value["text"]))


def say(text: str) -> None:
    """Add a line to the log of the job whose step this is."""
    from dbos import DBOS

    DBOS.write_stream(LOG, {"at": time.time(), "text": text})


def tell(stage: str, done: int = 0, total: int = 0, remaining_s: float | None = None) -> None:
    """Say how far the job whose step this is has come."""
    from dbos import DBOS

    DBOS.set_event(PROGRESS, as_event(JobProgress(stage, done, total, remaining_s, datetime.now(UTC))))


def reporter(offset: int = 0, total: int | None = None) -> Callable[[Progress], None]:
    """Passes the progress of a computation on to its job.

    Args:
        offset: units of the stage that earlier steps finished.
        total: units of the whole stage, where this step does a part.
    """

    def report(progress: Progress) -> None:
        whole = progress.total if total is None else total
        remaining = progress.remaining_s
        if total is not None and remaining is not None and progress.done and progress.elapsed_s > 0:
            left = max(0, whole - offset - progress.done)
            in_part = max(1, progress.total - progress.done)
            remaining = remaining * left / in_part if progress.done < progress.total else None
        tell(progress.stage, offset + progress.done, whole, remaining)

    return report
