"""Runs that the site makes by itself, so that every plot has data: BM25, MiniLM, the adapter and MFTR on the demos."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import replace

from pipeline.errors import EquiRankError
from pipeline.jobs.evaluation_request import EvaluationRequest
from pipeline.jobs.first_start import DEMO_BENCHMARKS
from pipeline.jobs.job_client import submit
from pipeline.jobs.site import Site
from store.access import benchmarks
from store.cache import FileCache
from store.errors import StoreError

#: After everything that a person asks for.
_PRIORITY = 100

_MEASURED = (
    EvaluationRequest("", "bm25s"),
    EvaluationRequest("", "bm25s", "sub-query"),
    EvaluationRequest("", "minilm-l6"),
    EvaluationRequest("", "minilm-l6", "sub-query"),
    EvaluationRequest("", "minilm-l6", "adapter"),
    EvaluationRequest("", "minilm-l6", "adapter", positives="equivalents"),
    # With the rule-based standardizer and the original query, which need no language model.
    EvaluationRequest("", "bm25s", "mftr", method_preset="paper"),
    EvaluationRequest("", "bm25s", "mftr", method_preset="v2"),
    EvaluationRequest("", "minilm-l6", "mftr", method_preset="paper"),
    EvaluationRequest("", "minilm-l6", "mftr", method_preset="v2"),
)


def demo_requests(site: Site) -> list[EvaluationRequest]:
    """What is measured on the demo benchmarks that are stored, published at once."""
    with site.database.reading() as session:
        stored = [record for record in benchmarks.list_records(session) if record.is_demo]
    names = [record.name for record in stored if record.slug in {f"demo-{name}" for name in DEMO_BENCHMARKS}]
    return [replace(request, benchmark=name, publish=True, person="") for request in _MEASURED for name in names]


def submit_demo_runs(site: Site) -> list[str]:
    """Ask for the demo runs, unless that was done before or is switched off; returns the ids of their jobs."""
    if not site.settings.demo_runs:
        return []
    requests = demo_requests(site)
    stamps = FileCache.from_settings(site.settings, "prepared")
    stamp = "demo-runs-" + hashlib.sha256(repr(requests).encode()).hexdigest()[:32]
    if not requests or stamps.get(stamp) is not None:
        return []
    asked = []
    for priority, request in enumerate(requests, start=_PRIORITY):
        try:
            asked.append(submit(site, request, priority=priority))
        except (EquiRankError, StoreError) as error:
            logging.getLogger(__name__).warning("no demo run of %s (%s): %s", request.model, request.method, error)
    stamps.put_bytes(stamp, b"")
    return asked
