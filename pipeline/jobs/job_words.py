"""What a job waits for, and why one failed, in words."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pipeline.errors import EquiRankError
from pipeline.formats.messages import plural
from pipeline.jobs.durable import is_embedded, job_client
from pipeline.jobs.queues import QUEUES
from pipeline.jobs.site import Site
from pipeline.jobs.workflow_names import (
    ANALYSE_FIELDS,
    ANNOTATE,
    ENCODE_SHARD,
    EVALUATE,
    MAX_ATTEMPTS,
    PROBE,
    STATISTICS,
)
from store.errors import StoreError
from store.records import WorkerRecord

if TYPE_CHECKING:
    from dbos import WorkflowStatus


#: Workflow → what a job of it is.
_KINDS = {
    EVALUATE: "an evaluation",
    ENCODE_SHARD: "a part of an evaluation",
    ANALYSE_FIELDS: "an analysis of an MFTR run",
    ANNOTATE: "an expansion",
    STATISTICS: "the statistics of boards",
    PROBE: "a test of a model",
}
#: Jobs that are named where a worker is at several.
_MOST_NAMED = 3


def waiting_words(site: Site, queue: str, place: int | None, living: Iterable[WorkerRecord]) -> str:
    """What a job that waits in a queue is waiting for.

    Args:
        site: where the jobs are.
        queue: that it waits in.
        place: in the queue, from 1; None where nobody counted.
        living: the workers that are seen alive.

    Raises:
        DatabaseUnavailable: the jobs cannot be reached.
    """
    serving = [worker for worker in living if queue in worker.queues]
    if not serving:
        if is_embedded(site):
            return "the worker is not running; `equirank serve` starts it and starts it again when it stops"
        return f"no worker serves the queue {queue}; start one with `equirank worker --queues {queue}`"
    if place is not None and place > 1:
        return f"{plural(place - 1, 'job is', 'jobs are')} before it"
    # Whatever they are: the site does jobs for itself too, which no list of a person's jobs shows.
    doing = job_client(site).list_workflows(status="PENDING", queue_name=queue, load_input=False, load_output=False)
    busy = Counter(status.executor_id for status in doing)
    if any(busy[worker.id] < QUEUES.get(queue, 1) for worker in serving):
        return "the next free worker takes it"
    first = sorted((one for one in doing if one.executor_id in {worker.id for worker in serving}), key=_begun)
    said = [f"{kind_words(one.name)}{_so_far(one.dequeued_at)}" for one in first[:_MOST_NAMED]]
    if len(first) > _MOST_NAMED:
        said.append(f"{len(first) - _MOST_NAMED} more")
    named = " and ".join([", ".join(said[:-1]), said[-1]]) if len(said) > 1 else said[0]
    who = "the worker is" if len(serving) == 1 else f"all {len(serving)} workers are"
    return f"{who} at {named} first"


def kind_words(name: str) -> str:
    """What a job of this workflow is: ``an evaluation``."""
    return _KINDS.get(name, "another job")


def _begun(status: WorkflowStatus) -> int:
    return status.dequeued_at or 0


def _so_far(begun: int | None) -> str:
    """How long a job has been done, with brackets; empty where nobody wrote down when it was taken up.

    Args:
        begun: milliseconds of the epoch.
    """
    if begun is None:
        return ""
    minutes = int(max(time.time() - begun / 1000, 0) // 60)
    hours, rest = divmod(minutes, 60)
    parts = ([f"{hours} h"] if hours else []) + ([f"{rest} min"] if rest or not hours else [])
    return f" ({' '.join(parts) if minutes else 'less than a minute'} so far)"


def failure_words(status: WorkflowStatus) -> str:
    """Why a job failed, as its user reads it."""
    if status.status == "MAX_RECOVERY_ATTEMPTS_EXCEEDED":
        return (
            f"the worker died each of the {MAX_ATTEMPTS} times it did this job, as when the machine's memory is too "
            "small for the model: choose a smaller model or a machine with more memory, then try again"
        )
    error: Any = status.error
    name, message = error_name(status), str(getattr(error, "message", error))
    if name in _own_errors():
        return message
    if name == "DBOSAwaitedWorkflowCancelledError":
        return "a part of the job was cancelled; try again"
    if name in ("MemoryError", "OutOfMemoryError"):
        return "the worker ran out of memory: choose a smaller model or a machine with more memory, then try again"
    return f"it failed unexpectedly ({name}: {message}): a fault of the program, not of the request; please report it"


def error_name(status: WorkflowStatus) -> str:
    """The class of the error that a job failed with, as ``BudgetExceeded``."""
    return str(getattr(status.error, "name", type(status.error).__name__))


def _own_errors() -> set[str]:
    names: set[str] = set()
    todo: list[type[Exception]] = [EquiRankError, StoreError]
    while todo:
        kind = todo.pop()
        names.add(kind.__name__)
        todo += kind.__subclasses__()
    return names
