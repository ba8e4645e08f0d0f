"""Trying a model in a worker: ask for it, and read what was found. The web process loads no model."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from pipeline.jobs.durable import job_client
from pipeline.jobs.evaluation_request import EvaluationRequest, queue_for, resolve_options
from pipeline.jobs.job_client import STATES, JobState
from pipeline.jobs.job_words import failure_words, waiting_words
from pipeline.jobs.queues import register_queues
from pipeline.jobs.site import Site
from pipeline.jobs.workflow_names import PROBE
from pipeline.retrieval.probe import Probe
from store.access import workers
from store.errors import NotFound

#: Before the evaluations that wait: it takes seconds, and somebody watches.
_PRIORITY = 1


@dataclass(frozen=True)
class ProbeJob:
    """A probe that was asked for.

    Attributes:
        found: once it is done.
        error: why the model cannot be used, in words; "" otherwise.
        waiting_for: why nothing happens, in words; "" unless it waits.
    """

    id: str
    state: JobState
    found: Probe | None = None
    error: str = ""
    waiting_for: str = ""


def ask(site: Site, request: EvaluationRequest) -> str:
    """Have the model of a request probed by a worker; returns the id to look it up by.

    Raises:
        ModelError, UsageError: the model is unknown or not allowed.
        DatabaseUnavailable: the jobs cannot be reached.
    """
    model, _, _ = resolve_options(site.settings, request)
    client = job_client(site)
    register_queues(client)
    probe_id = f"probe-{secrets.token_hex(12)}"
    client.enqueue(
        {
            "workflow_name": PROBE,
            "queue_name": queue_for(site, model),
            "workflow_id": probe_id,
            "priority": _PRIORITY,
            "authenticated_user": request.person or "equirank",
        },
        request.as_json(),
    )
    return probe_id


def look(site: Site, probe_id: str) -> ProbeJob:
    """How far a probe is.

    Raises:
        NotFound: there is none of this id.
        DatabaseUnavailable: the jobs cannot be reached.
    """
    found = job_client(site).list_workflows(name=PROBE, workflow_ids=[probe_id])
    if not found:
        raise NotFound(f"there is no probe {probe_id!r}")
    status = found[0]
    state = STATES[status.status]
    if state is JobState.DONE:
        values: dict[str, Any] = status.output or {}
        return ProbeJob(probe_id, state, Probe(**{**values, "notes": tuple(values["notes"])}))
    if state is JobState.FAILED:
        return ProbeJob(probe_id, state, error=failure_words(status))
    if state is JobState.WAITING:
        with site.database.reading() as session:
            living = workers.alive(session, site.settings.worker_lost_seconds)
        return ProbeJob(probe_id, state, waiting_for=waiting_words(site, status.queue_name or "", None, living))
    return ProbeJob(probe_id, state)
