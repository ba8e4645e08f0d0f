import math

import pytest

from pipeline.scoring.metrics import comp, ndcg, new_score, recall

COMBINATIONS = [frozenset({"a1", "b1"}), frozenset({"a2", "b1"}), frozenset({"a3", "b1"})]


def test_new_metrics_are_not_union_qrels() -> None:
    ranked = ["a1", "b1"]
    assert new_score(ndcg, ranked, COMBINATIONS, 10) == 1.0
    assert new_score(recall, ranked, COMBINATIONS, 10) == 1.0
    union = frozenset().union(*COMBINATIONS)
    assert ndcg(ranked, union, 10) == pytest.approx(0.637, abs=5e-4)
    assert recall(ranked, union, 10) == 0.5


def test_ndcg_is_worked_by_hand() -> None:
    ranked = ["x", "a", "y", "b"]
    gained = 1 / math.log2(3) + 1 / math.log2(5)
    best = 1 + 1 / math.log2(3)
    assert ndcg(ranked, frozenset("ab"), 10) == gained / best
    assert ndcg(ranked, frozenset("ab"), 3) == (1 / math.log2(3)) / best
    assert ndcg(ranked, frozenset("abc"), 2) == (1 / math.log2(3)) / best


def test_comp_needs_the_whole_set() -> None:
    assert comp(["a", "b"], frozenset("ab"), 2) == 1.0
    assert comp(["a", "b"], frozenset("ab"), 1) == 0.0
    assert comp(["a", "b"], frozenset("abc"), 2) == 0.0
    assert recall(["a", "b"], frozenset("abc"), 2) == 2 / 3
