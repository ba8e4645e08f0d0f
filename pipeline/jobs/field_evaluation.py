"""The steps of an evaluation with fields: texts in fields, embeddings in shards, weights, ranking.

Every step may run twice and does no harm then: field texts and parameters are named by what they were made of, what
was encoded is in the cache, and an answer of a language model that was committed is never asked for again.

Only workers import this module; it registers steps with DBOS.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from dbos import DBOS

from pipeline.jobs import field_retrieval, field_runs, progress
from pipeline.jobs.durable import is_embedded
from pipeline.jobs.evaluation_request import Evaluation, EvaluationRequest, resolve_request
from pipeline.jobs.field_retrieval import FieldSources
from pipeline.jobs.measuring import Shard
from pipeline.jobs.site import Site
from pipeline.jobs.worker_site import the_site


def _resolved(request: dict[str, Any]) -> Evaluation:
    return resolve_request(the_site(), EvaluationRequest.from_json(request))


def rank_with_fields(request: dict[str, Any], encode: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Inside a workflow: everything of an evaluation with fields up to the stored ranking.

    Args:
        request: ``EvaluationRequest.as_json()``.
        encode: brings the shards of a plan (``cut_plan``) into the cache.

    Returns:
        ``Ranked.as_json()``; or ``{"pending": …}``, how many questions wait for a batch's answers.
    """
    sources = _sources(request)
    encode(_field_plan(request, sources))
    parameters = _learn(request, sources)
    return _rank(request, sources, parameters)


def cut_plan(site: Site, cut: list[Shard]) -> dict[str, Any]:
    """The shards as JSON, and whether they go to other workers; says in the log how many texts there are."""
    totals: dict[str, int] = {}
    for shard in cut:
        totals[shard.stage] = max(totals.get(shard.stage, 0), shard.stop)
    if totals:
        progress.say(", ".join(f"{total:,} distinct {stage}" for stage, total in totals.items()))
    shards = []
    for shard in cut:
        values = {"stage": shard.stage, "start": shard.start, "stop": shard.stop, "total": totals[shard.stage]}
        shards.append(values if shard.sources is None else {**values, "sources": shard.sources})
    # Shards on other machines help only if their embeddings come back: through the folder all workers share.
    return {"shards": shards, "fan_out": not is_embedded(site) and site.artifacts.is_local and len(cut) > 2}


@DBOS.step(name="fields")
def _sources(request: dict[str, Any]) -> dict[str, str]:
    progress.tell("standardizing")
    started = time.monotonic()
    found = field_retrieval.ready_sources(the_site(), _resolved(request))
    assert found is not None
    progress.say(f"tools and queries are in fields after {time.monotonic() - started:.1f} s")
    return found.as_json()


@DBOS.step(name="plan fields")
def _field_plan(request: dict[str, Any], sources: dict[str, str]) -> dict[str, Any]:
    site, evaluation = the_site(), _resolved(request)
    return cut_plan(site, field_runs.field_shards(site, evaluation, FieldSources(**sources)))


@DBOS.step(name="learn")
def _learn(request: dict[str, Any], sources: dict[str, str]) -> str | None:
    started = time.monotonic()
    progress.tell("training")
    found = field_retrieval.learn(the_site(), _resolved(request), FieldSources(**sources), progress=progress.reporter())
    if found is not None:
        progress.say(f"weights {found[:8]} after {time.monotonic() - started:.1f} s")
    return found


@DBOS.step(name="rank fields")
def _rank(request: dict[str, Any], sources: dict[str, str], parameters: str | None) -> dict[str, Any]:
    started = time.monotonic()
    ranked = field_runs.rank_over_fields(
        the_site(), _resolved(request), FieldSources(**sources), parameters, progress=progress.reporter()
    )
    progress.say(f"ranked in {time.monotonic() - started:.1f} s")
    return ranked.as_json()
