"""Measured runs of the demo benchmarks, made in the test's own process by the code that jobs run."""

from __future__ import annotations

from pipeline.jobs import measured_runs, measuring
from pipeline.jobs.evaluation_request import EvaluationRequest, resolve_request
from pipeline.jobs.fields import runs as field_runs
from pipeline.jobs.fields.methods import FieldMethod
from pipeline.jobs.site import Site


def measured(site: Site, method: str = "full-doc", **said: str) -> str:
    """Measure BM25 on the demo tools and publish the run; returns its id."""
    request = EvaluationRequest("demo-tools@1", "bm25s", method, publish=True, person="", **said)
    evaluation = resolve_request(site, request)
    if isinstance(evaluation.method, FieldMethod):
        ranked = field_runs.measure_fields(site, evaluation)
    else:
        ranked = measuring.rank(site, evaluation)
    return measured_runs.store_run(site, evaluation, ranked)
