"""Jobs from outside a worker: submit, list, follow, cancel, retry. What the pages and the command line call.

No model is loaded here and nothing is encoded: the web process only writes down what is wanted and reads how it goes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import JudgeError
from pipeline.formats.messages import plural
from pipeline.jobs import progress as progress_records
from pipeline.jobs.durable import job_client
from pipeline.jobs.evaluation_request import EvaluationRequest, queue_for, resolve_request
from pipeline.jobs.job_words import failure_words, waiting_words
from pipeline.jobs.progress import LOG, PROGRESS, JobProgress, LogLine
from pipeline.jobs.queues import register_queues, shard_queue
from pipeline.jobs.site import Site
from pipeline.jobs.workflow_names import ENCODE_SHARD, EVALUATE
from store.access import workers
from store.errors import Conflict, NotFound
from store.records import WorkerRecord

if TYPE_CHECKING:
    from dbos import DBOSClient, WorkflowStatus

#: Attribute of a job that was given up after it was taken over too often; its value says why.
GIVEN_UP = "given_up"
#: Attribute of a job that waited for answers: artifact hashes of the files that were imported for it.
ANSWER_FILES = "answer_files"
#: Attribute of a job that had failed and is tried again.
FAILED_BEFORE = "failed_before"


class JobState(StrEnum):
    """How far a job is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    #: Its questions are in a batch file; it goes on when the answers are imported.
    ANSWERS = "waiting for answers"

    @property
    def ended(self) -> bool:
        """Whether nothing more happens by itself."""
        return self in (JobState.DONE, JobState.FAILED, JobState.CANCELLED, JobState.ANSWERS)


#: DBOS's states as ours.
STATES = {
    "DELAYED": JobState.WAITING,
    "ENQUEUED": JobState.WAITING,
    "PENDING": JobState.RUNNING,
    "SUCCESS": JobState.DONE,
    "ERROR": JobState.FAILED,
    "CANCELLED": JobState.CANCELLED,
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": JobState.FAILED,
}
_OPEN = ["DELAYED", "ENQUEUED", "PENDING"]


@dataclass(frozen=True)
class Job:
    """One evaluation that was asked for.

    Attributes:
        queue: where it waits or waited; "" once it was cancelled.
        position: place in its queue, 1 is next; None unless it waits.
        progress: None until it said something, and once it ended.
        run_id: the run it made.
        error: why it failed, in words; "" otherwise.
        waiting_for: why nothing happens, in words: no worker serves its queue, or it is not the first in it; "" unless
            it waits.
        worker: the worker that does or did it.
        attempts: how often it was started.
        pending: questions that wait for a batch's answers.
        batch: artifact hashes of the batch's files, in order.
    """

    id: str
    state: JobState
    request: EvaluationRequest
    created: datetime
    started: datetime | None
    ended: datetime | None
    queue: str
    position: int | None = None
    progress: JobProgress | None = None
    run_id: str | None = None
    error: str = ""
    waiting_for: str = ""
    worker: str = ""
    attempts: int = 0
    pending: int = 0
    batch: tuple[str, ...] = ()

    @property
    def can_cancel(self) -> bool:
        """Whether it is still to do or being done."""
        return not self.state.ended

    @property
    def can_retry(self) -> bool:
        """Whether it ended without a result."""
        return self.state in (JobState.FAILED, JobState.CANCELLED, JobState.ANSWERS)


def submit(site: Site, request: EvaluationRequest, *, priority: int = 10) -> str:
    """Ask for an evaluation; returns the job's id.

    The same benchmark version, contract, method and options always are the same job: one that waits, runs or is done
    is returned as it is, one that failed, was cancelled or waits for answers is tried again.

    Args:
        site: where the benchmark is stored.
        request: what to measure.
        priority: 1 or more; jobs with a smaller number go first.

    Raises:
        NotFound, BenchmarkError, ModelError, UsageError: as ``resolve_request``.
        Conflict: the person has too many jobs waiting or running.
        DatabaseUnavailable: the jobs cannot be reached.
    """
    evaluation = resolve_request(site, request)
    client = job_client(site)
    if client.list_workflows(workflow_ids=[evaluation.job_id], load_input=False, load_output=False):
        if job(site, evaluation.job_id).can_retry:
            retry(site, evaluation.job_id)
        return evaluation.job_id
    if request.person:
        _check_limit(site, client, request.person)
    asks = evaluation.options is not None and evaluation.options.asks
    queue = queue_for(site, evaluation.model, asks=asks)
    register_queues(client)
    client.enqueue(
        {
            "workflow_name": EVALUATE,
            "queue_name": queue,
            "workflow_id": evaluation.job_id,
            "priority": priority,
            "authenticated_user": request.person or "equirank",
        },
        evaluation.request.as_json(),
        queue,
    )
    return evaluation.job_id


