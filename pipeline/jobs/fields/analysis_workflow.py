"""The workflow "analyse a run over fields"; workers ask for what is missing themselves, pages for the rest.

Only workers import this module; it registers the workflow with DBOS.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from dbos import DBOS

from pipeline.errors import EquiRankError
from pipeline.jobs import progress
from pipeline.jobs.fields import analyses as field_analyses
from pipeline.jobs.fields.analysis_requests import enqueue
from pipeline.jobs.site import Site
from pipeline.jobs.worker_site import the_site
from pipeline.jobs.workflow_names import ANALYSE_FIELDS, MAX_ATTEMPTS

#: After everything that a person asks for, and after the demo runs.
_PRIORITY = 200


@DBOS.workflow(name=ANALYSE_FIELDS, max_recovery_attempts=MAX_ATTEMPTS)
def analyse_fields(run_id: str, kinds: list[str]) -> dict[str, Any]:
    """Make the analyses of a run one by one; returns ``{"failures": […]}``, each in words."""
    failures: list[str] = []
    for kind in kinds:
        failures += _analyse(run_id, kind)
    return {"failures": failures}


@DBOS.step(name="analyse")
def _analyse(run_id: str, kind: str) -> list[str]:
    if field_analyses.is_current(the_site(), run_id, kind):
        return []  # another job made it while this one waited
    return field_analyses.compute(the_site(), run_id, [kind], progress.say, progress.reporter())


def request_missing(site: Site) -> None:
    """Ask for what runs lack, each kind in a job of its own, so that what a person asks for goes between them.

    The same missing thing is always the same job, and a failed one is not repeated.
    """
    for run_id, kinds in field_analyses.pending(site).items():
        # A run whose model is not allowed any more must not keep the others from being analysed.
        with suppress(EquiRankError):
            for kind in kinds:
                enqueue(site, run_id, (kind,), priority=_PRIORITY)
