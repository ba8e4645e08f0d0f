"""The parts of an evaluation, each of which may be done twice without harm: what a job's steps and the CLI call.

Texts are encoded in shards, always the same ones, into the embedding cache; ranking then finds every embedding
there. Rankings are artifacts, and the run's id follows from the job's, so that a step that is repeated after a crash
ends with the same files and the same row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import polars as pl
from sqlmodel import Session

from pipeline import published
from pipeline.benchmark import Benchmark
from pipeline.formats.ranking import ranking_frame, run_of_frame
from pipeline.jobs.benchmark_library import load_benchmark, load_compiled
from pipeline.jobs.evaluation_request import Evaluation, EvaluationRequest, resolve_options
from pipeline.jobs.fields.methods import FieldMethod
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
from pipeline.run import Run as RankedRun
from pipeline.run import RunTarget
from pipeline.scoring.averages import summarise
from pipeline.scoring.scores import score_run
from pipeline.scoring.version import SCORER_VERSION
from store.access import retrievers, runs
from store.database import exclusive
from store.errors import NotFound
from store.models import Level, Provenance, Retriever, Run, State, Submission, Trained, Visibility
from store.records import RetrieverRecord, Summary

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


@dataclass(frozen=True)
class Ranked:
    """A finished ranking, stored as an artifact.

    Attributes:
        artifact: of the ranking.
        contract_hash: of the contract, and of the adapter's training where there is one.
        efficiency: see ``pipeline.retrieval.efficiency.Efficiency``.
        notes: for readers of the results.
        method_settings: what the method was set to, where it has settings (``store.models.Run``).
    """

    artifact: str
    contract_hash: str
    efficiency: dict[str, Any]
    notes: tuple[str, ...]
    method_settings: dict[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """The attributes by name."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Ranked:
        """What ``as_json`` wrote."""
        return cls(**{**values, "notes": tuple(values["notes"])})


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


def run_id_of(run_key: str) -> str:
    """The id of the run that ``Evaluation.run_key`` makes; a private run is guarded by its token, not by its id."""
    number = int.from_bytes(hashlib.sha256(f"run of {run_key}".encode()).digest()[:16], "big")
    alphabet = "23456789abcdefghjkmnpqrstuvwxyz"
    signs = []
    for _ in range(14):
        number, place = divmod(number, len(alphabet))
        signs.append(alphabet[place])
    return "".join(signs)


def measured_run(site: Site, run_key: str) -> str | None:
    """The id of the run that was made for ``Evaluation.run_key``, None when there is none."""
    with site.database.reading() as session:
        try:
            return runs.get(session, run_id_of(run_key)).id
        except NotFound:
            return None


def store_run(site: Site, evaluation: Evaluation, ranked: Ranked) -> str:
    """Score a ranking and store it as a measured run; storing it again changes nothing. Returns the run's id.

    Raises:
        StoreError: the store cannot be used.
    """
    known = measured_run(site, evaluation.run_key)
    if known is not None:
        return known
    compiled = load_compiled(site, evaluation.version.id)
    run = run_of_frame(site.artifacts.get_frame(ranked.artifact), compiled.target)
    scores = score_run(compiled, run, evaluation.version.ks)
    columns = ("view", "metric", "k", "average", "domain", "value", "n")
    summary = summarise(scores, compiled).select(columns).with_columns(pl.col("domain").fill_null(""))
    request = evaluation.request
    row = Run(
        id=run_id_of(evaluation.run_key),
        benchmark_version_id=evaluation.version.id,
        retriever_id=0,
        method=Method.FULL_DOC.value if evaluation.method is Method.ADAPTER else evaluation.method.value,
        level=(Level.SUB_QUERY if evaluation.method is Method.SUB_QUERY else Level.QUERY).value,
        contract=evaluation.contract_label,
        contract_hash=ranked.contract_hash,
        provenance=Provenance.MEASURED.value,
        state=(State.PUBLISHED if request.publish else State.SCORED).value,
        visibility=(Visibility.PUBLIC if request.publish else Visibility.PRIVATE).value,
        ranking_artifact=ranked.artifact,
        ranking_hash=run.ranking_hash,
        per_query_artifact=site.artifacts.put_frame(scores.per_query),
        scorer_version=SCORER_VERSION,
        benchmark_hash=compiled.content_hash,
        depth=max(_lengths(run), default=0),
        queries_total=len(compiled.target.queries),
        queries_answered=run.queries_answered,
        missing=len(compiled.target.queries) - run.queries_answered,
        flags=_flags(run, compiled.target),
        notes=list(ranked.notes),
        efficiency=ranked.efficiency,
        method_settings=ranked.method_settings,
        trained_on_benchmark=_trained(evaluation).value,
    )
    submission = Submission(
        benchmark_version_id=evaluation.version.id,
        person=request.person,
        report={"request": request.as_json(), "job": evaluation.job_id},
    )
    figures = [Summary(**record) for record in summary.iter_rows(named=True)]
    with site.database.session() as session:
        # A job that was taken over may have been finished by its first worker in the meantime.
        exclusive(session, f"run {row.id}")
        found = session.get(Run, row.id)
        if found is not None:
            return found.id
        row.retriever_id = _retriever(session, evaluation)
        return runs.add_run(
            session, row, figures, submission=submission if request.person else None, artifacts=site.artifacts
        ).id


