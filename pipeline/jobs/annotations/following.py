"""How far expansions are: their rows, their chunks, their job and what they used, as one record."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.errors import BudgetExceeded
from pipeline.jobs import progress as progress_records
from pipeline.jobs.durable import job_client
from pipeline.jobs.job_client import GIVEN_UP, STATES, JobState
from pipeline.jobs.job_words import error_name, failure_words, waiting_words
from pipeline.jobs.llm_answers import StoredAnswers, site_budget
from pipeline.jobs.progress import PROGRESS, JobProgress
from pipeline.jobs.site import Site
from pipeline.llm.stores import Budget, MeterLine, Spent
from store.access import annotations as stored
from store.access import benchmarks, workers
from store.access.annotations import AnnotationRecord, ChunkRecord
from store.records import BenchmarkRecord

if TYPE_CHECKING:
    from dbos import WorkflowStatus

#: The queue of expansions: they mostly wait for a provider.
QUEUE = "llm"
#: Queries of a chunk: some thousand verifications, minutes at a provider.
CHUNK = 32


@dataclass(frozen=True)
class AnnotationProgress:
    """How far an expansion is.

    Attributes:
        record: the expansion.
        parent: ``slug@version`` of what is expanded.
        state: of its last job; None where it was never started. ``ANSWERS`` also where the command line wrote a batch
            file, ``DONE`` also where the command line made the version.
        chunks_done, chunks: parts that are through all stages, and of how many.
        queries_done, queries: the same in queries.
        failures: questions without a valid answer by stage, of the finished parts.
        spent: what it has used so far.
        budget: the limits that hold: its own within the operator's.
        meter: use by stage and judge.
        job: how far the running job is; None unless it runs.
        error: why the last job failed, in words; "" otherwise.
        over_budget: whether it failed because its next call could exceed the budget.
        waiting_for: what it waits for, in words; "" unless it waits.
        pending: questions whose answers are waited for.
        batch: artifact hashes of the batch files that hold them, in order.
    """

    record: AnnotationRecord
    parent: str
    state: JobState | None
    chunks_done: int
    chunks: int
    queries_done: int
    queries: int
    failures: dict[str, int]
    spent: Spent
    budget: Budget
    meter: list[MeterLine]
    job: JobProgress | None = None
    error: str = ""
    over_budget: bool = False
    waiting_for: str = ""
    pending: int = 0
    batch: tuple[str, ...] = ()

    @property
    def can_start(self) -> bool:
        """Whether there is something to do and no job does it."""
        return not self.record.done and (self.state is None or self.state.ended)

    @property
    def can_cancel(self) -> bool:
        """Whether a job waits or runs."""
        return self.state is not None and not self.state.ended


def job_id_of(annotation_id: str) -> str:
    """The job of an expansion: always the same one, so that no two work on it."""
    return f"annotate-{annotation_id}"


def look(site: Site, annotation_id: str) -> AnnotationProgress:
    """How far an expansion is.

    Raises:
        DatabaseUnavailable: the jobs cannot be reached.
        NotFound: there is no such expansion.
    """
    with site.database.reading() as session:
        record = stored.get(session, annotation_id)
    return _progress(site, [record])[0]


def list_annotations(site: Site) -> list[AnnotationProgress]:
    """Every expansion, the newest first.

    Raises:
        DatabaseUnavailable: the jobs cannot be reached.
    """
    with site.database.reading() as session:
        records = stored.list_records(session)
    return _progress(site, records)


def _progress(site: Site, records: list[AnnotationRecord]) -> list[AnnotationProgress]:
    if not records:
        return []
    client = job_client(site)
    ids = [job_id_of(record.id) for record in records]
    jobs = {status.workflow_id: status for status in client.list_workflows(workflow_ids=ids, load_input=False)}
    with site.database.reading() as session:
        parents = {record.benchmark_version_id for record in records}
        versions = {version: benchmarks.get_by_id(session, version) for version in parents}
        chunks = {record.id: stored.chunks(session, record.id) for record in records}
    return [
        _one(site, record, versions[record.benchmark_version_id], chunks[record.id], jobs.get(job_id_of(record.id)))
        for record in records
    ]


def _one(
    site: Site,
    record: AnnotationRecord,
    parent: BenchmarkRecord,
    chunks: list[ChunkRecord],
    status: WorkflowStatus | None,
) -> AnnotationProgress:
    answers = StoredAnswers(site.database)
    queries = parent.queries or 0
    failures: dict[str, int] = {}
    for chunk in chunks:
        for stage, count in chunk.failures.items():
            failures[stage] = failures.get(stage, 0) + count
    state, error, waiting_for, job = _state(site, record, status)
    waits = state is JobState.ANSWERS
    return AnnotationProgress(
        record=record,
        parent=parent.name,
        state=state,
        chunks_done=len(chunks),
        chunks=math.ceil(queries / CHUNK),
        queries_done=sum(chunk.queries for chunk in chunks),
        queries=queries,
        failures=failures,
        spent=answers.spent(record.id),
        budget=site_budget(site.settings, record.id, max_cost=record.max_cost, max_calls=record.max_calls),
        meter=answers.meter(record.id),
        job=job,
        error=error,
        over_budget=_over_budget(state, status),
        waiting_for=waiting_for,
        pending=record.pending if waits else 0,
        batch=record.batch if waits else (),
    )


def _state(
    site: Site, record: AnnotationRecord, status: WorkflowStatus | None
) -> tuple[JobState | None, str, str, JobProgress | None]:
    """State, error, what is waited for and the running job's progress."""
    if record.done:
        return JobState.DONE, "", "", None
    state = None if status is None else STATES[status.status]
    if status is not None and state is JobState.WAITING:
        with site.database.reading() as session:
            living = workers.alive(session, site.settings.worker_lost_seconds)
        return state, "", waiting_words(site, status.queue_name or QUEUE, None, living), None
    if status is not None and state is JobState.RUNNING:
        event = job_client(site).get_event(status.workflow_id, PROGRESS, timeout_seconds=0)
        with site.database.reading() as session:
            living = workers.alive(session, site.settings.worker_lost_seconds)
        silent = all(worker.id != status.executor_id for worker in living)
        words = "its worker does not answer; another one, or the same after a restart, takes the job up again"
        return state, "", words if silent else "", progress_records.from_event(event)
    if record.pending and (status is None or state is JobState.DONE or _ended_before(status, record)):
        return JobState.ANSWERS, "", "the answers of its batch; import them and it goes on", None
    if status is None or state is JobState.DONE:
        # A batch's job ended and the command line imported its answers: it is to be started again.
        return (None if status is None else JobState.CANCELLED), "", "", None
    given_up = (status.attributes or {}).get(GIVEN_UP, "")
    if given_up:
        return JobState.FAILED, str(given_up), "", None
    return state, failure_words(status) if state is JobState.FAILED else "", "", None


def _over_budget(state: JobState | None, status: WorkflowStatus | None) -> bool:
    return state is JobState.FAILED and status is not None and error_name(status) == BudgetExceeded.__name__


def _ended_before(status: WorkflowStatus, record: AnnotationRecord) -> bool:
    """Whether a job had ended when the expansion last moved: then the command line wrote the batch it waits for."""
    moment = status.completed_at or status.updated_at or 0
    return moment / 1000 < record.updated_at.timestamp()
