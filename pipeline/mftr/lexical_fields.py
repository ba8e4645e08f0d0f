"""BM25 over each field: one index a field, in which every text of every tool is a document."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeline.mftr.fields import QueryFields, ToolFields
from pipeline.mftr.schema import Field
from pipeline.retrieval.bm25 import Bm25Index


class Bm25Fields:
    """φ by BM25; see ``FieldScorer``.

    A text that several tools share is a document for each of them: the index counts documents, as the published
    implementation's does.

    Args:
        tools: the corpus.
        queries: what is searched for.
    """

    lexical = True

    def __init__(self, tools: ToolFields, queries: QueryFields) -> None:
        self.tools = tools
        self.queries = queries
        self._indexes = {field: Bm25Index(tools[field].occurrences) for field in Field}
        self._columns = {field: np.arange(len(tools[field].places), dtype=np.int32) for field in Field}

    def with_queries(self, queries: QueryFields) -> Bm25Fields:
        """The same indexes for other queries."""
        other = Bm25Fields.__new__(Bm25Fields)
        other.tools, other.queries, other._indexes, other._columns = self.tools, queries, self._indexes, self._columns
        return other

    @property
    def index_bytes(self) -> int:
        """Memory of all indexes."""
        return sum(index.index_bytes for index in self._indexes.values())

    def texts(self, field: Field) -> int:
        """See ``FieldScorer``."""
        return len(self._indexes[field])

    def places(self, field: Field) -> npt.NDArray[np.int32]:
        """See ``FieldScorer``."""
        return self._columns[field]

    def best(self, field: Field, start: int, end: int) -> npt.NDArray[np.float32]:
        """See ``FieldScorer``."""
        texts = self.queries[field]
        bounds = texts.offsets[start : end + 1]
        words = [texts.texts[place] for place in texts.places[bounds[0] : bounds[-1]].tolist()]
        return self._indexes[field].best_scores(words, bounds - bounds[0])

    def text_scores(self, field: Field, query: int) -> npt.NDArray[np.float32]:
        """See ``FieldScorer``."""
        texts, index = self.queries[field], self._indexes[field]
        places = texts.places[texts.offsets[query] : texts.offsets[query + 1]].tolist()
        words = [texts.texts[place] for place in places]
        return index.best_scores(words, np.arange(len(words) + 1, dtype=np.int64))
