"""Expansions from outside a worker: ask for one, start, stop and follow it. What pages and the command line call.

No model is loaded here and nobody is asked.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import BenchmarkError, JudgeError, UsageError
from pipeline.formats.benchmark_toml import name_problems
from pipeline.jobs.annotations.following import (
    QUEUE,
    AnnotationProgress,
    job_id_of,
    list_annotations,
    look,
)
from pipeline.jobs.annotations.pools import check_members
from pipeline.jobs.annotations.working import require_open
from pipeline.jobs.durable import job_client
from pipeline.jobs.job_client import STATES, JobState
from pipeline.jobs.llm_answers import site_budget
from pipeline.jobs.queues import register_queues
from pipeline.jobs.site import Site
from pipeline.jobs.workflow_names import ANNOTATE
from pipeline.toolex.settings import ToolexSettings, settings_from_json
from store.access import annotations as stored
from store.access import benchmarks
from store.access.annotations import AnnotationRecord
from store.annotation_models import Annotation
from store.errors import Conflict
from store.records import BenchmarkRecord

__all__ = [
    "AnnotationProgress", "AnnotationRequest", "cancel", "define", "import_answers", "list_annotations", "look",
    "set_budget", "start",
]  # fmt: skip

#: After evaluations, which end sooner.
_PRIORITY = 20
#: The most that a budget may be, in US dollars and in calls.
MOST_DOLLARS = 1_000_000
MOST_CALLS = 1_000_000_000


@dataclass(frozen=True)
class AnnotationRequest:
    """Expand a benchmark.

    Attributes:
        benchmark: ``slug`` or ``slug@version`` of the stored parent.
        version: name of the new version, free in the slug.
        settings: how.
        max_cost: the most it may cost in US dollars; None takes the operator's limit.
        max_calls: the most calls; None takes the operator's limit.
        person: who asks; "" for the command line.
    """

    benchmark: str
    version: str
    settings: ToolexSettings
    max_cost: float | None = None
    max_calls: int | None = None
    person: str = ""


def define(site: Site, request: AnnotationRequest) -> AnnotationRecord:
    """Write down what is asked for; nobody is asked yet.

    The same parent, settings and version are the same expansion; one that is known keeps its budget (``set_budget``
    changes it) and whatever it has done.

    Raises:
        BenchmarkError: the parent has no content.
        Conflict: the new version's name is taken.
        ModelError: a retriever is unknown or not allowed.
        NotFound: the parent is not stored.
        UsageError: the version or the budget cannot be used.
    """
    with site.database.reading() as session:
        parent = benchmarks.get(session, request.benchmark)
    if not parent.has_content:
        raise BenchmarkError(
            f"{parent.name} carries only figures printed in a paper, so there is nothing to expand: import its "
            "queries, tools and labels with `equirank benchmark import`"
        )
    problems = name_problems(parent.slug, request.version)
    if problems:
        raise UsageError(f"the new version cannot be called so: {'; '.join(problems)}")
    check_budget(request.max_cost, request.max_calls)
    check_members(site, request.settings.pool)
    settings_hash = request.settings.hash
    row = Annotation(
        id=_id(parent, request.version, settings_hash),
        benchmark_version_id=parent.id,
        version=request.version,
        settings=request.settings.as_json(),
        settings_hash=settings_hash,
        max_cost=request.max_cost,
        max_calls=request.max_calls,
        person=request.person,
    )
    with site.database.session() as session:
        return stored.add(session, row)


def _id(parent: BenchmarkRecord, version: str, settings_hash: str) -> str:
    said = [parent.slug, parent.version, parent.content_hash, version, settings_hash]
    return hashlib.sha256(f"equirank annotation 1\n{json.dumps(said)}".encode()).hexdigest()[:32]


def check_budget(max_cost: float | None, max_calls: int | None) -> None:
    """Refuse limits that are none.

    Raises:
        UsageError: one is negative, no number or beyond what may be set.
    """
    if max_cost is not None and not 0 <= max_cost <= MOST_DOLLARS:
        raise UsageError(f"the budget is {max_cost:,} US dollars: give 0 to {MOST_DOLLARS:,}, or none")
    if max_calls is not None and not 0 <= max_calls <= MOST_CALLS:
        raise UsageError(f"the budget is {max_calls:,} calls: give 0 to {MOST_CALLS:,}, or none")


def require_limit(site: Site, max_cost: float | None, max_calls: int | None) -> None:
    """Refuse to ask models without a limit, of the expansion or of the operator.

    Raises:
        UsageError: there is none.
    """
    budget = site_budget(site.settings, "", max_cost=max_cost, max_calls=max_calls)
    if budget.max_cost is None and budget.max_calls is None:
        raise UsageError(
            "say what it may use, in US dollars, in calls or in both: --budget USD, --max-calls N, or the budget on "
            "the page Annotate (`equirank annotate estimate` tells what to expect); models without a price are "
            "counted in calls only"
        )


def start(site: Site, annotation_id: str, *, batch: bool = False, retry_failed: bool = False) -> str:
    """Have a worker go on with an expansion; returns the job's id.

    A job that waits or runs goes on as it is; one that ended without the new version is taken up where it was.

    Args:
        site: where it is stored.
        annotation_id: the expansion, or the beginning of its id.
        batch: write the questions into batch files and wait for their answers instead of asking.
        retry_failed: ask once more what is recorded as failed, also in parts that are finished.

    Raises:
        Conflict: the new version is made.
        DatabaseUnavailable: the jobs cannot be reached.
        ModelError: a retriever is not allowed any more.
        NotFound: there is no such expansion.
        UsageError: models would be asked without any limit.
    """
    from dbos import error as dbos_errors

    with site.database.reading() as session:
        record = stored.get(session, annotation_id)
    require_open(record, retry_failed=retry_failed)
    check_members(site, settings_from_json(record.settings).pool)
    if not batch:
        require_limit(site, record.max_cost, record.max_calls)
    job_id = job_id_of(record.id)
    client = job_client(site)
    register_queues(client)
    found = client.list_workflows(workflow_ids=[job_id], load_input=False, load_output=False)
    if found and not STATES[found[0].status].ended:
        return job_id
    with site.database.session() as session:
        stored.set_way(session, record.id, batched=batch, retry_failed=retry_failed)
    if not found:
        # Somebody who starts it at the same moment enqueues the same job, which then is there once.
        client.enqueue(
            {
                "workflow_name": ANNOTATE,
                "queue_name": QUEUE,
                "workflow_id": job_id,
                "priority": _PRIORITY,
                "authenticated_user": record.person or "equirank",
            },
            record.id,
        )
        return job_id
    client.update_workflow_attributes(job_id, None)
    try:
        client.rewind_workflow(job_id, queue_name=QUEUE)
    except dbos_errors.DBOSException:
        # Somebody else was first: then it waits or runs.
        again = client.list_workflows(workflow_ids=[job_id], load_input=False, load_output=False)
        if not again or STATES[again[0].status].ended:
            raise
    return job_id


def cancel(site: Site, annotation_id: str) -> AnnotationProgress:
    """Stop the job of an expansion: it ends after the part it is at, and what was answered is kept.

    Raises:
        DatabaseUnavailable: the jobs cannot be reached.
        NotFound: there is no such expansion.
    """
    with site.database.reading() as session:
        record = stored.get(session, annotation_id)
    client, job_id = job_client(site), job_id_of(record.id)
    if client.list_workflows(workflow_ids=[job_id], load_input=False, load_output=False):
        client.cancel_workflow(job_id, cancel_children=True)
    return look(site, record.id)


def set_budget(
    site: Site, annotation_id: str, max_cost: float | None = None, max_calls: int | None = None
) -> AnnotationRecord:
    """Change the limits of an expansion; a running job keeps to them from its next part on.

    Args:
        site: where it is stored.
        annotation_id: the expansion, or the beginning of its id.
        max_cost: US dollars over all its jobs; None takes the operator's limit.
        max_calls: calls over all its jobs; None takes the operator's limit.

    Raises:
        NotFound: there is no such expansion.
        UsageError: a limit is negative, no number or beyond what may be set.
    """
    check_budget(max_cost, max_calls)
    with site.database.session() as session:
        record = stored.get(session, annotation_id)
        return stored.set_budget(session, record.id, max_cost, max_calls)


def import_answers(site: Site, annotation_id: str, path: Path) -> None:
    """Give an expansion that waits for a batch's answers the file that the provider returned; its job goes on.

    Lines are checked by the job, one by one, when it asks its questions; its log says what became of them.

    Raises:
        Conflict: it waits for no answers.
        DatabaseUnavailable: the jobs cannot be reached.
        JudgeError: the file cannot be read.
        NotFound: there is no such expansion.
    """
    known = look(site, annotation_id)
    if known.state is not JobState.ANSWERS:
        state = "not started" if known.state is None else known.state
        raise Conflict(f"the expansion is {state}: only one that waits for answers can be given some")
    try:
        digest = site.artifacts.put_file(path)
    except OSError as error:
        raise JudgeError(f"the answers file {path} cannot be read: {error.strerror or error}") from None
    with site.database.session() as session:
        stored.add_answers(session, known.record.id, digest, artifacts=site.artifacts)
    start(site, known.record.id, batch=True)
