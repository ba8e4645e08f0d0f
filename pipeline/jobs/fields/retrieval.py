"""MFTR on a stored benchmark, in parts that may be done twice: texts in fields, embeddings, weights, ranking."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from pipeline.errors import MftrError
from pipeline.formats.messages import plural
from pipeline.jobs.benchmark_library import load_benchmark, load_compiled
from pipeline.jobs.evaluation_request import Evaluation
from pipeline.jobs.fields import texts as field_texts
from pipeline.jobs.fields.methods import LLM, ORIGINAL, RULES
from pipeline.jobs.fields.options import method_settings
from pipeline.jobs.site import Site
from pipeline.mftr.dense_fields import dense_fields, dense_texts
from pipeline.mftr.field_scores import FieldScorer
from pipeline.mftr.fields import QueryFields, ToolFields
from pipeline.mftr.learned_parameters import LearnedFolds, LearnedParameters, mean_of_fields, published_folds
from pipeline.mftr.lexical_fields import Bm25Fields
from pipeline.mftr.negatives import hard_negatives
from pipeline.mftr.search import search
from pipeline.mftr.settings import MftrSettings, Weighting
from pipeline.mftr.training import labels_of, train_folds
from pipeline.retrieval.contract import Contract, PromptedText
from pipeline.retrieval.dense import Encoded, distinct_texts, encode_texts
from pipeline.retrieval.efficiency import Efficiency, per_thousand, processor
from pipeline.retrieval.embedding_cache import EmbeddingCache, FolderEmbeddingCache
from pipeline.retrieval.encoder import shared_encoder
from pipeline.retrieval.models import ModelSpec
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.run import Run, RunTarget
from store.access import mftr
from store.access.mftr import FieldTextsRecord, FoldParameters, ParameterSet
from store.errors import NotFound
from store.field_text_models import FieldTextSource, ParameterSource


@dataclass(frozen=True)
class FieldSources:
    """Ids of the field texts that a run is over; "" where its method needs none."""

    tools: str
    queries: str

    def as_json(self) -> dict[str, str]:
        """The attributes by name."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class FieldRanking:
    """A finished ranking over fields.

    Attributes:
        run: over ``target``.
        learned: the parameters that ranked.
        efficiency: what it cost, ``aggregation_ms`` (scoring and ranking a query, in batch) included.
        notes: for readers of the results.
    """

    run: Run
    target: RunTarget
    learned: LearnedFolds
    efficiency: dict[str, Any]
    notes: tuple[str, ...]


def ready_sources(site: Site, evaluation: Evaluation) -> FieldSources | None:
    """The field texts of a request, made and stored here where that needs no language model; None where it does."""
    options = evaluation.options
    assert options is not None
    if LLM in (options.tools, options.queries):
        return None
    tools = rules_set(site, evaluation) if options.tools == RULES else options.tools
    queries = original_set(site, evaluation) if options.queries == ORIGINAL else options.queries
    return FieldSources(tools, queries)


def rules_set(site: Site, evaluation: Evaluation) -> str:
    """Id of the benchmark's tools in fields by rules, stored."""
    version_id = evaluation.version.id
    made = field_texts.rule_based_tools(load_benchmark(site, version_id))
    target = load_compiled(site, version_id).target
    return field_texts.store_tools(site, version_id, target, made, field_texts.rules_origin()).id


def original_set(site: Site, evaluation: Evaluation) -> str:
    """Id of the benchmark's queries as their own needs, stored."""
    version_id = evaluation.version.id
    asked = field_texts.original_queries(load_benchmark(site, version_id))
    target = load_compiled(site, version_id).target
    origin = field_texts.Origin(FieldTextSource.ORIGINAL)
    return field_texts.store_queries(site, version_id, target, asked, origin).id


