"""Asking for analyses of a run over fields from outside a worker, and how far they are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.jobs.durable import job_client
from pipeline.jobs.evaluation_request import permissions, queue_for
from pipeline.jobs.fields.analyses import name_of
from pipeline.jobs.job_client import STATES, JobState, failure_words, waiting_words
from pipeline.jobs.queues import register_queues
from pipeline.jobs.site import Site
from pipeline.jobs.workflow_names import ANALYSE_FIELDS
from pipeline.retrieval.models import resolve_model
from store.access import runs, workers
from store.field_analysis_models import AnalysisKind

#: Somebody looks at the page and waits.
_PRIORITY = 5


@dataclass(frozen=True)
class AnalysisJob:
    """The last job for a run's analyses.

    Attributes:
        failures: in words, of a job that ended; else empty.
        waiting_for: why nothing happens, in words; "" unless it waits.
    """

    state: JobState
    failures: tuple[str, ...] = ()
    waiting_for: str = ""


def ask(site: Site, run_id: str, kinds: Sequence[AnalysisKind | str]) -> str:
    """Have analyses made by a worker; one that failed or was cancelled is tried again. Returns the job's id.

    Raises:
        DatabaseUnavailable: the jobs cannot be reached.
        ModelError: the run's model is not allowed any more.
        NotFound: there is no such run.
    """
    return enqueue(site, run_id, tuple(map(str, kinds)), priority=_PRIORITY, again=True)


def enqueue(site: Site, run_id: str, kinds: Sequence[str], *, priority: int, again: bool = False) -> str:
    """Put a job in unless the very same was asked for; ``again`` repeats one that ended without all results."""
    with site.database.reading() as session:
        run = runs.get(session, run_id)
    said = [sorted(kinds), [name_of(site, run, kind) for kind in sorted(kinds)]]
    job_id = f"fields-{run_id}-{hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]}"
    client = job_client(site)
    register_queues(client)
    settings = run.method_settings or {}
    model = resolve_model(str(settings.get("model")), permissions=permissions(site.settings))
    queue = queue_for(site, model)
    known = client.list_workflows(workflow_ids=[job_id], load_input=False)
    if known:
        if again and STATES[known[0].status].ended:
            client.rewind_workflow(job_id, queue_name=queue)
        return job_id
    client.enqueue(
        {
            "workflow_name": ANALYSE_FIELDS,
            "queue_name": queue,
            "workflow_id": job_id,
            "priority": priority,
            "authenticated_user": "equirank",
        },
        run_id,
        list(kinds),
    )
    return job_id


def look(site: Site, run_id: str) -> AnalysisJob | None:
    """How far the last job for a run's analyses is; None where nobody asked.

    Raises:
        DatabaseUnavailable: the jobs cannot be reached.
    """
    found = job_client(site).list_workflows(
        name=ANALYSE_FIELDS, workflow_id_prefix=f"fields-{run_id}-", sort_desc=True, limit=1, load_input=False
    )
    if not found:
        return None
    status = found[0]
    state = STATES[status.status]
    if state is JobState.DONE:
        return AnalysisJob(state, tuple((status.output or {}).get("failures", ())))
    if state is JobState.FAILED:
        return AnalysisJob(state, (failure_words(status),))
    if state is JobState.WAITING:
        with site.database.reading() as session:
            living = workers.alive(session, site.settings.worker_lost_seconds)
        return AnalysisJob(state, waiting_for=waiting_words(site, status.queue_name or "", None, living))
    return AnalysisJob(state)
