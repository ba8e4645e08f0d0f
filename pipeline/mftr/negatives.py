"""Hard negatives: what BM25 finds for the raw query over the raw documents and nobody labelled (MFTR §4.4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pipeline.benchmark import Benchmark
from pipeline.mftr.settings import MftrSettings
from pipeline.retrieval.bm25 import Bm25Index
from pipeline.retrieval.documents import documents_in_order, queries_in_order
from pipeline.run import RunTarget
from pipeline.scoring.compiler import compile_benchmark


def hard_negatives(benchmark: Benchmark, target: RunTarget, settings: MftrSettings) -> list[npt.NDArray[np.int32]]:
    """The negatives of every query, in the order of ``target.queries``; positions in ``target.tools``.

    With ``equivalents_removed`` also the tools of valid combinations and verified equivalents are left out.
    """
    labels = [
        target.truth_tools[start:end]
        for start, end in zip(target.truth_offsets[:-1].tolist(), target.truth_offsets[1:].tolist(), strict=True)
    ]
    if settings.equivalents_removed:
        compiled = compile_benchmark(benchmark)
        labels = [
            np.concatenate(
                (
                    labels[q],
                    compiled.local_tools[compiled.local_offsets[q] : compiled.local_offsets[q + 1]],
                    compiled.outside_tools[compiled.outside_offsets[q] : compiled.outside_offsets[q + 1]],
                )
            )
            for q in range(len(labels))
        ]
    texts, _ = queries_in_order(benchmark, target)
    return bm25_negatives(documents_in_order(benchmark, target), texts, labels, settings)


def bm25_negatives(
    documents: Sequence[str], queries: Sequence[str], right: Sequence[npt.NDArray[np.integer]], settings: MftrSettings
) -> list[npt.NDArray[np.int32]]:
    """The first ``negatives`` of BM25's top ``negative_depth`` that are not right; best first.

    In a small corpus fewer documents share a term with the query; the others follow with score 0, by the ranking
    rule, as in the published implementation (whose order among them is arbitrary).

    Args:
        documents: raw texts in byte order of the tool ids.
        queries: raw texts.
        right: positions of tools that are no negatives, one array a query.
        settings: ``negatives`` and ``negative_depth``.
    """
    depth = min(settings.negative_depth, len(documents))
    if depth == 0:
        return [np.empty(0, dtype=np.int32) for _ in queries]
    found = Bm25Index(documents).search(queries, depth)
    last_first = np.arange(len(documents) - 1, -1, -1, dtype=np.int32)
    negatives: list[npt.NDArray[np.int32]] = []
    for row, wrong in enumerate(right):
        ranked = found.tools[row, : found.counts[row]]
        if len(ranked) < depth:
            ranked = np.concatenate((ranked, last_first[~np.isin(last_first, ranked)]))[:depth]
        negatives.append(ranked[~np.isin(ranked, wrong)][: settings.negatives].astype(np.int32))
    return negatives
