"""Candidates of a sub-query: the best results of one or several retrievers over the whole library.

Several retrievers give the union of their results, ordered by reciprocal rank fusion, and each candidate keeps the
rank that every member gave it, so that it can be told afterwards who found what. Sub-queries go without the query's
instruction: they say what they need themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from pipeline.benchmark import Benchmark
from pipeline.retrieval.bm25 import Bm25Index
from pipeline.retrieval.contract import PromptedText
from pipeline.retrieval.dense import Encoded, encode_texts
from pipeline.retrieval.documents import documents_in_order, run_target
from pipeline.retrieval.embedding_cache import EmbeddingCache
from pipeline.retrieval.encoder import shared_encoder
from pipeline.retrieval.fusion import fuse
from pipeline.retrieval.models import ModelSpec, Permissions, resolve_model
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.retrieval.rankings import Rankings
from pipeline.retrieval.retrieve import search_device
from pipeline.retrieval.topk import top_k
from pipeline.run import RunTarget
from pipeline.toolex.records import Candidate, Subquery
from pipeline.toolex.settings import PoolMember


class Retriever(Protocol):
    """Ranks the library for texts; ``LibrarySearch`` is one over any registered model."""

    def search(
        self,
        texts: Sequence[str],
        depth: int,
        *,
        progress: ProgressCallback | None = None,
        cancelled: CancelledCallback | None = None,
    ) -> Rankings:
        """The best ``depth`` tools of each text; positions count in byte order of the tool ids."""
        ...


class LibrarySearch:
    """One registered retriever over one library; documents are indexed or encoded at the first search, once.

    Args:
        documents: searched texts in byte order of the tool ids.
        model: the retriever.
        member: how it is to encode.
        cache: where embeddings are kept.
    """

    def __init__(
        self, documents: Sequence[str], model: ModelSpec, member: PoolMember, cache: EmbeddingCache | None = None
    ) -> None:
        """Nothing is loaded yet."""
        self._model, self._cache = model, cache
        self._contract = model.contract(member.preset)
        self._documents = documents
        self._index: Bm25Index | None = None
        self._encoded: Encoded | None = None

    def search(
        self,
        texts: Sequence[str],
        depth: int,
        *,
        progress: ProgressCallback | None = None,
        cancelled: CancelledCallback | None = None,
    ) -> Rankings:
        """See ``Retriever``.

        Raises:
            Cancelled: on request; what was encoded stays in the cache.
            ModelError: the model cannot be loaded or used.
        """
        contract = self._contract
        queries = [contract.query(text) for text in texts]
        if not self._model.entry.dense:
            if self._index is None:
                self._index = Bm25Index([contract.document(text).whole for text in self._documents])
            whole = [text.whole for text in queries]
            return self._index.search(whole, depth, progress=progress, cancelled=cancelled)

        def encode(stage: str, rows: Sequence[PromptedText]) -> Encoded:
            return encode_texts(
                rows,
                contract,
                lambda: shared_encoder(self._model, contract),
                self._cache,
                stage=stage,
                progress=progress,
                cancelled=cancelled,
            )

        if self._encoded is None:
            self._encoded = encode("documents", [contract.document(text) for text in self._documents])
        return top_k(
            encode("queries", queries).embeddings,
            self._encoded.embeddings,
            depth,
            device=search_device(),
            progress=progress,
            cancelled=cancelled,
        )


class CandidatePool:
    """The pool of a benchmark's library.

    Args:
        target: the library's ids.
        members: name → retriever, in the order of ``Candidate.ranks``.
        depth: results of each member (K).
    """

    def __init__(self, target: RunTarget, members: dict[str, Retriever], depth: int) -> None:
        """Keep the members; nothing is searched yet."""
        self._target, self._members, self.depth = target, members, depth

    @property
    def names(self) -> tuple[str, ...]:
        """The members' names."""
        return tuple(self._members)

    def candidates(
        self,
        subqueries: Sequence[Subquery],
        *,
        progress: ProgressCallback | None = None,
        cancelled: CancelledCallback | None = None,
    ) -> list[tuple[Candidate, ...]]:
        """The candidates of each sub-query, in rank order; its ground-truth tool comes last where nobody found it.

        Raises:
            Cancelled: on request.
            ModelError: a retriever cannot be used.
        """
        if not subqueries:
            return []
        texts = [subquery.text for subquery in subqueries]
        found = [
            member.search(texts, self.depth, progress=progress, cancelled=cancelled)
            for member in self._members.values()
        ]
        return [
            self._fused([rankings.tools[row, : int(rankings.counts[row])] for rankings in found], subquery.tool_id)
            for row, subquery in enumerate(subqueries)
        ]

    def _fused(self, lists: list[np.ndarray], truth: str) -> tuple[Candidate, ...]:
        order, _ = fuse(lists)
        places = [{tool: rank for rank, tool in enumerate(ranked.tolist(), start=1)} for ranked in lists]
        candidates = [
            Candidate(self._target.tools[tool], rank, tuple(place.get(tool) for place in places))
            for rank, tool in enumerate(order.tolist(), start=1)
        ]
        if all(candidate.tool_id != truth for candidate in candidates):
            candidates.append(Candidate(truth, None, (None,) * len(lists)))
        return tuple(candidates)


def library_pool(
    benchmark: Benchmark,
    members: Sequence[PoolMember],
    depth: int,
    *,
    permissions: Permissions | None = None,
    endpoint_url: str = "",
    cache: EmbeddingCache | None = None,
) -> CandidatePool:
    """The pool of registered retrievers over a benchmark's library.

    Raises:
        ModelError: a model is unknown or not allowed.
    """
    target = run_target(benchmark)
    documents = documents_in_order(benchmark, target)
    retrievers: dict[str, Retriever] = {}
    for member in members:
        model = resolve_model(member.model, permissions=permissions or Permissions(), endpoint_url=endpoint_url)
        retrievers[member.model] = LibrarySearch(documents, model, member, cache)
    return CandidatePool(target, retrievers, depth)


def absent_rank(candidates: Sequence[Candidate], depth: int) -> int:
    """The rank that a tool which nothing retrieved counts with: K + 1, after the last where a pool found more than K.

    Args:
        candidates: of one sub-query.
        depth: K.
    """
    return max([depth, *(candidate.rank for candidate in candidates if candidate.rank is not None)]) + 1
