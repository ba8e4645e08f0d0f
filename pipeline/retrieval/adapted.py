"""The adapter method: rank each query by an adapter that was trained on the other folds' labels."""

from __future__ import annotations

import numpy as np

from pipeline.benchmark import Benchmark
from pipeline.errors import BenchmarkError, UsageError
from pipeline.formats.messages import quote
from pipeline.retrieval.adapter import AdapterSettings, Positives, TrainingPairs, adapt_out_of_fold, folds_of
from pipeline.retrieval.contract import Contract
from pipeline.retrieval.dense import Encoded, encode_both
from pipeline.retrieval.documents import queries_in_order
from pipeline.retrieval.embedding_cache import EmbeddingCache
from pipeline.retrieval.models import ModelSpec
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.retrieval.retrieve import Method, Retrieval, retrieval_texts, search_encoded
from pipeline.run import RunTarget
from pipeline.scoring.compiler import compile_benchmark


def training_pairs(benchmark: Benchmark, target: RunTarget, positives: Positives) -> TrainingPairs:
    """Pairs of every query with its annotated tools, and the tools that count as right for it.

    Raises:
        BenchmarkError: equivalents are asked for and the benchmark has none.
    """
    queries = np.repeat(np.arange(len(target.queries), dtype=np.int64), np.diff(target.truth_offsets))
    truth = target.truth_tools.astype(np.int64)
    owners, right = queries, truth
    if positives is Positives.EQUIVALENTS:
        labels = compile_benchmark(benchmark)
        everything = np.arange(len(target.queries), dtype=np.int64)
        owners = np.concatenate(
            [
                owners,
                np.repeat(everything, np.diff(labels.local_offsets)),
                np.repeat(everything, np.diff(labels.outside_offsets)),
            ]
        )
        right = np.concatenate([right, labels.local_tools, labels.outside_tools]).astype(np.int64)
    keys = np.unique(owners * len(target.tools) + right)
    if positives is Positives.EQUIVALENTS and len(keys) == len(np.unique(queries * len(target.tools) + truth)):
        raise BenchmarkError(
            f"{target.name} has no valid tools beyond its ground truth, so there are no equivalents to train with; use "
            "the ground truth."
        )
    offsets = np.searchsorted(keys // len(target.tools), np.arange(len(target.queries) + 1)).astype(np.int64)
    return TrainingPairs(queries, truth, offsets, keys % len(target.tools))


def retrieve_adapted(
    benchmark: Benchmark,
    model: ModelSpec,
    contract: Contract,
    *,
    depth: int = 100,
    positives: Positives | str = Positives.GROUND_TRUTH,
    seed: int = 42,
    cache: EmbeddingCache | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Retrieval:
    """Out-of-fold rankings of all queries as one run; see ``retrieve``.

    Raises:
        BenchmarkError: equivalents are asked for and the benchmark has none.
        Cancelled: on request.
        ModelError: the model cannot be loaded or used.
        UsageError: ``positives`` is unknown, or there are too few queries for five folds.
    """
    if positives not in list(Positives):
        raise UsageError(f"Unknown positives {quote(positives)}; choose ground_truth or equivalents.")
    settings = AdapterSettings(positives=Positives(positives), seed=seed)
    texts = retrieval_texts(benchmark, contract, Method.FULL_DOC)
    pairs = training_pairs(benchmark, texts.target, settings.positives)
    fold_of = folds_of(queries_in_order(benchmark, texts.target)[0], settings.folds, settings.seed)
    documents, queries = encode_both(texts.documents, texts.queries, model, contract, cache, progress, cancelled)
    adapted = adapt_out_of_fold(
        queries.embeddings,
        documents.embeddings,
        pairs,
        fold_of,
        settings,
        normalise=contract.normalise,
        progress=progress,
        cancelled=cancelled,
    )
    moved = Encoded(adapted, queries.new, queries.distinct, queries.seconds, queries.devices)
    with_labels = "every valid tool" if settings.positives is Positives.EQUIVALENTS else "the annotated tools"
    note = (
        f"A linear adapter on the queries of {model.entry.name}, trained with {with_labels} as positives on this "
        f"benchmark's own labels; {settings.folds} folds, each query ranked by an adapter that never saw it."
    )
    found = search_encoded(
        texts, model, contract, documents, moved, depth, notes=(note,), progress=progress, cancelled=cancelled
    )
    return Retrieval(found.run, found.target, settings.contract_hash(contract.hash), found.efficiency, found.notes)
