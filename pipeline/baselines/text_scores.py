"""Every document's score for a few texts at a time: what a method needs that mixes the scores of several texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pipeline.retrieval.bm25 import Bm25Index
from pipeline.retrieval.contract import Contract
from pipeline.retrieval.dense import encode_texts
from pipeline.retrieval.embedding_cache import EmbeddingCache
from pipeline.retrieval.encoder import shared_encoder
from pipeline.retrieval.models import ModelSpec
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback

FloatArray = npt.NDArray[np.float32]

#: Scores held at once, in numbers: 8 M float32 are 32 MB.
_HELD = 1 << 23


class TextScores(Protocol):
    """A retriever over fixed documents."""

    def __len__(self) -> int:
        """Number of documents."""

    def scores(self, queries: Sequence[str]) -> FloatArray:
        """float32 (queries, documents): BM25, or the inner product of embeddings."""


def text_scores(
    documents: Sequence[str],
    model: ModelSpec,
    contract: Contract,
    cache: EmbeddingCache | None = None,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> TextScores:
    """Index or encode the documents.

    Raises:
        Cancelled: on request; what was encoded stays in the cache.
        ModelError: the model cannot be loaded or used.
    """
    if not model.entry.dense:
        return LexicalScores(documents, contract)
    return DenseScores(documents, model, contract, cache, progress=progress, cancelled=cancelled)


def parts(rows: int, documents: int) -> list[slice]:
    """Slices of ``rows`` queries whose scores fit into memory together."""
    step = max(1, min(256, _HELD // max(1, documents)))
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


class LexicalScores:
    """BM25 scores."""

    def __init__(self, documents: Sequence[str], contract: Contract) -> None:
        self._contract = contract
        self._index = Bm25Index([contract.document(text).whole for text in documents])

    def __len__(self) -> int:
        return len(self._index)

    def scores(self, queries: Sequence[str]) -> FloatArray:
        """See ``TextScores``."""
        out = np.empty((len(queries), len(self._index)), dtype=np.float32)
        for row, query in enumerate(queries):
            out[row] = self._index.scores(self._contract.query(query).whole)
        return out


class DenseScores:
    """Inner products of embeddings."""

    def __init__(
        self,
        documents: Sequence[str],
        model: ModelSpec,
        contract: Contract,
        cache: EmbeddingCache | None = None,
        *,
        progress: ProgressCallback | None = None,
        cancelled: CancelledCallback | None = None,
    ) -> None:
        self._model, self._contract, self._cache, self._cancelled = model, contract, cache, cancelled
        self._documents = encode_texts(
            [contract.document(text) for text in documents],
            contract,
            lambda: shared_encoder(model, contract),
            cache,
            progress=progress,
            cancelled=cancelled,
        ).embeddings

    def __len__(self) -> int:
        return len(self._documents)

    def scores(self, queries: Sequence[str]) -> FloatArray:
        """See ``TextScores``; query embeddings come from the cache as far as they are there."""
        if not len(self._documents) or not queries:
            return np.zeros((len(queries), len(self._documents)), dtype=np.float32)
        encoded = encode_texts(
            [self._contract.query(text) for text in queries],
            self._contract,
            lambda: shared_encoder(self._model, self._contract),
            self._cache,
            stage="queries",
            cancelled=self._cancelled,
        ).embeddings
        products: FloatArray = encoded @ self._documents.T
        return products
