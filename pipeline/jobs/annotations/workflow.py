"""The workflow "expand a benchmark": one step a chunk, or one step a round of a batch, then the new version.

A step may run twice and does no harm then: answers come from the cache, frames are named by content, and the new
version is the same one. What a job is asked to do (live or batch, failures again) stands in the expansion's row.

Only workers import this module; it registers the workflow with DBOS.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dbos import DBOS

from pipeline.jobs import progress
from pipeline.jobs.annotations.batch import export_words, write_round
from pipeline.jobs.annotations.retrying import forget_failures
from pipeline.jobs.annotations.working import (
    Work,
    alone,
    chunk_asker,
    chunk_words,
    finish,
    finish_stored,
    made_version,
    open_work,
    remaining,
    spent_words,
    work_chunk,
)
from pipeline.jobs.worker_site import the_site
from pipeline.jobs.workflow_names import ANNOTATE, MAX_ATTEMPTS


@DBOS.workflow(name=ANNOTATE, max_recovery_attempts=MAX_ATTEMPTS)
def annotate(annotation_id: str) -> dict[str, Any]:
    """Expand a benchmark.

    Returns:
        ``{"version_id": …}``; its value is null, and ``pending`` counts questions, where the answers of a batch are
        waited for.
    """
    plan = _plan(annotation_id)
    if plan["batched"]:
        pending = _round(annotation_id, plan["retry_failed"])
        if pending:
            return {"version_id": None, "pending": pending}
    else:
        for number in plan["chunks"]:
            _chunk(annotation_id, number, plan["retry_failed"])
    return {"version_id": _finish(annotation_id)}


@contextmanager
def _working(annotation_id: str) -> Generator[Work]:
    """The expansion as it is now, alone; waits for the command line, or for a step that is being stopped."""
    waited = False

    def wait() -> None:
        nonlocal waited
        if not waited:
            progress.say("something else on this machine works on this expansion; waiting for its end")
        waited = True
        progress.tell("waiting")

    with alone(the_site(), annotation_id, wait=wait):
        yield open_work(the_site(), annotation_id)


@DBOS.step(name="plan")
def _plan(annotation_id: str) -> dict[str, Any]:
    with _working(annotation_id) as begun:
        work = finish_stored(begun)
        record = work.record
        todo = [] if record.done else remaining(work, retry_failed=record.retry_failed)
        parent = work.library.parent.info
        progress.say(f"{parent.slug}@{parent.version} becomes version {record.version}: {work.settings.sentence}")
        if len(todo) < len(work.chunks):
            progress.say(f"{len(work.chunks) - len(todo):,} of {len(work.chunks):,} chunks are done already")
        return {
            "batched": record.batched and not record.done,
            "retry_failed": record.retry_failed,
            "chunks": [chunk.number for chunk in todo],
        }


@DBOS.step(name="chunk")
def _chunk(annotation_id: str, number: int, retry_failed: bool) -> None:
    with _working(annotation_id) as work:
        if work.record.done:
            return
        chunk = work.chunks[number]
        if retry_failed:
            again = forget_failures(work, chunk)
            progress.say(f"{again:,} failed questions of queries {chunk.start + 1:,} to {chunk.stop:,} are asked again")
        try:
            done = work_chunk(work, chunk, chunk_asker(work), progress=progress.reporter())
        except Exception:
            progress.say(f"stopped within queries {chunk.start + 1:,} to {chunk.stop:,}; {spent_words(work)}")
            raise
        assert done is not None, "a live model leaves nothing pending"
        progress.say(chunk_words(work, done))


@DBOS.step(name="round")
def _round(annotation_id: str, retry_failed: bool) -> int:
    with (
        _working(annotation_id) as work,
        tempfile.TemporaryDirectory(prefix="equirank-batch-") as folder,
    ):
        if work.record.done:
            return 0
        path = Path(folder) / "batch.jsonl"
        exported = write_round(work, path, retry_failed=retry_failed, progress=progress.reporter())
        for line in exported.words:
            progress.say(line)
        progress.say(export_words(exported))
        return exported.pending


@DBOS.step(name="finish")
def _finish(annotation_id: str) -> int:
    with _working(annotation_id) as work:
        made = made_version(the_site(), work.record) or finish(work)
        progress.say(f"stored as {made.name}")
        return made.id
