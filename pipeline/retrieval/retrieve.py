"""One entry for every retriever: a benchmark and a model in, a run out."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum

from pipeline.benchmark import Benchmark
from pipeline.errors import UsageError
from pipeline.formats.messages import quote
from pipeline.retrieval import bm25, subquery
from pipeline.retrieval.contract import Contract, Preset, PromptedText
from pipeline.retrieval.dense import Encoded, encode_both
from pipeline.retrieval.documents import documents_in_order, queries_in_order, run_target
from pipeline.retrieval.efficiency import Efficiency, per_thousand, processor
from pipeline.retrieval.embedding_cache import EmbeddingCache
from pipeline.retrieval.fusion import fuse_groups
from pipeline.retrieval.models import ModelSpec
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback, Stage
from pipeline.retrieval.rankings import Rankings
from pipeline.retrieval.topk import top_k
from pipeline.run import Run, RunTarget


class Method(StrEnum):
    """What is matched with what."""

    FULL_DOC = "full-doc"
    SUB_QUERY = "sub-query"
    ADAPTER = "adapter"


@dataclass(frozen=True, eq=False)
class Retrieval:
    """A finished retrieval.

    Attributes:
        run: the ranking, over ``target``.
        target: the benchmark's ids.
        contract_hash: of the contract the texts were encoded by; for the adapter, also of how it was trained.
        efficiency: what it cost.
        notes: what a reader of the results must know, in sentences.
    """

    run: Run
    target: RunTarget
    contract_hash: str
    efficiency: Efficiency
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class RetrievalTexts:
    """Every text of a retrieval, as the model reads it: what a job can split into shards.

    Attributes:
        target: the benchmark's ids.
        documents: in the order of ``target.tools``.
        queries: one a row of the search: in the order of ``target.queries``, or the sub-queries of one after another.
        groups: the sub-queries' places; None when each row is a query of its own.
    """

    target: RunTarget
    documents: list[PromptedText]
    queries: list[PromptedText]
    groups: subquery.SubqueryTexts | None


def retrieval_texts(benchmark: Benchmark, contract: Contract, method: Method) -> RetrievalTexts:
    """The texts of a retrieval.

    Raises:
        BenchmarkError: the method needs sub-queries that the benchmark lacks.
    """
    target = run_target(benchmark)
    documents = [contract.document(text) for text in documents_in_order(benchmark, target)]
    texts, instructions = queries_in_order(benchmark, target)
    if method is not Method.SUB_QUERY:
        queries = [contract.query(text, about) for text, about in zip(texts, instructions, strict=True)]
        return RetrievalTexts(target, documents, queries, None)
    groups = subquery.subquery_texts(benchmark, target, texts)
    owners = groups.query_of.tolist()
    queries = [contract.query(text, instructions[owner]) for text, owner in zip(groups.texts, owners, strict=True)]
    return RetrievalTexts(target, documents, queries, groups)


def retrieve(
    benchmark: Benchmark,
    model: ModelSpec,
    method: Method | str = Method.FULL_DOC,
    preset: Preset | str = Preset.CARD,
    *,
    instruction: bool = False,
    depth: int = 100,
    positives: str = "ground_truth",
    seed: int = 42,
    cache: EmbeddingCache | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Retrieval:
    """Rank the benchmark's tools for each of its queries.

    Args:
        benchmark: the benchmark.
        model: see ``resolve_model``.
        method: ``full-doc``, ``sub-query`` or ``adapter``.
        preset: ``card`` or ``paper``.
        instruction: whether queries come with their instruction, where they have one.
        depth: results kept for a query.
        positives: adapter only: ``ground_truth`` or ``equivalents``.
        seed: adapter only.
        cache: where embeddings are kept; texts found there are not encoded again.
        progress: stages ``documents``, ``queries``, ``search`` (``training`` for the adapter).
        cancelled: asked after every batch.

    Raises:
        BenchmarkError: the method needs something the benchmark lacks.
        Cancelled: on request; what was encoded stays in the cache.
        ModelError: the model cannot be loaded or used.
        UsageError: the method is unknown or not defined for this model, or the depth is below 1.
    """
    if method not in list(Method):
        raise UsageError(f"Unknown method {quote(method)}; choose {', '.join(Method)}.")
    if depth < 1:
        raise UsageError(f"The depth is {depth}; it must be at least 1.")
    method = Method(method)
    contract = model.contract(preset, instruction=instruction)
    if method is Method.ADAPTER:
        if not model.entry.dense:
            raise UsageError(f"The adapter works on embeddings; {model.entry.name} has none. Choose a dense model.")
        from pipeline.retrieval.adapted import retrieve_adapted

        return retrieve_adapted(
            benchmark,
            model,
            contract,
            depth=depth,
            positives=positives,
            seed=seed,
            cache=cache,
            progress=progress,
            cancelled=cancelled,
        )
    texts = retrieval_texts(benchmark, contract, method)
    return search_texts(texts, model, contract, depth, cache=cache, progress=progress, cancelled=cancelled)


def search_texts(
    texts: RetrievalTexts,
    model: ModelSpec,
    contract: Contract,
    depth: int = 100,
    *,
    cache: EmbeddingCache | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Retrieval:
    """The run of the queries over the documents, whatever they say: encode what the cache lacks, or index, and search.

    Raises:
        Cancelled: on request; what was encoded stays in the cache.
        ModelError: the model cannot be loaded or used.
    """
    if not model.entry.dense:
        return _lexical(texts, contract, depth, progress, cancelled)
    documents, queries = encode_both(texts.documents, texts.queries, model, contract, cache, progress, cancelled)
    return search_encoded(texts, model, contract, documents, queries, depth, progress=progress, cancelled=cancelled)


def search_encoded(
    texts: RetrievalTexts,
    model: ModelSpec,
    contract: Contract,
    documents: Encoded,
    queries: Encoded,
    depth: int = 100,
    *,
    notes: tuple[str, ...] = (),
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Retrieval:
    """The run of embedded queries over embedded documents: the last step of a job whose shards encoded them."""
    # Kernels are compiled once on a machine; that is no cost of a query.
    top_k(queries.embeddings[:1], documents.embeddings[:1], 1)
    start = time.perf_counter()
    width = subquery.DEPTH if texts.groups is not None else depth
    rankings = top_k(
        queries.embeddings, documents.embeddings, width, device=search_device(), progress=progress, cancelled=cancelled
    )
    rankings, more = _grouped(rankings, texts, depth)
    cost = Efficiency(
        encode_seconds_per_1000_documents=per_thousand(documents.seconds, documents.distinct),
        query_ms=_query_ms(queries.seconds, queries.distinct, time.perf_counter() - start, texts),
        dimension=documents.embeddings.shape[1],
        parameters=model.entry.parameters,
        index_bytes=documents.embeddings.nbytes,
        device=", ".join(documents.devices) or processor(),
    )
    return Retrieval(rankings.run(texts.target), texts.target, contract.hash, cost, more + notes)


def _lexical(
    texts: RetrievalTexts,
    contract: Contract,
    depth: int,
    progress: ProgressCallback | None,
    cancelled: CancelledCallback | None,
) -> Retrieval:
    start = time.perf_counter()
    stage = Stage("documents", len(texts.documents), progress, cancelled)
    index = bm25.Bm25Index([text.whole for text in texts.documents])
    indexing = time.perf_counter() - start
    stage.advance(len(texts.documents))
    width = subquery.DEPTH if texts.groups is not None else depth
    queries = [text.whole for text in texts.queries]
    index.search(queries[:1], 1)  # as above: the kernel is compiled once on a machine
    start = time.perf_counter()
    rankings, notes = _grouped(index.search(queries, width, progress=progress, cancelled=cancelled), texts, depth)
    cost = Efficiency(
        encode_seconds_per_1000_documents=per_thousand(indexing, len(index)),
        query_ms=_query_ms(0.0, 0, time.perf_counter() - start, texts),
        dimension=None,
        parameters=None,
        index_bytes=index.index_bytes,
        device=processor(),
    )
    return Retrieval(rankings.run(texts.target), texts.target, contract.hash, cost, notes)


def _grouped(rankings: Rankings, texts: RetrievalTexts, depth: int) -> tuple[Rankings, tuple[str, ...]]:
    if texts.groups is None:
        return rankings, ()
    return fuse_groups(rankings, texts.groups.offsets, depth), texts.groups.notes


def _query_ms(encoding: float, distinct: int, searching: float, texts: RetrievalTexts) -> float | None:
    """Milliseconds a query of the benchmark; its sub-queries count together."""
    queries = len(texts.target.queries)
    if not queries:
        return None
    rows = len(texts.queries) / queries
    return 1000 * ((encoding / distinct * rows if distinct else 0.0) + searching / queries)


def search_device() -> str:
    """``cuda`` where torch is there already and sees a GPU, else ``cpu``: a search from the cache loads no torch."""
    import sys

    torch = sys.modules.get("torch")
    return "cuda" if torch is not None and torch.cuda.is_available() else "cpu"
