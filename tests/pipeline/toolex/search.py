"""A second retriever for tests: character n-grams, which take no model and find what words miss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from pipeline.benchmark import Benchmark
from pipeline.retrieval.documents import documents_in_order, run_target
from pipeline.retrieval.models import resolve_model
from pipeline.retrieval.rankings import Rankings
from pipeline.retrieval.topk import top_k
from pipeline.toolex.candidates import CandidatePool, LibrarySearch
from pipeline.toolex.settings import PoolMember, ToolexSettings


class Ngrams:
    """Cosine of tf-idf weighted character n-grams."""

    def __init__(self, documents: Sequence[str]) -> None:
        self._vectors = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 4), sublinear_tf=True)
        self._documents = self._vectors.fit_transform(documents).toarray().astype(np.float32)

    def search(self, texts: Sequence[str], depth: int, **_: object) -> Rankings:
        return top_k(self._vectors.transform(texts).toarray().astype(np.float32), self._documents, depth)


def two_member_pool(benchmark: Benchmark, depth: int) -> CandidatePool:
    target = run_target(benchmark)
    documents = documents_in_order(benchmark, target)
    lexical = LibrarySearch(documents, resolve_model("bm25"), PoolMember("bm25"))
    return CandidatePool(target, {"bm25": lexical, "ngrams": Ngrams(documents)}, depth)


def settings_for(depth: int, **changes: object) -> ToolexSettings:
    return ToolexSettings(pool=(PoolMember("bm25"), PoolMember("ngrams")), depth=depth, **changes)
