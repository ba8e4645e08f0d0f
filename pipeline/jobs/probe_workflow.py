"""The workflow "probe": load a model in a worker and look at its first answers, before anybody waits for a job.

Only workers import this module; it registers the workflow with DBOS.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dbos import DBOS

from pipeline.jobs.evaluation_request import EvaluationRequest, resolve_options
from pipeline.jobs.worker_site import the_site
from pipeline.jobs.workflow_names import PROBE
from pipeline.retrieval.probe import probe_model

#: A model that ends its worker at the first attempt does so at the next.
_ATTEMPTS = 2


@DBOS.workflow(name=PROBE, max_recovery_attempts=_ATTEMPTS)
def probe(request: dict[str, Any]) -> dict[str, Any]:
    """Probe the model of a request; returns the attributes of ``pipeline.retrieval.probe.Probe``.

    Args:
        request: ``EvaluationRequest.as_json()``.
    """
    return _probe(request)


@DBOS.step(name="probe")
def _probe(request: dict[str, Any]) -> dict[str, Any]:
    asked = EvaluationRequest.from_json(request)
    model, _, _ = resolve_options(the_site().settings, asked)
    return asdict(probe_model(model, asked.preset))
