"""The workflow "statistics": what runs, boards and benchmarks lack, computed after they landed.

Workers ask for it themselves whenever they see something missing; nobody waits for it. Its steps store what they make
by content, so doing one again changes nothing. Only workers import this module; it registers the workflow with DBOS.
"""

from __future__ import annotations

from typing import Any

from dbos import DBOS

from pipeline.jobs import progress, statistics
from pipeline.jobs.durable import job_client
from pipeline.jobs.site import Site
from pipeline.jobs.worker_site import the_site
from pipeline.jobs.workflow_names import MAX_ATTEMPTS, STATISTICS

#: Before the jobs that people ask for: it takes seconds, and they look at what it makes.
PRIORITY = 1


@DBOS.workflow(name=STATISTICS, max_recovery_attempts=MAX_ATTEMPTS)
def compute_statistics(runs: list[str], boards: list[list[Any]], benchmarks: list[int] | None = None) -> dict[str, Any]:
    """Compute the statistics of runs, of boards, then of benchmarks; returns ``{"failures": […]}``, each in words."""
    failures = []
    for run_id in runs:
        failures += _compute([run_id], [], [])
    for board in boards:
        failures += _compute([], [board], [])
    for version in benchmarks or []:
        failures += _compute([], [], [version])
    return {"failures": failures}


@DBOS.step(name="statistics")
def _compute(runs: list[str], boards: list[list[Any]], benchmarks: list[int]) -> list[str]:
    named = tuple((int(version), str(name)) for version, name in boards)
    work = statistics.Pending(tuple(runs), named, tuple(map(int, benchmarks)))
    return statistics.compute(the_site(), work, progress.say)


def request_missing(site: Site, queue: str) -> str | None:
    """Ask for whatever is missing; returns the job's id, None when nothing is.

    The same missing things are always the same job, so that several workers may ask at once, and work that failed is
    not tried again until something else is missing too.
    """
    work = statistics.pending(site)
    if not work:
        return None
    job_id = f"statistics-{work.key}"
    client = job_client(site)
    if not client.list_workflows(workflow_ids=[job_id], load_input=False, load_output=False):
        client.enqueue(
            {
                "workflow_name": STATISTICS,
                "queue_name": queue,
                "workflow_id": job_id,
                "priority": PRIORITY,
                "authenticated_user": "equirank",
            },
            list(work.runs),
            [list(board) for board in work.boards],
            list(work.benchmarks),
        )
    return job_id
