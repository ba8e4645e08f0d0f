"""The parts of an evaluation, each of which may be done twice without harm: what a job's steps and the CLI call.

Texts are encoded in shards, always the same ones, into the embedding cache; ranking then finds every embedding
there. Rankings are artifacts, and the run's id follows from the job's, so that a step that is repeated after a crash
ends with the same files and the same row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from pipeline.benchmark import Benchmark
from pipeline.formats.ranking import ranking_frame
from pipeline.jobs.benchmark_library import load_benchmark
from pipeline.jobs.evaluation_request import Evaluation, EvaluationRequest, resolve_options
from pipeline.jobs.measured_runs import Ranked, measured_run, store_run
from pipeline.jobs.site import Site
from pipeline.retrieval.contract import Contract, PromptedText
from pipeline.retrieval.dense import distinct_texts, encode_texts
from pipeline.retrieval.embedding_cache import FolderEmbeddingCache
from pipeline.retrieval.encoder import shared_encoder
from pipeline.retrieval.models import ModelSpec
from pipeline.retrieval.probe import probe_model
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.retrieval.registry import default_registry
from pipeline.retrieval.retrieve import Method, Retrieval, retrieval_texts, retrieve

#: Distinct texts of one shard: minutes on a CPU, so that a job moves on in visible steps.
SHARD_TEXTS = 2048


@dataclass(frozen=True)
class Shard:
    """Some of an evaluation's distinct texts.

    Attributes:
        stage: ``documents`` or ``queries``.
        start, stop: their places in ``distinct_texts`` of the stage.
        sources: ids of the field texts, where the texts are those of fields.
    """

    stage: str
    start: int
    stop: int
    sources: dict[str, str] | None = None


def embedding_cache(site: Site) -> FolderEmbeddingCache:
    """The site's embeddings; a view of its own for each caller, since one view serves one thread."""
    return FolderEmbeddingCache(site.settings.embedding_folder)


def check_model(evaluation: Evaluation) -> tuple[str, ...]:
    """Load a model that a user brought and look at its first answers; registered ones are checked when loaded.

    Returns:
        What is worth knowing, in sentences.

    Raises:
        ModelError: it cannot be loaded or used.
    """
    model = evaluation.model
    if not model.entry.dense or model.entry in default_registry().entries:
        return ()
    return probe_model(model, evaluation.request.preset).notes


def stage_texts(site: Site, evaluation: Evaluation) -> dict[str, list[PromptedText]]:
    """The distinct texts of each stage, in the order that shards cut; empty for lexical models.

    Methods with fields have texts of their own (``pipeline.jobs.fields.retrieval``): none here.
    """
    if not evaluation.model.entry.dense or not isinstance(evaluation.method, Method):
        return {}
    return plain_texts(site, evaluation.version.id, evaluation.contract, evaluation.method)


def plain_texts(site: Site, version_id: int, contract: Contract, method: Method) -> dict[str, list[PromptedText]]:
    """The distinct texts of a method without fields; the last benchmark's are kept."""
    return _stage_texts(_Key(site, version_id, contract, method))


@dataclass(frozen=True)
class _Key:
    """What the texts follow from; the site compares by identity."""

    site: Site
    version_id: int
    contract: Contract
    method: Method


@lru_cache(maxsize=1)
def _stage_texts(key: _Key) -> dict[str, list[PromptedText]]:
    return _distinct(load_benchmark(key.site, key.version_id), key.contract, key.method)


def _distinct(benchmark: Benchmark, contract: Contract, method: Method) -> dict[str, list[PromptedText]]:
    # The adapter encodes what full-doc encodes.
    texts = retrieval_texts(benchmark, contract, Method.FULL_DOC if method is Method.ADAPTER else method)
    return {
        "documents": distinct_texts(texts.documents, contract),
        "queries": distinct_texts(texts.queries, contract),
    }


def shards(site: Site, evaluation: Evaluation) -> list[Shard]:
    """Every text of an evaluation in shards, always the same ones."""
    return [
        Shard(stage, start, min(start + SHARD_TEXTS, len(texts)))
        for stage, texts in stage_texts(site, evaluation).items()
        for start in range(0, len(texts), SHARD_TEXTS)
    ]


