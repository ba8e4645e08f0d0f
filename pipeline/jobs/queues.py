"""The queues that jobs wait in, and how many of each a worker does at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.errors import UsageError
from pipeline.formats.messages import listing

if TYPE_CHECKING:
    from dbos import DBOSClient

#: Queue → jobs that one worker does at a time: one model fills a processor, endpoints mostly wait.
QUEUES = {"cpu": 1, "gpu": 1, "llm": 4}
#: Seconds between two looks at a queue.
POLLING_SECONDS = 0.5


def shard_queue(queue: str) -> str:
    """Where the shards of a big job wait: apart from the jobs, which hold their own place while they wait for them."""
    return f"{queue}-shards"


def served(queues: tuple[str, ...]) -> list[str]:
    """The queues, with those of their jobs' shards."""
    return [name for queue in queues for name in (queue, shard_queue(queue))]


def parse_queues(text: str) -> tuple[str, ...]:
    """``cpu,gpu`` as names.

    Raises:
        UsageError: a queue is unknown, or there is none.
    """
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    unknown = [name for name in names if name not in QUEUES]
    if unknown or not names:
        raise UsageError(f"--queues takes {', '.join(QUEUES)}, separated by commas; found {listing(unknown) or 'none'}")
    return names


def register_queues(client: DBOSClient) -> None:
    """Make the queues known, all of them whoever serves them, so that jobs can be put in before a worker is there."""
    for queue, concurrency in QUEUES.items():
        for name in (queue, shard_queue(queue)):
            client.register_queue(
                name, worker_concurrency=concurrency, polling_interval_sec=POLLING_SECONDS, application_name="equirank"
            )
