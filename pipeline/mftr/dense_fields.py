"""Embeddings of every field's texts, and their inner products."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.mftr.field_kernels import best_of_texts
from pipeline.mftr.fields import QueryFields, ToolFields, compared_fields
from pipeline.mftr.schema import Field
from pipeline.retrieval.contract import Contract, PromptedText
from pipeline.retrieval.dense import Encoded, encode_both
from pipeline.retrieval.embedding_cache import EmbeddingCache
from pipeline.retrieval.models import ModelSpec
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback

FloatArray = npt.NDArray[np.float32]
#: Tool texts of one product.
_COLUMNS = 1 << 13
#: Up to so many query texts are multiplied one by one: a matrix product would first copy the tools' embeddings into
#: its own order, which takes twice as long as reading them. The blocks then stay in a core's cache for the next text.
_FEW = 8
_FEW_COLUMNS = 1 << 10


@dataclass(frozen=True, eq=False)
class FieldEmbeddings:
    """Embeddings of one field.

    Attributes:
        tools: float32 (distinct tool texts, dimension), in the order of ``ToolFields[field].texts``; no rows where no
            query has a text of the field, so that nothing is compared with them.
        queries: float32 (distinct query texts, dimension), in the order of ``QueryFields[field].texts``; likewise.
    """

    tools: FloatArray
    queries: FloatArray


class DenseFields:
    """φ by the inner product of embeddings, which is the cosine where the contract normalises; see ``FieldScorer``.

    Args:
        tools: the corpus.
        queries: what is searched for.
        embeddings: of every field.
    """

    lexical = False

    def __init__(self, tools: ToolFields, queries: QueryFields, embeddings: Mapping[Field, FieldEmbeddings]) -> None:
        self.tools = tools
        self.queries = queries
        self.embeddings = dict(embeddings)

    @property
    def index_bytes(self) -> int:
        """Memory of the tools' embeddings."""
        return sum(held.tools.nbytes for held in self.embeddings.values())

    def texts(self, field: Field) -> int:
        """See ``FieldScorer``."""
        return len(self.tools[field].texts)

    def places(self, field: Field) -> npt.NDArray[np.int32]:
        """See ``FieldScorer``."""
        return self.tools[field].places

    def best(self, field: Field, start: int, end: int) -> FloatArray:
        """See ``FieldScorer``."""
        texts, held = self.queries[field], self.embeddings[field]
        bounds = texts.offsets[start : end + 1]
        if not len(held.queries):
            return np.zeros((end - start, self.texts(field)), dtype=np.float32)
        rows = held.queries[texts.places[bounds[0] : bounds[-1]]]
        out = np.zeros((end - start, self.texts(field)), dtype=np.float32)
        if not len(rows):
            return out
        few = len(rows) <= _FEW
        step = _FEW_COLUMNS if few else _COLUMNS
        for first in range(0, len(held.tools), step):
            block = held.tools[first : first + step]
            products = np.stack([block @ row for row in rows]) if few else rows @ block.T
            best_of_texts(products, bounds - bounds[0], first, out)
        return out

    def text_scores(self, field: Field, query: int) -> FloatArray:
        """See ``FieldScorer``."""
        texts, held = self.queries[field], self.embeddings[field]
        places = texts.places[texts.offsets[query] : texts.offsets[query + 1]]
        if not len(held.queries):
            return np.zeros((len(places), self.texts(field)), dtype=np.float32)
        scores: FloatArray = held.queries[places] @ held.tools.T
        return scores


@dataclass(frozen=True, eq=False)
class DenseTexts:
    """Every text to encode, as the model reads it: what a job can split into shards.

    Attributes:
        tools: of all fields, one after another.
        queries: likewise; each has the query prefix of the contract.
    """

    tools: list[PromptedText]
    queries: list[PromptedText]


def dense_texts(tools: ToolFields, queries: QueryFields, contract: Contract) -> DenseTexts:
    """The distinct texts of each field that both queries and tools have.

    Parameters are the longest part of many corpora, and original queries have no arguments: nothing would be compared
    with them, and they are not encoded.
    """
    compared = compared_fields(tools, queries)
    return DenseTexts(
        [contract.document(text) for field in compared for text in tools[field].texts],
        [contract.query(text) for field in compared for text in queries[field].texts],
    )


def dense_fields(tools: ToolFields, queries: QueryFields, documents: Encoded, needs: Encoded) -> DenseFields:
    """From the embeddings of ``dense_texts``."""
    embeddings: dict[Field, FieldEmbeddings] = {}
    compared = compared_fields(tools, queries)
    tool_end = query_end = 0
    for field in Field:
        tool_start, query_start = tool_end, query_end
        if field in compared:
            tool_end += len(tools[field].texts)
            query_end += len(queries[field].texts)
        embeddings[field] = FieldEmbeddings(
            documents.embeddings[tool_start:tool_end], needs.embeddings[query_start:query_end]
        )
    return DenseFields(tools, queries, embeddings)


def encode_fields(
    tools: ToolFields,
    queries: QueryFields,
    model: ModelSpec,
    contract: Contract,
    cache: EmbeddingCache | None = None,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> DenseFields:
    """Encode what the cache lacks.

    Args:
        tools: the corpus.
        queries: what is searched for.
        model: a dense model.
        contract: one of its contracts; its query format goes before every need and argument.
        cache: see ``encode_texts``.
        progress: stages ``documents`` and ``queries``, in texts.
        cancelled: asked after every batch.

    Raises:
        Cancelled: on request.
        ModelError: the model cannot be loaded or used.
    """
    texts = dense_texts(tools, queries, contract)
    documents, needs = encode_both(texts.tools, texts.queries, model, contract, cache, progress, cancelled)
    return dense_fields(tools, queries, documents, needs)
