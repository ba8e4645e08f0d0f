"""The metrics of one ranked list, written for reading; the kernels are tested against these.

Relevance is binary. Every value lies between 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

Metric = Callable[[Sequence[str], frozenset[str], int], float]


def ndcg(ranked: Sequence[str], reference: frozenset[str], k: int) -> float:
    """DCG over the first ``k`` ranks, divided by the DCG of an ideal list.

    A hit at the 1-based rank i gains 1 / log2(i + 1). The ideal list has min(|reference|, k) hits on top, as in
    trec_eval's ``ndcg_cut``. Some code divides by the ideal of the hits that were retrieved, or of the whole
    reference set however small k is: those figures differ.

    Sums run in rank order, so that equal inputs give equal bits.
    """
    dcg = 0.0
    for rank, tool in enumerate(ranked[:k], start=1):
        if tool in reference:
            dcg += 1.0 / math.log2(rank + 1)
    best = 0.0
    for rank in range(1, min(len(reference), k) + 1):
        best += 1.0 / math.log2(rank + 1)
    return dcg / best


def recall(ranked: Sequence[str], reference: frozenset[str], k: int) -> float:
    """Share of the reference set among the first ``k`` ranks.

    Divided by |reference| also where that is larger than ``k`` (trec_eval's ``recall``); variants that divide by
    min(|reference|, k) can reach 1 where this cannot.
    """
    return len(reference.intersection(ranked[:k])) / len(reference)


def comp(ranked: Sequence[str], reference: frozenset[str], k: int) -> float:
    """Comprehensiveness: 1 if the whole reference set is among the first ``k`` ranks, else 0.

    ToolRet and Tool-DE call it ``C@k``, SkillRet ``Completeness@k``; trec_eval has no such measure.
    """
    return 1.0 if reference.issubset(ranked[:k]) else 0.0


#: By the names used everywhere else.
REFERENCE_METRICS: dict[str, Metric] = {"NDCG": ndcg, "Recall": recall, "Comp": comp}


def new_score(metric: Metric, ranked: Sequence[str], combinations: Iterable[frozenset[str]], k: int) -> float:
    """The new metric: the best score over all valid combinations of a query.

    Each metric takes its own maximum, and a combination is scored as a whole: pooling all combinations into one
    reference set (union qrels) would ask for every alternative at once.
    """
    return max(metric(ranked, combination, k) for combination in combinations)
