"""Jobs beside evaluations that wait or run: analyses, expansions and what the site does for itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from pipeline.jobs.durable import job_client
from pipeline.jobs.job_client import STATES, JobState
from pipeline.jobs.job_words import kind_words
from pipeline.jobs.site import Site
from pipeline.jobs.workflow_names import ANALYSE_FIELDS, ANNOTATE, PROBE, STATISTICS


@dataclass(frozen=True)
class OtherJob:
    """A job that is no evaluation and has not ended.

    Attributes:
        kind: what it is, as ``an expansion``.
        state: ``WAITING`` or ``RUNNING``.
        since: when it was asked for, or taken up; None where nobody wrote that down.
    """

    kind: str
    state: JobState
    since: datetime | None


def open_jobs(site: Site) -> list[OtherJob]:
    """Those that run, then those that wait, the oldest first.

    Raises:
        DatabaseUnavailable: the jobs cannot be reached.
    """
    found = job_client(site).list_workflows(
        name=[ANALYSE_FIELDS, ANNOTATE, STATISTICS, PROBE],
        status=[name for name, state in STATES.items() if not state.ended],
        load_input=False,
        load_output=False,
    )
    made = []
    for status in found:
        state = STATES[status.status]
        moment = status.dequeued_at if state is JobState.RUNNING else status.created_at
        since = None if moment is None else datetime.fromtimestamp(moment / 1000, UTC)
        made.append(OtherJob(kind_words(status.name), state, since))
    return sorted(made, key=lambda one: one.state is not JobState.RUNNING)
