"""The workflow "evaluate a model": check, encode in shards, rank, score, store.

Every step may run twice (a worker can die after the work and before the record of it), and does no harm then: what
was encoded is in the cache, artifacts are named by content, and the run's id follows from the job's. On PostgreSQL
the shards of a big corpus are jobs of their own, which any worker takes; elsewhere they are steps.

Only workers import this module; it registers the workflows with DBOS.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any

from dbos import DBOS, SetWorkflowID

from pipeline.jobs import measured_runs, measuring, progress
from pipeline.jobs.evaluation_request import Evaluation, EvaluationRequest, resolve_request
from pipeline.jobs.fields.evaluation import cut_plan, field_plan, one_at_a_time, rank_with_fields
from pipeline.jobs.queues import shard_queue
from pipeline.jobs.worker_site import the_site
from pipeline.jobs.workflow_names import ENCODE_SHARD, EVALUATE, MAX_ATTEMPTS


def _resolved(request: dict[str, Any]) -> Evaluation:
    return resolve_request(the_site(), EvaluationRequest.from_json(request))


@DBOS.workflow(name=EVALUATE, max_recovery_attempts=MAX_ATTEMPTS)
def evaluate(request: dict[str, Any], queue: str) -> dict[str, Any]:
    """Measure a model on a benchmark.

    Returns:
        ``{"run_id": …}``; its value is null, and ``pending`` counts questions, where the answers of a batch are waited
        for.

    Args:
        request: ``EvaluationRequest.as_json()``.
        queue: the queue this job came from; its shards go to that queue's own.
    """
    plan = _plan(request)
    if plan["run_id"] is not None:
        return {"run_id": plan["run_id"]}
    if plan.get("fields"):
        ranked = rank_with_fields(request, plan["fields"], lambda cut: _encode_all(request, queue, cut))
        if "pending" in ranked:
            return {"run_id": None, **ranked}
    else:
        _encode_all(request, queue, plan)
        ranked = _rank(request)
    return {"run_id": _store(request, ranked)}


@DBOS.workflow(name=ENCODE_SHARD, max_recovery_attempts=MAX_ATTEMPTS)
def encode_shard(request: dict[str, Any], shard: dict[str, Any]) -> int:
    """One shard of a big corpus, on whichever worker takes it."""
    return _encode(request, shard)


@DBOS.step(name="plan")
def _plan(request: dict[str, Any]) -> dict[str, Any]:
    site, evaluation = the_site(), _resolved(request)
    known = measured_runs.measured_run(site, evaluation.run_key)
    if known is not None:
        progress.say(f"this was measured before: run {known}")
        return {"run_id": known, "shards": [], "fan_out": False}
    entry = evaluation.model.entry
    progress.tell("checking")
    progress.say(f"{entry.name} on {evaluation.version.name}, {evaluation.method}, {evaluation.contract_label}")
    for note in measuring.check_model(evaluation):
        progress.say(note)
    if evaluation.options is not None:
        return {"run_id": None, "shards": [], "fan_out": False, "fields": field_plan(site, evaluation)}
    return {"run_id": None, **cut_plan(site, measuring.shards(site, evaluation))}


@DBOS.step(name="encode")
def _encode(request: dict[str, Any], shard: dict[str, Any]) -> int:
    started = time.monotonic()
    stage, start, stop = shard["stage"], shard["start"], shard["stop"]
    evaluation = _resolved(request)
    asks = evaluation.options is not None and evaluation.options.asks
    with one_at_a_time if asks else nullcontext():
        new = measuring.encode_shard(
            the_site(),
            evaluation,
            measuring.Shard(stage, start, stop, shard.get("sources")),
            progress=progress.reporter(start, shard["total"]),
        )
    seconds = time.monotonic() - started
    if new:
        progress.say(f"encoded {new:,} of {stop - start:,} {stage} in {seconds:.1f} s, the others were there")
    else:
        progress.say(f"{stop - start:,} {stage}: all embeddings were there")
    return new


def _encode_all(request: dict[str, Any], queue: str, cut: dict[str, Any]) -> None:
    """Encode every shard of a plan, here or wherever workers are free."""
    if cut["fan_out"]:
        _encode_everywhere(request, queue, cut["shards"])
    else:
        for shard in cut["shards"]:
            _encode(request, shard)


def _encode_everywhere(request: dict[str, Any], queue: str, cut: list[dict[str, Any]]) -> None:
    """Encode the shards as child workflows, and wait for all of them."""
    parent = DBOS.workflow_id
    handles = []
    for number, shard in enumerate(cut):
        with SetWorkflowID(f"{parent}-shard-{number}"):
            handles.append(DBOS.enqueue_workflow(shard_queue(queue), encode_shard, request, shard))
    for handle in handles:
        handle.get_result()


@DBOS.step(name="rank")
def _rank(request: dict[str, Any]) -> dict[str, Any]:
    started = time.monotonic()
    ranked = measuring.rank(the_site(), _resolved(request), progress=progress.reporter())
    progress.say(f"ranked in {time.monotonic() - started:.1f} s")
    return ranked.as_json()


@DBOS.step(name="store")
def _store(request: dict[str, Any], ranked: dict[str, Any]) -> str:
    progress.tell("scoring", 0, 1)
    run_id = measured_runs.store_run(the_site(), _resolved(request), measured_runs.Ranked.from_json(ranked))
    progress.tell("scoring", 1, 1, 0.0)
    progress.say(f"stored as run {run_id}")
    return run_id
