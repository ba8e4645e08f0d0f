"""OnlineRAG over a benchmark."""

from __future__ import annotations

from dataclasses import replace

from pipeline.baselines.onlinerag import OnlineSettings, Truth, rank_out_of_fold
from pipeline.baselines.result import method_hash
from pipeline.benchmark import Benchmark
from pipeline.errors import UsageError
from pipeline.retrieval.contract import Preset
from pipeline.retrieval.dense import encode_both
from pipeline.retrieval.documents import queries_in_order
from pipeline.retrieval.embedding_cache import EmbeddingCache
from pipeline.retrieval.models import ModelSpec
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.retrieval.retrieve import Method, Retrieval, retrieval_texts, search_encoded


def retrieve_onlinerag(
    benchmark: Benchmark,
    model: ModelSpec,
    preset: Preset | str = Preset.CARD,
    settings: OnlineSettings | None = None,
    *,
    instruction: bool = False,
    depth: int = 100,
    cache: EmbeddingCache | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Retrieval:
    """Rank the benchmark's tools by embeddings updated online.

    Args:
        benchmark: the benchmark.
        model: a dense model.
        preset: ``card`` or ``paper``: how the model encodes.
        settings: see ``OnlineSettings``; its defaults when None.
        instruction: whether queries come with their instruction, where they have one.
        depth: results kept for a query.
        cache: where embeddings are kept; the updated ones are not.
        progress: stages ``documents``, ``queries``, ``training``, ``search``.
        cancelled: asked after every batch.

    Raises:
        Cancelled: on request.
        ModelError: the model cannot be loaded or used.
        UsageError: the model has no embeddings, there are too few queries for the folds, or the depth is below 1.
    """
    if not model.entry.dense:
        raise UsageError(
            f"OnlineRAG updates tool embeddings; {model.entry.name} has none, so the method is not defined for it. "
            "Choose a dense model."
        )
    if depth < 1:
        raise UsageError(f"The depth is {depth}; it must be at least 1.")
    settings = settings or OnlineSettings()
    contract = model.contract(preset, instruction=instruction)
    texts = retrieval_texts(benchmark, contract, Method.FULL_DOC)
    plain, _ = queries_in_order(benchmark, texts.target)
    documents, queries = encode_both(texts.documents, texts.queries, model, contract, cache, progress, cancelled)
    ranked = rank_out_of_fold(
        queries.embeddings,
        documents.embeddings,
        Truth.of(texts.target),
        plain,
        settings,
        depth=depth,
        progress=progress,
        cancelled=cancelled,
    )
    # Searching updated embeddings costs what searching the frozen ones does, which is measured here.
    frozen = search_encoded(texts, model, contract, documents, queries, depth, progress=progress, cancelled=cancelled)
    rates = ", ".join(f"{rate:g}" for rate in ranked.learning_rates)
    notes = (
        f"Tool embeddings updated online by this benchmark's own labels (OnlineRAG); {settings.folds} folds, each "
        "query ranked by embeddings that never saw it.",
        f"Learning rates chosen within the training folds: {rates}; "
        f"{sum(ranked.rewards):,} sampled tools over all folds were correct.",
    )
    return replace(
        frozen,
        run=ranked.rankings.run(texts.target),
        contract_hash=method_hash(contract.hash, "onlinerag", settings),
        notes=(*frozen.notes, *notes),
    )
