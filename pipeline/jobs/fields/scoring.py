"""φ over fields, and the ranking that it gives with learned weights: what it finds and what it costs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from pipeline.mftr.dense_fields import dense_fields, dense_texts
from pipeline.mftr.field_scores import FieldScorer
from pipeline.mftr.fields import QueryFields, ToolFields, compared_fields
from pipeline.mftr.learned_parameters import LearnedFolds, negative_weight_notes
from pipeline.mftr.lexical_fields import Bm25Fields
from pipeline.mftr.search import search
from pipeline.mftr.settings import MftrSettings
from pipeline.retrieval.contract import Contract, PromptedText
from pipeline.retrieval.dense import distinct_texts, encode_both
from pipeline.retrieval.efficiency import Efficiency, per_thousand, processor
from pipeline.retrieval.embedding_cache import EmbeddingCache
from pipeline.retrieval.models import ModelSpec
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.run import Run, RunTarget


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
    documents, needs = encode_both(texts.tools, texts.queries, model, contract, cache, progress, cancelled)
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
    notes = negative_weight_notes(learned, compared_fields(scored.scorer.tools, scored.scorer.queries))
    return FieldRanking(rankings.run(target), target, learned, efficiency, notes)