def encode_shard(
    site: Site,
    evaluation: Evaluation,
    shard: Shard,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> int:
    """Bring a shard's embeddings into the cache; returns how many texts were not there before.

    Raises:
        Cancelled: on request; what was encoded stays.
        ModelError: the model cannot be loaded or used.
    """
    if shard.sources is None:
        texts = stage_texts(site, evaluation)[shard.stage][shard.start : shard.stop]
    else:
        from pipeline.jobs.fields.runs import field_stage_texts

        texts = field_stage_texts(site, evaluation, shard.sources)[shard.stage][shard.start : shard.stop]
    return _encode(site, evaluation.model, evaluation.contract, shard.stage, texts, progress, cancelled)


def _encode(
    site: Site,
    model: ModelSpec,
    contract: Contract,
    stage: str,
    texts: list[PromptedText],
    progress: ProgressCallback | None,
    cancelled: CancelledCallback | None,
) -> int:
    return encode_texts(
        texts,
        contract,
        lambda: shared_encoder(model, contract),
        embedding_cache(site),
        stage=stage,
        progress=progress,
        cancelled=cancelled,
    ).new


def rank(
    site: Site,
    evaluation: Evaluation,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Ranked:
    """Rank the benchmark's tools for every query and store the ranking.

    Raises:
        Cancelled: on request.
        BenchmarkError, ModelError, UsageError: as ``retrieve``.
    """
    assert isinstance(evaluation.method, Method)
    benchmark = load_benchmark(site, evaluation.version.id)
    request, cache = evaluation.request, embedding_cache(site)
    found = _retrieve(benchmark, evaluation.model, evaluation.method, request, cache, progress, cancelled)
    artifact = site.artifacts.put_frame(ranking_frame(found.run, found.target))
    return Ranked(artifact, found.contract_hash, found.efficiency.as_json(), found.notes)


def retrieve_benchmark(
    site: Site, benchmark: Benchmark, request: EvaluationRequest, *, progress: ProgressCallback | None = None
) -> tuple[Retrieval, str]:
    """Retrieve on a benchmark that need not be stored; no database is opened. Returns the retrieval and a tag for it.

    Raises:
        BenchmarkError, ModelError, UsageError: as ``retrieve``.
    """
    model, method, contract = resolve_options(site.settings, request)
    if not isinstance(method, Method):
        from pipeline.jobs.fields.folder import retrieve_fields

        return retrieve_fields(site, benchmark, request, model, method, contract, progress=progress)
    # In the same shards as a job, so that both find or make the same embeddings.
    if model.entry.dense:
        for stage, texts in _distinct(benchmark, contract, method).items():
            for start in range(0, len(texts), SHARD_TEXTS):
                part = texts[start : start + SHARD_TEXTS]
                _encode(site, model, contract, stage, part, progress, None)
    found = _retrieve(benchmark, model, method, request, embedding_cache(site), progress, None)
    return found, f"{model.entry.key}-{method}-{request.preset}"


def _retrieve(
    benchmark: Benchmark,
    model: ModelSpec,
    method: Method,
    request: EvaluationRequest,
    cache: FolderEmbeddingCache,
    progress: ProgressCallback | None,
    cancelled: CancelledCallback | None,
) -> Retrieval:
    return retrieve(
        benchmark,
        model,
        method,
        request.preset,
        instruction=request.instruction,
        depth=request.depth,
        positives=request.positives,
        cache=cache,
        progress=progress,
        cancelled=cancelled,
    )


def measure(
    site: Site, evaluation: Evaluation, *, retry_failed: bool = False, progress: ProgressCallback | None = None
) -> str:
    """Do a whole evaluation here and now, as ``equirank retrieve`` does; returns the run's id.

    A run that a job made for the same request is returned as it is. With ``retry_failed`` questions to a language
    model that are recorded as failed are asked again.

    Raises:
        BenchmarkError, ModelError, UsageError, StoreError: as the parts.
    """
    known = measured_run(site, evaluation.run_key)
    if known is not None:
        return known
    check_model(evaluation)
    if not isinstance(evaluation.method, Method):
        from pipeline.jobs.fields.runs import measure_fields

        return store_run(
            site, evaluation, measure_fields(site, evaluation, retry_failed=retry_failed, progress=progress)
        )
    for shard in shards(site, evaluation):
        encode_shard(site, evaluation, shard, progress=progress)
    return store_run(site, evaluation, rank(site, evaluation, progress=progress))
