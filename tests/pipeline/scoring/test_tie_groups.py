"""Tie groups: anchored on leaders, by brute force, indifferent to names and order."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from pipeline.benchmark import Average
from pipeline.scoring.holm import holm
from pipeline.scoring.randomization import paired_test
from pipeline.scoring.tie_groups import TIE_GROUPS, tie_groups


def board(seed: int = 0, queries: int = 120) -> tuple[dict[str, np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    difficulty = rng.random(queries)
    levels = {"a": 0.30, "b": 0.295, "c": 0.29, "d": 0.20, "e": 0.195, "f": 0.02}
    scores = {name: (difficulty < level + rng.normal(0, 0.05, queries)).astype(float) for name, level in levels.items()}
    return scores, rng.integers(0, 3, queries)


@pytest.mark.parametrize("average", list(Average))
def test_groups_equal_a_plain_computation(average: Average):
    scores, domain_of = board()
    found = tie_groups(scores, domain_of, average, flips=2_000)
    runs = found["run_id"].to_list()
    assert found["value"].is_sorted(descending=True)
    expected: list[int] = []
    leader, group = 0, 0
    while leader < len(runs):
        group += 1
        p = [
            paired_test(scores[runs[leader]], scores[other], domain_of, average, flips=2_000).p
            for other in runs[leader + 1 :]
        ]
        adjusted = holm(p)
        size = 1 + next((i for i, value in enumerate(adjusted) if value <= 0.05), len(adjusted))
        expected += [group] * size
        leader += size
    assert found["group"].to_list() == expected
    assert len(set(expected)) > 1 and len(set(expected)) < len(runs)


def test_order_of_the_input_and_company_of_later_groups_change_nothing():
    scores, domain_of = board()
    found = tie_groups(scores, domain_of, Average.MICRO, flips=2_000)
    turned = tie_groups(dict(reversed(scores.items())), domain_of, Average.MICRO, flips=2_000)
    assert found.equals(turned)


def test_a_group_holds_its_leader_first():
    scores, domain_of = board()
    found = tie_groups(scores, domain_of, Average.MICRO, flips=2_000)
    for (_, leader), rows in found.group_by("group", "leader", maintain_order=True):
        assert rows["run_id"][0] == leader
        assert rows["p"].null_count() == 1
        assert (rows["p_holm"].drop_nulls() > 0.05).all()


def test_equal_runs_share_a_group():
    row = np.arange(40) / 40
    found = tie_groups({"x": row, "b": row.copy()}, np.zeros(40, dtype=int), Average.MACRO)
    assert found.select("run_id", "group", "difference", "p").rows() == [("b", 1, None, None), ("x", 1, 0.0, 1.0)]


def test_an_empty_board_has_no_groups():
    assert tie_groups({}, np.zeros(0, dtype=int), Average.MICRO).equals(pl.DataFrame(schema=TIE_GROUPS))