def stage_texts(tools: ToolFields, queries: QueryFields, contract: Contract) -> dict[str, list[PromptedText]]:
    """The distinct texts of each stage, in the order that shards cut."""
    texts = dense_texts(tools, queries, contract)
    return {
        "documents": distinct_texts(texts.tools, contract),
        "queries": distinct_texts(texts.queries, contract),
    }


@dataclass(frozen=True, eq=False)
class Scored:
    """A scorer and what its texts cost.

    Attributes:
        index_seconds: encoding all distinct tool texts, or indexing them.
        query_seconds: encoding all distinct query texts; 0 for BM25.
        distinct: tool texts.
        devices: where texts were encoded.
    """

    scorer: FieldScorer
    index_seconds: float
    query_seconds: float
    distinct: int
    index_bytes: int
    dimension: int | None
    devices: tuple[str, ...]


def scorer_of(
    tools: ToolFields,
    queries: QueryFields,
    model: ModelSpec,
    contract: Contract,
    cache: EmbeddingCache | None,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Scored:
    """φ over the fields; embeddings come from the cache as far as they are there.

    Raises:
        Cancelled: on request.
        ModelError: the model cannot be loaded or used.
    """
    if not model.entry.dense:
        start = time.perf_counter()
        lexical = Bm25Fields(tools, queries)
        seconds = time.perf_counter() - start
        return Scored(lexical, seconds, 0.0, len(tools), lexical.index_bytes, None, ())
    texts = dense_texts(tools, queries, contract)

    def encode(stage: str, some: list[PromptedText]) -> Encoded:
        return encode_texts(
            some,
            contract,
            lambda: shared_encoder(model, contract),
            cache,
            stage=stage,
            progress=progress,
            cancelled=cancelled,
        )

    documents, needs = encode("documents", texts.tools), encode("queries", texts.queries)
    dense = dense_fields(tools, queries, documents, needs)
    return Scored(
        dense,
        documents.seconds,
        needs.seconds,
        documents.distinct,
        dense.index_bytes,
        documents.embeddings.shape[1],
        tuple(sorted({*documents.devices, *needs.devices})),
    )


def rank_fields(
    scored: Scored,
    model: ModelSpec,
    settings: MftrSettings,
    learned: LearnedFolds,
    target: RunTarget,
    depth: int,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> FieldRanking:
    """Rank the full corpus for every query.

    Raises:
        Cancelled: on request.
    """
    start = time.perf_counter()
    rankings = search(scored.scorer, settings, learned, depth, progress=progress, cancelled=cancelled)
    seconds = time.perf_counter() - start
    queries = len(target.queries)
    aggregation = 1000 * seconds / queries if queries else None
    encoding = 1000 * scored.query_seconds / queries if queries else 0.0
    cost = Efficiency(
        encode_seconds_per_1000_documents=per_thousand(scored.index_seconds, len(target.tools)),
        query_ms=None if aggregation is None else aggregation + encoding,
        dimension=scored.dimension,
        parameters=model.entry.parameters,
        index_bytes=scored.index_bytes,
        device=", ".join(scored.devices) or processor(),
    )
    efficiency = {**cost.as_json(), "aggregation_ms": aggregation}
    return FieldRanking(rankings.run(target), target, learned, efficiency, ())


def learn(
    site: Site,
    evaluation: Evaluation,
    sources: FieldSources,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> str | None:
    """The parameters that a request ranks with, learned here unless they are stored; their id.

    None where nothing is learned.

    Raises:
        Cancelled: on request.
        ModelError: the model cannot be loaded or used.
        UsageError: the benchmark is too small for the folds.
    """
    options = evaluation.options
    assert options is not None
    if options.weights:
        return options.weights
    settings = settings_of(evaluation)
    if settings.weighting is Weighting.MEAN:
        return None
    version_id, contract_hash = evaluation.version.id, evaluation.contract.hash
    said = options.details["settings"]
    source = ParameterSource.LEARNED
    set_id = mftr.parameter_set_id(version_id, contract_hash, sources.tools, sources.queries, said, source)
    with site.database.reading() as session:
        try:
            return mftr.parameters(session, set_id).id
        except NotFound:
            pass
    target, tools, queries = sources_of(site, evaluation, sources)
    benchmark = load_benchmark(site, version_id)
    scored = scorer_of(
        tools,
        queries,
        evaluation.model,
        evaluation.contract,
        cache_of(site),
        progress=progress,
        cancelled=cancelled,
    )
    learned = train_folds(
        scored.scorer,
        settings,
        labels_of(target),
        hard_negatives(benchmark, target, settings),
        progress=progress,
        cancelled=cancelled,
    )
    folds = tuple(stored_parameters(number, fold) for number, fold in enumerate(learned.folds))
    made = ParameterSet(
        set_id, version_id, contract_hash, sources.tools, sources.queries, said, source, len(folds), folds
    )
    with site.database.session() as session:
        return mftr.add_parameters(session, made).id


def rank(
    site: Site,
    evaluation: Evaluation,
    sources: FieldSources,
    parameters: str | None,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> FieldRanking:
    """Rank the benchmark's tools for every query with the parameters of its fold.

    Args:
        site: where everything is stored.
        evaluation: what is measured.
        sources: the field texts.
        parameters: what ``learn`` returned.
        progress: stages ``documents``, ``queries`` and ``search``.
        cancelled: asked between parts.

    Raises:
        Cancelled: on request.
        MftrError: imported parameters do not fit the queries.
        ModelError: the model cannot be loaded or used.
    """
    target, tools, queries = sources_of(site, evaluation, sources)
    settings = settings_of(evaluation)
    if parameters is None:
        learned = mean_of_fields(len(target.queries), settings.fields)
    else:
        with site.database.reading() as session:
            learned = learned_folds(mftr.parameters(session, parameters), settings, queries, target)
    scored = scorer_of(
        tools,
        queries,
        evaluation.model,
        evaluation.contract,
        cache_of(site),
        progress=progress,
        cancelled=cancelled,
    )
    depth = evaluation.request.depth
    found = rank_fields(
        scored, evaluation.model, settings, learned, target, depth, progress=progress, cancelled=cancelled
    )
    costs = costs_of(site, sources)
    return FieldRanking(
        found.run, target, learned, {**found.efficiency, **costs}, source_notes(site, evaluation, sources)
    )


def sources_of(site: Site, evaluation: Evaluation, sources: FieldSources) -> tuple[RunTarget, ToolFields, QueryFields]:
    """The benchmark's ids, and the field texts in their order."""
    target = load_compiled(site, evaluation.version.id).target
    tools = field_texts.tool_fields(site, sources.tools, target)
    return target, tools, field_texts.query_fields(site, sources.queries, target)


def settings_of(evaluation: Evaluation) -> MftrSettings:
    """MFTR's settings of a request."""
    assert evaluation.options is not None
    return method_settings(evaluation.options.method, evaluation.options.preset)


def cache_of(site: Site) -> FolderEmbeddingCache:
    """The site's embeddings."""
    return FolderEmbeddingCache(site.settings.embedding_folder)


def costs_of(site: Site, sources: FieldSources) -> dict[str, float | None]:
    """Calls and seconds of language models behind field texts; None where they were made elsewhere."""
    tools, queries = _records(site, sources)

    def figure(record: FieldTextsRecord | None, name: str) -> float | None:
        if record is not None and record.source == FieldTextSource.IMPORTED:
            return None
        if record is None or record.source != FieldTextSource.LLM:
            return 0.0
        total = record.counts.get(name)
        return None if total is None or not record.items else float(total) / record.items

    return {
        "llm_calls_per_query": figure(queries, "llm_calls"),
        "llm_seconds_per_query": figure(queries, "llm_seconds"),
        "llm_calls_per_tool": figure(tools, "llm_calls"),
    }


def source_notes(site: Site, evaluation: Evaluation, sources: FieldSources) -> tuple[str, ...]:
    """What readers of the results must know of the field texts and weights."""
    options = evaluation.options
    assert options is not None
    tools, queries = _records(site, sources)
    notes = []
    if tools is not None:
        notes.append(
            {
                FieldTextSource.RULES: "Tools were put into fields by rules (rule-based), without a language model; "
                "what a document does not state is empty.",
                FieldTextSource.LLM: f"Tools were put into fields by {tools.model}.",
            }.get(FieldTextSource(tools.source), f"The tools in fields were imported ({tools.id[:8]}).")
        )
    if queries is not None:
        notes.append(
            {
                FieldTextSource.ORIGINAL: "Each query itself is its one need in every field, without arguments: no "
                "query was rewritten.",
                FieldTextSource.LLM: f"Queries were rewritten by {queries.model}.",
            }.get(FieldTextSource(queries.source), f"The rewritten queries were imported ({queries.id[:8]}).")
        )
    for record, one, many in ((tools, "tool", "tools"), (queries, "query", "queries")):
        if record is None:
            continue
        if record.failures:
            several = plural(record.failures, f"{one} lacks", f"{many} lack")
            notes.append(f"{several} fields, because the language model gave no valid answer.")
        elif record.filled < record.items:
            several = plural(record.items - record.filled, f"{one} is", f"{many} are")
            notes.append(f"{several} not in the imported file.")
    settings = settings_of(evaluation)
    if options.weights:
        notes.append(f"The weights were imported ({options.weights[:8]}) and apply by each query's fold.")
    elif options.method.needs.learns and settings.weighting is not Weighting.MEAN:
        notes.append(
            f"Weights were learned on this benchmark's own labels; {settings.folds} folds, each query ranked by "
            "weights that never saw it."
        )
    return tuple(notes)


def _records(site: Site, sources: FieldSources) -> tuple[FieldTextsRecord | None, FieldTextsRecord | None]:
    with site.database.reading() as session:
        found = [mftr.field_texts(session, name) if name else None for name in (sources.tools, sources.queries)]
    return found[0], found[1]


def learned_folds(folds: ParameterSet, settings: MftrSettings, queries: QueryFields, target: RunTarget) -> LearnedFolds:
    """A stored parameter set as what ranks each query.

    Raises:
        MftrError: it is imported and the queries have no folds, or it lacks a fold.
        UsageError: the queries cannot be cut into the folds that were learned.
    """
    by_fold = {fold.fold: fold for fold in folds.folds}
    if set(by_fold) != set(range(folds.fold_count)):
        raise MftrError(f"the parameters {folds.id[:8]} lack a fold: {sorted(by_fold)} of {folds.fold_count}")
    values = tuple(parameters_of(by_fold[number]) for number in range(folds.fold_count))
    if folds.source is ParameterSource.IMPORTED:
        return published_folds(values, queries.queries)
    return LearnedFolds(values, fold_of_queries(settings, target))


def fold_of_queries(settings: MftrSettings, target: RunTarget) -> Any:
    """The fold of every query, as training cuts them; int64 (queries,)."""
    from pipeline.mftr.folds import query_folds, tool_disjoint_folds

    if settings.tool_disjoint:
        return tool_disjoint_folds(labels_of(target), settings)
    return query_folds(len(target.queries), settings)


def parameters_of(fold: FoldParameters) -> LearnedParameters:
    """A stored fold as what scores."""
    return LearnedParameters(
        fold.weights, fold.bias, fold.tau, fold.required_penalty, fold.optional_penalty, fold.alpha
    )


def stored_parameters(number: int, fold: LearnedParameters) -> FoldParameters:
    """What scores as a stored fold."""
    return FoldParameters(number, fold.weights, fold.tau, fold.alpha, fold.required, fold.optional, fold.bias)