def _check_limit(site: Site, client: DBOSClient, person: str) -> None:
    limit = site.settings.limit_jobs_per_person
    waiting = len(
        client.list_workflows(name=EVALUATE, status=list(_OPEN), user=person, load_input=False, load_output=False)
    )
    if waiting >= limit:
        raise Conflict(
            f"{plural(waiting, 'job is', 'jobs are')} waiting or running and the limit is {limit} "
            "(EQUIRANK_LIMIT_JOBS_PER_PERSON): cancel one, or wait until one is done"
        )


def list_jobs(site: Site, *, person: str | None = None, limit: int = 100) -> list[Job]:
    """Jobs, the newest first; those the site does for itself (the demo runs) are left out when a person is given.

    Raises:
        DatabaseUnavailable: the jobs cannot be reached.
    """
    found = job_client(site).list_workflows(name=EVALUATE, user=person, sort_desc=True, limit=limit)
    return _jobs(site, found)


def job(site: Site, job_id: str) -> Job:
    """One job.

    Raises:
        NotFound: there is none.
        DatabaseUnavailable: the jobs cannot be reached.
    """
    found = job_client(site).list_workflows(name=EVALUATE, workflow_ids=[job_id])
    if not found:
        raise NotFound(f"there is no job {job_id!r}")
    return _jobs(site, found)[0]


def counts(site: Site) -> dict[str, dict[JobState, int]]:
    """How many jobs wait and run, by queue; empty when nothing does.

    Raises:
        DatabaseUnavailable: the jobs cannot be reached.
    """
    found: dict[str, dict[JobState, int]] = {}
    for status in job_client(site).list_workflows(name=EVALUATE, status=list(_OPEN), load_input=False):
        queue = found.setdefault(status.queue_name or "", {})
        state = STATES[status.status]
        queue[state] = queue.get(state, 0) + 1
    return found


def log(site: Site, job_id: str) -> list[LogLine]:
    """What a job said so far, oldest first; a step that was done again says its lines again. No job says nothing.

    Raises:
        DatabaseUnavailable: the jobs cannot be reached.
    """
    from dbos import error as dbos_errors

    lines: list[LogLine] = []
    try:
        for value in job_client(site).read_stream(job_id, LOG, polling_interval_sec=0.01, timeout_seconds=0.02):
            lines.append(progress_records.from_stream(value))
    except (dbos_errors.DBOSStreamTimeoutError, dbos_errors.DBOSNonExistentWorkflowError):
        pass  # it runs and may say more, or was never asked for
    return lines


def cancel(site: Site, job_id: str) -> Job:
    """Stop a job: it is cancelled at once, and its worker stops after the batch it is at. A job that ended stays.

    Raises:
        NotFound: there is none.
        DatabaseUnavailable: the jobs cannot be reached.
    """
    job(site, job_id)
    job_client(site).cancel_workflow(job_id, cancel_children=True)
    return job(site, job_id)


def retry(site: Site, job_id: str) -> Job:
    """Start a failed or cancelled job again; what it had encoded is still there.

    A job that failed asks language models once more what they gave no valid answer to: that may be why it failed.

    Raises:
        NotFound: there is none.
        Conflict: it is waiting, running or done.
        DatabaseUnavailable: the jobs cannot be reached.
    """
    known = job(site, job_id)
    if not known.can_retry:
        raise Conflict(f"the job is {known.state}: only one that failed or was cancelled can be tried again")
    client = job_client(site)
    evaluation = resolve_request(site, known.request)
    asks = evaluation.options is not None and evaluation.options.asks
    queue = queue_for(site, evaluation.model, asks=asks)
    register_queues(client)
    # What it was given up for is over; the answers that were imported for it stay.
    kept = {name: value for name, value in _attributes(client, job_id).items() if name == ANSWER_FILES}
    if known.state is JobState.FAILED and asks:
        kept[FAILED_BEFORE] = True
    client.update_workflow_attributes(job_id, kept or None)
    for child in client.list_workflows(parent_workflow_id=job_id, name=ENCODE_SHARD, load_input=False):
        if child.status not in (*_OPEN, "SUCCESS"):
            client.rewind_workflow(child.workflow_id, queue_name=shard_queue(queue))
    client.rewind_workflow(job_id, queue_name=queue)
    return job(site, job_id)


def import_answers(site: Site, job_id: str, answers: Path) -> Job:
    """Give a job that waits for answers the file that a provider returned for its batch; it goes on at once.

    Lines are checked by the job, one by one, when it asks its questions; its log says what became of them.

    Raises:
        NotFound: there is no such job.
        Conflict: it does not wait for answers.
        JudgeError: the file cannot be read.
        DatabaseUnavailable: the jobs cannot be reached.
    """
    known = job(site, job_id)
    if known.state is not JobState.ANSWERS:
        raise Conflict(f"the job is {known.state}: only one that waits for answers can be given some")
    try:
        digest = site.artifacts.put_file(answers)
    except OSError as error:
        raise JudgeError(f"the answers file {answers} cannot be read: {error.strerror or error}") from None
    client = job_client(site)
    files = [name for name in _attributes(client, job_id).get(ANSWER_FILES, []) if name != digest]
    client.update_workflow_attributes(job_id, {ANSWER_FILES: [*files, digest]}, merge=True)
    return retry(site, job_id)