def _lengths(run: RankedRun) -> Iterator[int]:
    return (int(stop - start) for start, stop in zip(run.offsets[:-1], run.offsets[1:], strict=True))


def _flags(run: RankedRun, target: RunTarget) -> list[str]:
    """The flags of the validation policy that a ranking made here can get."""
    missing = len(target.queries) - run.queries_answered
    flags = [f"missing:{missing}"] if missing else []
    if any(0 < length < min(10, len(target.tools)) for length in _lengths(run)):
        flags.append("shallow")
    if run.queries_answered * 2 < len(target.queries):
        flags.append("partial")
    return flags


def _trained(evaluation: Evaluation) -> Trained:
    """Whether the retriever has seen the benchmark's labels: what learned here has, those of the other folds."""
    options = evaluation.options
    if evaluation.method is Method.ADAPTER:
        return Trained.YES
    if options is not None and (options.method.needs.learns or options.method is FieldMethod.ONLINERAG):
        return Trained.UNKNOWN if options.weights else Trained.YES
    for known in published.retrievers():
        if known.key == evaluation.model.entry.key:
            return Trained(known.trained_on.get(evaluation.version.slug, known.trained_on_any))
    return Trained.UNKNOWN


def _retriever(session: Session, evaluation: Evaluation) -> int:
    """The stored retriever of a model, made when it is not there yet; an adapter is one of its own."""
    base = _known_or_new(session, evaluation.model)
    if evaluation.method is not Method.ADAPTER:
        return base.id
    every = evaluation.request.positives == "equivalents"
    key = f"{base.key}-adapter" + ("-equivalents" if every else "")
    try:
        return retrievers.get(session, key).id
    except NotFound:
        row = Retriever(
            key=key,
            name=f"{base.name} + adapter" + (" (every valid tool)" if every else ""),
            family=base.family,
            parameters=base.parameters,
            dimension=base.dimension,
            fine_tuned=True,
            base_key=base.key,
            open_weights=base.open_weights,
            licence=base.licence,
            notes="A linear adapter on the queries, trained here on the benchmark's own labels and used out of fold.",
        )
        return retrievers.upsert(session, row).id


def _known_or_new(session: Session, model: ModelSpec) -> RetrieverRecord:
    entry = model.entry
    try:
        return retrievers.get(session, entry.key)
    except NotFound:
        row = Retriever(
            key=entry.key,
            name=entry.name,
            family=entry.family,
            parameters=entry.parameters,
            dimension=entry.dimension,
            fine_tuned=bool(entry.base) or None,
            base_key=entry.base or None,
            licence=entry.licence,
            link=f"https://huggingface.co/{entry.hf_id}" if entry.hf_id else "",
        )
        return retrievers.upsert(session, row)


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
