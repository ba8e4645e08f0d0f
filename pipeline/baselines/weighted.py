"""The weighted variants of Table 3: field scores with learned weights, or their plain mean.

NDCG@10 of MiniLM with the ``paper`` preset on apibank, trained here, against the printed figure: Weighting Only .6171
(.5926), Weighting + Stand. .6476 (.6012), Weighting + Rewrite .6568 (.6549), w/o Adaptive Weighting .7138 (.7138), w/o
Missing Penalty .7042 (.7072), MFTR .7282 (.7237). The first two depend on how an original query meets parameters, which
the paper does not say; here it has no arguments. With the query as its one argument they have .6024 and .6273.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.baselines.ablation_variants import Documents, Queries, Variant
from pipeline.baselines.raw_fields import raw_fields
from pipeline.benchmark import Benchmark
from pipeline.mftr.dense_fields import encode_fields
from pipeline.mftr.field_scores import FieldScorer
from pipeline.mftr.fields import QueryFields, ToolFields, compared_fields, query_fields, tool_fields
from pipeline.mftr.learned_parameters import LearnedFolds, negative_weight_notes
from pipeline.mftr.lexical_fields import Bm25Fields
from pipeline.mftr.negatives import hard_negatives
from pipeline.mftr.schema import RewrittenQuery, StandardizedTool, original_query
from pipeline.mftr.search import search
from pipeline.mftr.settings import PAPER, MftrSettings, Weighting
from pipeline.mftr.training import labels_of, train_folds
from pipeline.retrieval.contract import Preset
from pipeline.retrieval.documents import documents_in_order, queries_in_order, run_target
from pipeline.retrieval.embedding_cache import EmbeddingCache
from pipeline.retrieval.models import ModelSpec
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.run import Run, RunTarget


@dataclass(frozen=True, eq=False)
class FieldInputs:
    """What a weighted variant compares, in the order of the benchmark's ids.

    Attributes:
        tools: raw or standardized fields.
        queries: the original or the rewritten query.
        settings: how they are weighed.
        target: the benchmark's ids.
    """

    tools: ToolFields
    queries: QueryFields
    settings: MftrSettings
    target: RunTarget


@dataclass(frozen=True, eq=False)
class WeightedRun:
    """A finished weighted variant.

    Attributes:
        run: out-of-fold rankings.
        target: the benchmark's ids.
        learned: the weights of each fold.
        contract_hash: of the retriever, the settings and what was compared.
        query_ms: milliseconds a query, for field scores and their sum; encoding is not counted.
        notes: for readers of the results.
    """

    run: Run
    target: RunTarget
    learned: LearnedFolds
    contract_hash: str
    query_ms: float | None
    notes: tuple[str, ...]


def field_inputs(
    benchmark: Benchmark,
    variant: Variant,
    *,
    standardized: Iterable[StandardizedTool] = (),
    rewritten: Iterable[RewrittenQuery] = (),
    base: MftrSettings = PAPER,
) -> FieldInputs:
    """The documents, queries and settings of a weighted variant.

    A tool that was not standardized has empty fields, a query that was not rewritten no needs, as in MFTR itself. An
    original query is the one need in every field and has no arguments, so that its parameter scores are 0.

    Raises:
        MftrError: a given tool or query comes twice or is not of the benchmark.
        UsageError: the variant compares whole texts.
    """
    settings = variant.settings(base)
    target = run_target(benchmark)
    if variant.documents is Documents.RAW_FIELDS:
        documents = documents_in_order(benchmark, target)
        tools = ToolFields([raw_fields(i, text) for i, text in zip(target.tools.ids, documents, strict=True)])
    else:
        tools = tool_fields(standardized, target.tools)
    if variant.queries is Queries.ORIGINAL:
        texts, _ = queries_in_order(benchmark, target)
        queries = QueryFields([original_query(i, text) for i, text in zip(target.queries.ids, texts, strict=True)])
    else:
        queries = query_fields(rewritten, target.queries)
    return FieldInputs(tools, queries, settings, target)


def field_scorer(
    inputs: FieldInputs,
    model: ModelSpec,
    preset: Preset | str = Preset.CARD,
    *,
    cache: EmbeddingCache | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> FieldScorer:
    """Index or encode the fields.

    Raises:
        Cancelled: on request.
        ModelError: the model cannot be loaded or used.
    """
    if not model.entry.dense:
        return Bm25Fields(inputs.tools, inputs.queries)
    contract = model.contract(preset)
    return encode_fields(inputs.tools, inputs.queries, model, contract, cache, progress=progress, cancelled=cancelled)


def retrieve_weighted(
    benchmark: Benchmark,
    variant: Variant,
    model: ModelSpec,
    preset: Preset | str = Preset.CARD,
    *,
    standardized: Iterable[StandardizedTool] = (),
    rewritten: Iterable[RewrittenQuery] = (),
    base: MftrSettings = PAPER,
    depth: int = 100,
    cache: EmbeddingCache | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> WeightedRun:
    """Train a weighted variant fold by fold and rank each query by the weights that never saw it.

    Args:
        benchmark: the benchmark.
        variant: one that scores fields.
        model: BM25 or a dense model.
        preset: ``card`` or ``paper``: how the model encodes.
        standardized: the tools, in any order.
        rewritten: the queries, likewise.
        base: MFTR's settings that the variant departs from.
        depth: results kept for a query.
        cache: where embeddings are kept.
        progress: see ``encode_fields``, ``train_folds`` and ``search``.
        cancelled: asked between chunks.

    Raises:
        Cancelled: on request.
        MftrError: a given tool or query comes twice or is not of the benchmark.
        ModelError: the model cannot be loaded or used.
        UsageError: the variant compares whole texts, or there are too few queries for the folds.
    """
    inputs = field_inputs(benchmark, variant, standardized=standardized, rewritten=rewritten, base=base)
    scorer = field_scorer(inputs, model, preset, cache=cache, progress=progress, cancelled=cancelled)
    learns = inputs.settings.weighting is Weighting.LEARNED
    learned = train_folds(
        scorer,
        inputs.settings,
        labels_of(inputs.target),
        hard_negatives(benchmark, inputs.target, inputs.settings) if learns else [],
        progress=progress,
        cancelled=cancelled,
    )
    start = time.perf_counter()
    rankings = search(scorer, inputs.settings, learned, depth, progress=progress, cancelled=cancelled)
    count = len(inputs.queries)
    milliseconds = 1000 * (time.perf_counter() - start) / count if count else None
    base_hash = inputs.settings.contract_hash(model.contract(preset).hash)
    compared = f"equirank ablation 1\n{base_hash}\n{variant.key}\n{variant.documents}\n{variant.queries}"
    identity = hashlib.sha256(compared.encode()).hexdigest()
    notes = negative_weight_notes(learned, compared_fields(inputs.tools, inputs.queries))
    return WeightedRun(rankings.run(inputs.target), inputs.target, learned, identity, milliseconds, notes)
