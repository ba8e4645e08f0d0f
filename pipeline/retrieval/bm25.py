"""BM25 through bm25s (Lucene variant), with one answer for every tie.

bm25s tokenises, weighs and indexes. Its own search cuts ties at the last place arbitrarily, differently from backend to
backend, and compiles for seconds in every new process; so its postings are searched by a small kernel here, which
adds the same float32 numbers in the same order. Equal scores go by tool id bytes descending (documents are in byte
order of their ids), also at the cut, and documents that share no term with the query are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np
import numpy.typing as npt

from pipeline.retrieval.progress import CancelledCallback, ProgressCallback, Stage
from pipeline.retrieval.rankings import Rankings

K1 = 1.5
B = 0.75
METHOD = "lucene"
STOPWORDS = "english"
#: Searched instead of a query without any term; capitals never match, since terms are lower case.
EMPTY_QUERY = "NONE"

#: The analyser and the weighting in one line, part of the contract.
DESCRIPTION = f"bm25s {METHOD} k1={K1} b={B}; lower-case words of two or more characters; stopwords={STOPWORDS}"

_QUERIES = 1024


class Bm25Index:
    """A BM25 index over documents in byte order of their tool ids.

    Args:
        documents: one text a tool; may be blank.
    """

    def __init__(self, documents: Sequence[str]) -> None:
        import bm25s

        self._size = len(documents)
        self._vocabulary: dict[str, int] = {}
        self._weights = np.empty(0, dtype=np.float32)
        self._documents = np.empty(0, dtype=np.int32)
        self._offsets = np.zeros(1, dtype=np.int64)
        tokens = bm25s.tokenize(list(documents), stopwords=STOPWORDS, show_progress=False)
        if not tokens.vocab:
            return
        index = bm25s.BM25(k1=K1, b=B, method=METHOD, backend="numpy", csc_backend="numpy", auto_compile=False)
        index.index(tokens, show_progress=False)
        self._vocabulary = index.vocab_dict
        self._weights = index.scores["data"].astype(np.float32)
        self._documents = index.scores["indices"].astype(np.int32)
        self._offsets = index.scores["indptr"].astype(np.int64)

    def __len__(self) -> int:
        """Number of documents."""
        return self._size

    @property
    def index_bytes(self) -> int:
        """Memory of the postings and of the terms' characters."""
        arrays = (self._weights, self._documents, self._offsets)
        return sum(array.nbytes for array in arrays) + sum(len(term.encode()) for term in self._vocabulary)

    def scores(self, query: str) -> npt.NDArray[np.float32]:
        """The score of every document; float32 (documents,)."""
        terms, _ = self._terms([query])
        out = np.zeros(self._size, dtype=np.float32)
        _add_weights(terms, self._offsets, self._documents, self._weights, out)
        return out

    def best_scores(self, texts: Sequence[str], bounds: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """The highest score of every document for any text of a query.

        Args:
            texts: of consecutive queries.
            bounds: int64 (queries + 1): the texts of query q are ``texts[bounds[q]:bounds[q + 1]]``.

        Returns:
            float32 (queries, documents); 0 for a query without texts.
        """
        terms, term_bounds = self._terms(texts)
        out = np.zeros((len(bounds) - 1, self._size), dtype=np.float32)
        _best_scores(terms, term_bounds, bounds, self._offsets, self._documents, self._weights, out)
        return out

    def search(
        self,
        queries: Sequence[str],
        depth: int = 100,
        *,
        progress: ProgressCallback | None = None,
        cancelled: CancelledCallback | None = None,
    ) -> Rankings:
        """The best documents of every query, at most ``depth``, none with score 0.

        Args:
            queries: texts as they are.
            depth: clamped to the number of documents.
            progress: stage ``search``, in queries.
            cancelled: asked every 1,024 queries.

        Raises:
            Cancelled: on request.
            ValueError: ``depth`` is below 1.
        """
        if depth < 1:
            raise ValueError(f"depth is {depth}; it must be at least 1")
        rankings = Rankings.empty(len(queries), min(depth, self._size))
        stage = Stage("search", len(queries), progress, cancelled)
        for start in range(0, len(queries), _QUERIES):
            rows = slice(start, min(start + _QUERIES, len(queries)))
            terms, bounds = self._terms(queries[rows])
            _search(
                terms,
                bounds,
                self._offsets,
                self._documents,
                self._weights,
                self._size,
                rankings.tools[rows],
                rankings.scores[rows],
                rankings.counts[rows],
            )
            stage.advance(rows.stop - rows.start)
        return rankings

    def _terms(self, queries: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Known terms of the queries, one query after another and repeats kept, and where each query begins."""
        known = [
            [self._vocabulary[term] for term in terms if term in self._vocabulary] for terms in query_terms(queries)
        ]
        bounds = np.zeros(len(known) + 1, dtype=np.int64)
        np.cumsum([len(terms) for terms in known], out=bounds[1:])
        return np.array([term for terms in known for term in terms], dtype=np.int64), bounds


def query_terms(queries: Sequence[str]) -> list[list[str]]:
    """The terms of each query; the one term ``NONE`` where there is none."""
    import bm25s

    tokens = bm25s.tokenize(list(queries), stopwords=STOPWORDS, return_ids=False, show_progress=False)
    return [terms or [EMPTY_QUERY] for terms in tokens]


@numba.njit(cache=True, nogil=True)
def _add_weights(terms, offsets, documents, weights, scores):  # type: ignore[no-untyped-def]
    for term in terms:
        for place in range(offsets[term], offsets[term + 1]):
            scores[documents[place]] += weights[place]


@numba.njit(cache=True, nogil=True)
def _best_scores(terms, term_bounds, bounds, offsets, documents, weights, out):  # type: ignore[no-untyped-def]
    every = np.empty(out.shape[1], dtype=np.float32)
    for query in range(len(bounds) - 1):
        best = out[query]
        for text in range(bounds[query], bounds[query + 1]):
            found = terms[term_bounds[text] : term_bounds[text + 1]]
            if text == bounds[query]:
                _add_weights(found, offsets, documents, weights, best)
            else:
                every[:] = 0
                _add_weights(found, offsets, documents, weights, every)
                for document in range(len(every)):
                    best[document] = max(best[document], every[document])


@numba.njit(cache=True, nogil=True)
def _search(terms, bounds, offsets, documents, weights, size, tools, scores, counts):  # type: ignore[no-untyped-def]
    width = tools.shape[1]
    capacity = min(size, 4 * width + 512)
    every = np.empty(size, dtype=np.float32)
    held = np.empty(capacity, dtype=np.float32)
    places = np.empty(capacity, dtype=np.int32)
    for row in range(len(bounds) - 1):
        every[:] = 0
        _add_weights(terms[bounds[row] : bounds[row + 1]], offsets, documents, weights, every)
        count = 0
        lowest = np.float32(1e-45)  # the smallest positive number: 0 shares no term
        for document in range(size):
            if every[document] >= lowest:
                if count == capacity:
                    lowest = _keep_best(held, places, count, width)
                    count = width
                    if every[document] < lowest:
                        continue
                held[count] = every[document]
                places[count] = document
                count += 1
        if count > width:
            _keep_best(held, places, count, width)
            count = width
        # One whole number that sorts by score, then by position: bits of positive floats order like the floats.
        keys = np.empty(count, dtype=np.int64)
        for i in range(count):
            keys[i] = (np.int64(np.float32(held[i]).view(np.int32)) << 32) | np.int64(places[i])
        keys.sort()
        for i in range(count):
            key = keys[count - 1 - i]
            tools[row, i] = np.int32(key & 0xFFFFFFFF)
            scores[row, i] = np.int32(key >> 32).view(np.float32)
        counts[row] = count


@numba.njit(cache=True, nogil=True)
def _keep_best(held, places, count, width):  # type: ignore[no-untyped-def]
    """Keep the ``width`` best of ``count`` documents in ascending order, the later of equal ones; return the lowest."""
    lowest = np.partition(held[:count], count - width)[count - width]
    spare = -width
    for i in range(count):
        spare += held[i] >= lowest
    left = 0
    for i in range(count):
        if held[i] > lowest or (held[i] == lowest and spare <= 0):
            held[left], places[left] = held[i], places[i]
            left += 1
        elif held[i] == lowest:
            spare -= 1
    return lowest
