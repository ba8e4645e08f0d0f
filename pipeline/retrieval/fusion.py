"""Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pipeline.retrieval.rankings import Rankings
from pipeline.retrieval.topk import rank_order

#: The constant of the original paper, and of ToolEX.
RRF_K = 60


def fuse(
    lists: Sequence[npt.NDArray[np.int32]], k: int = RRF_K
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Merge ranked lists: a tool's score is the sum of 1 / (k + rank) over the lists that hold it.

    Args:
        lists: positions of tools, best first, no repeats inside a list.
        k: damps the first ranks.

    Returns:
        (tools, scores) by the ranking rule: score descending as float32, then position descending.
    """
    held = np.concatenate([np.asarray(ranked, dtype=np.int32) for ranked in lists] or [np.empty(0, dtype=np.int32)])
    shares = np.concatenate([1.0 / (k + np.arange(1, len(ranked) + 1)) for ranked in lists] or [np.empty(0)])
    tools, places = np.unique(held, return_inverse=True)
    # Sorted shares make the sum independent of the order of the lists.
    order = np.argsort(shares, kind="stable")
    scores = np.bincount(places[order], weights=shares[order], minlength=len(tools)).astype(np.float32)
    best = rank_order(scores, tools)
    return tools[best], scores[best]


def fuse_groups(rankings: Rankings, offsets: npt.NDArray[np.int64], depth: int, k: int = RRF_K) -> Rankings:
    """Fuse the lists of each query.

    Args:
        rankings: one row a sub-query.
        offsets: int64 (queries + 1): the lists of query q are rows ``offsets[q]:offsets[q + 1]``.
        depth: results kept for a query.
        k: see ``fuse``.
    """
    lists = [rankings.tools[row, :count] for row, count in enumerate(rankings.counts.tolist())]
    fused = [fuse(lists[start:end], k) for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]
    out = Rankings.empty(len(fused), min(depth, max((len(tools) for tools, _ in fused), default=0)))
    for row, (tools, scores) in enumerate(fused):
        count = min(depth, len(tools))
        out.tools[row, :count], out.scores[row, :count], out.counts[row] = tools[:count], scores[:count], count
    return out