def answer_files(site: Site, job_id: str) -> list[str]:
    """Artifact hashes of the answers that were imported for a job, in order.

    Raises:
        DatabaseUnavailable: the jobs cannot be reached.
    """
    return [str(digest) for digest in _attributes(job_client(site), job_id).get(ANSWER_FILES, [])]


def asks_failed_again(site: Site, job_id: str) -> bool:
    """Whether a job asks again what is recorded as failed; see ``retry``.

    Raises:
        DatabaseUnavailable: the jobs cannot be reached.
    """
    return bool(_attributes(job_client(site), job_id).get(FAILED_BEFORE))


def _attributes(client: DBOSClient, job_id: str) -> dict[str, Any]:
    found = client.list_workflows(workflow_ids=[job_id], load_input=False, load_output=False)
    return dict(found[0].attributes or {}) if found else {}


def _jobs(site: Site, found: list[WorkflowStatus]) -> list[Job]:
    client = job_client(site)
    with site.database.reading() as session:
        living = workers.alive(session, site.settings.worker_lost_seconds)
    places = _places(client) if any(status.status in ("ENQUEUED", "DELAYED") for status in found) else {}
    return [_job(site, client, status, living, places) for status in found]


def _job(
    site: Site,
    client: DBOSClient,
    status: WorkflowStatus,
    living: list[WorkerRecord],
    places: dict[str, int],
) -> Job:
    given_up = (status.attributes or {}).get(GIVEN_UP, "")
    state = JobState.FAILED if given_up else STATES[status.status]
    arguments = status.input["args"] if status.input else ({}, "")
    made = Job(
        id=status.workflow_id,
        state=state,
        request=EvaluationRequest.from_json(dict(arguments[0])),
        created=_moment(status.created_at) or datetime.now(UTC),
        started=_moment(status.dequeued_at),
        ended=_moment(status.completed_at) if state.ended else None,
        queue=status.queue_name or "",
        worker=status.executor_id or "",
        attempts=status.recovery_attempts or 0,
    )
    if state is JobState.DONE:
        output = status.output or {}
        if output.get("pending"):
            waits = "the answers of its batch file; import them and it goes on"
            batch = tuple(output.get("batch", ()))
            return replace(made, state=JobState.ANSWERS, pending=output["pending"], batch=batch, waiting_for=waits)
        return replace(made, run_id=output.get("run_id"))
    if state is JobState.FAILED:
        return replace(made, error=given_up or failure_words(status))
    if state is JobState.WAITING:
        place = places.get(status.workflow_id)
        return replace(made, position=place, waiting_for=waiting_words(site, made.queue, place, living))
    if state is JobState.RUNNING:
        found = progress_records.from_event(client.get_event(status.workflow_id, PROGRESS, timeout_seconds=0))
        if all(worker.id != made.worker for worker in living):
            made = replace(made, waiting_for="its worker does not answer; another one, or the same after a restart, "
                           "takes the job up again")  # fmt: skip
        return replace(made, progress=_with_shards(client, status.workflow_id, found))
    return made


def _with_shards(client: DBOSClient, job_id: str, own: JobProgress | None) -> JobProgress | None:
    """The progress of a job whose shards are jobs of their own: theirs together, while there are any."""
    shards = client.list_workflows(parent_workflow_id=job_id, name=ENCODE_SHARD)
    if not shards or all(shard.status not in _OPEN for shard in shards):
        return own
    done = total = 0
    latest: JobProgress | None = None
    for shard in shards:
        part = shard.input["args"][1] if shard.input else {"start": 0, "stop": 0}
        size = part["stop"] - part["start"]
        total += size
        if shard.status == "SUCCESS":
            done += size
        elif shard.status == "PENDING":
            said = progress_records.from_event(client.get_event(shard.workflow_id, PROGRESS, timeout_seconds=0))
            if said is not None:
                done += max(0, said.done - part["start"])
                latest = said
    if latest is None:
        return own
    return JobProgress(latest.stage, done, total, None, latest.at)


def _places(client: DBOSClient) -> dict[str, int]:
    """Job → place in its queue, from 1; jobs of every kind stand in it."""
    waiting = client.list_workflows(status=["ENQUEUED", "DELAYED"], load_input=False, load_output=False)
    waiting.sort(key=lambda status: (status.priority or 0, status.created_at or 0))
    counts: dict[str, int] = {}
    places = {}
    for status in waiting:
        queue = status.queue_name or ""
        places[status.workflow_id] = counts[queue] = counts.get(queue, 0) + 1
    return places


def _moment(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)
