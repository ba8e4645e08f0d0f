"""Asking for analyses of a run over fields from outside a worker, and how far they are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.jobs.durable import job_client
from pipeline.jobs.evaluation_request import permissions, queue_for
from pipeline.jobs.fields.analyses import name_of
from pipeline.jobs.job_client import STATES, JobState
from pipeline.jobs.job_words import failure_words, waiting_words
from pipeline.jobs.queues import register_queues
from pipeline.jobs.site import Site
from pipeline.jobs.workflow_names import ANALYSE_FIELDS
from pipeline.retrieval.models import resolve_model
from store.access import runs, workers
from store.field_analysis_models import AnalysisKind

if TYPE_CHECKING:
    from dbos import WorkflowStatus

#: Somebody looks at the page and waits.
_PRIORITY = 5


@dataclass(frozen=True)
class AnalysisJob:
    """The last jobs for a run's analyses.

    Attributes:
        failures: in words, once all have ended; else empty.
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


def look(site: Site, run_id: str, kinds: Sequence[AnalysisKind | str] = ()) -> AnalysisJob | None:
    """How far the jobs for a run's analyses are, taken together; None where nobody asked.

    Of each kind the last job counts. While one of them runs or waits, that is what is said.

    Args:
        site: where the run is stored.
        run_id: the run.
        kinds: only these; empty for all.

    Raises:
        DatabaseUnavailable: the jobs cannot be reached.
    """
    found = job_client(site).list_workflows(name=ANALYSE_FIELDS, workflow_id_prefix=f"fields-{run_id}-", sort_desc=True)
    wanted = set(map(str, kinds))
    last: dict[str, WorkflowStatus] = {}
    for status in found:
        for kind in status.input["args"][1] if status.input else ():
            if not wanted or kind in wanted:
                last.setdefault(kind, status)
    if not last:
        return None
    states = {STATES[status.status] for status in last.values()}
    state = next(known for known in _MOST_TELLING if known in states)
    if state is JobState.WAITING:
        queue = next(status.queue_name or "" for status in last.values() if STATES[status.status] is state)
        with site.database.reading() as session:
            living = workers.alive(session, site.settings.worker_lost_seconds)
        return AnalysisJob(state, waiting_for=waiting_words(site, queue, None, living))
    if not state.ended:
        return AnalysisJob(state)
    failures = [words for kind, status in last.items() for words in _failures(kind, status)]
    return AnalysisJob(state, tuple(dict.fromkeys(failures)))


#: Of several jobs, the first of these states that one of them has is said.
_MOST_TELLING = (JobState.RUNNING, JobState.WAITING, JobState.FAILED, JobState.CANCELLED, JobState.DONE)


def _failures(kind: str, status: WorkflowStatus) -> list[str]:
    """Why a job that ended did not make this kind; empty where it did."""
    if STATES[status.status] is JobState.FAILED:
        return [failure_words(status)]
    said: list[str] = (status.output or {}).get("failures", [])
    return [words for words in said if words.startswith(f"{kind}: ")]
