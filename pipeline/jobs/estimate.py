"""How much work an evaluation is, before it is asked for; no model is loaded."""

from __future__ import annotations

import os
from dataclasses import dataclass

from sqlalchemy import select
from sqlmodel import col

from pipeline.jobs import measured_runs, measuring
from pipeline.jobs.evaluation_request import Evaluation, EvaluationRequest, queue_for, resolve_request
from pipeline.jobs.fields.estimate import AskingEstimate, asking_estimate, field_texts_to_encode
from pipeline.jobs.site import Site
from pipeline.retrieval.registry import Source
from pipeline.retrieval.retrieve import Method
from store.access import workers
from store.models import Run, utc_now

#: Characters of a token, for English and JSON.
_CHARACTERS = 3.5
#: Floating-point operations a second that encoding was seen to reach, counting 2 for a weight and token: a core of a
#: CPU, a GPU.
_CPU_CORE_SPEED = 7e10
_GPU_SPEED = 5e13
#: Weights of a model whose size is not known.
_USUAL_PARAMETERS = 110_000_000
#: Seconds for loading a model, and for the rest of a job.
_LOADING = 5.0
_REST = 3.0


@dataclass(frozen=True)
class Estimate:
    """What an evaluation will take.

    Attributes:
        documents, queries: distinct texts of each; queries count sub-queries where the method searches by them.
        to_encode: those that are not in the cache; 0 for lexical models.
        tokens: roughly, of the texts to encode.
        seconds: roughly, once it has started.
        queue: where it will wait.
        run_id: the run, where the same was measured before.
        served: whether a living worker serves the queue.
        notes: what is worth knowing, in sentences.
        asking: what a language model will be asked; None where none is.
    """

    documents: int
    queries: int
    to_encode: int
    tokens: int
    seconds: float
    queue: str
    run_id: str | None
    served: bool
    notes: tuple[str, ...]
    asking: AskingEstimate | None = None


def estimate(site: Site, request: EvaluationRequest) -> Estimate:
    """Look at a request without starting it; reads the benchmark's texts, seconds for a very big one.

    Raises:
        NotFound, BenchmarkError, ModelError, UsageError: as ``resolve_request``.
    """
    evaluation = resolve_request(site, request)
    entry = evaluation.model.entry
    known = measured_runs.measured_run(site, evaluation.run_key)
    asks = evaluation.options is not None and evaluation.options.asks
    queue = queue_for(site, evaluation.model, asks=asks)
    asking = None if known else asking_estimate(site, evaluation)
    with site.database.reading() as session:
        served = any(queue in worker.queues for worker in workers.alive(session, site.settings.worker_lost_seconds))
    notes = [entry.notes] if entry.notes else []
    if evaluation.options is None:
        texts = measuring.stage_texts(site, evaluation)
    else:
        texts = field_texts_to_encode(site, evaluation)
    if asking is not None and asking.rough:
        notes.append("How often the language model is asked depends on its answers; the figures are a guess.")
    if not texts:
        documents, queries = evaluation.version.tools or 0, evaluation.version.queries or 0
        if evaluation.method is Method.SUB_QUERY:
            queries = evaluation.version.subqueries or queries
        seconds = 0.0 if known else _REST + documents / 10_000
        return Estimate(documents, queries, 0, 0, seconds, queue, known, served, tuple(notes), asking)
    cache = measuring.embedding_cache(site)
    contract = evaluation.contract
    to_encode, characters = 0, 0
    for stage in texts.values():
        held = cache.holds(contract.space, [contract.key(text) for text in stage]).tolist()
        missing = [text for text, there in zip(stage, held, strict=True) if not there]
        limit = (contract.max_tokens or 8192) * _CHARACTERS
        to_encode += len(missing)
        characters += int(sum(min(len(text.whole), limit) for text in missing))
    tokens = int(characters / _CHARACTERS)
    if entry.source is Source.ENDPOINT:
        notes.append("An endpoint sees every text, and its provider may charge for the tokens.")
    seconds = 0.0 if known else _seconds(site, evaluation, to_encode, tokens, queue)
    if evaluation.method is Method.ADAPTER and not known:
        seconds += 10.0 + len(texts["queries"]) / 100
    documents, queries = len(texts["documents"]), len(texts["queries"])
    return Estimate(documents, queries, to_encode, tokens, seconds, queue, known, served, tuple(notes), asking)


def _seconds(site: Site, evaluation: Evaluation, to_encode: int, tokens: int, queue: str) -> float:
    if not to_encode:
        return _REST
    seen = _seen_rate(site, evaluation)
    if seen is not None:
        return _REST + _LOADING + seen * to_encode
    parameters = evaluation.model.entry.parameters or _USUAL_PARAMETERS
    cores = site.settings.worker_threads or os.cpu_count() or 1
    speed = _GPU_SPEED if queue == "gpu" else _CPU_CORE_SPEED * cores
    return _REST + _LOADING + 2.0 * parameters * tokens / speed


def _seen_rate(site: Site, evaluation: Evaluation) -> float | None:
    """Seconds a document, as the latest measurement of the same contract here took."""
    query = (
        select(col(Run.efficiency))
        .where(col(Run.contract_hash) == evaluation.contract.hash, col(Run.efficiency).is_not(None))
        .where(col(Run.benchmark_version_id) == evaluation.version.id, col(Run.created_at) <= utc_now())
        .order_by(col(Run.created_at).desc())
        .limit(1)
    )
    with site.database.reading() as session:
        found = session.scalar(query)
    rate = (found or {}).get("encode_seconds_per_1000_documents")
    return None if rate is None else float(rate) / 1000
