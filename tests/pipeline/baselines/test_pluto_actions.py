from __future__ import annotations

import itertools

import numpy as np
import pytest

from pipeline.baselines.pluto_actions import fresh_actions, majority_stops, pick, tf_idf, two_means


@pytest.mark.parametrize(
    ("stops", "ends"),
    [([True, True, False], True), ([True, False], False), ([False], False), ([], True), ([True], True)],
)
def test_more_than_half_of_the_votes_stop_and_nobody_voting_does(stops, ends):
    assert majority_stops(stops) is ends


def test_the_best_cut_is_the_brute_force_one():
    generator = np.random.default_rng(3)
    for count in (2, 3, 5, 7):
        rows = generator.normal(size=(count, 4))
        found = two_means(rows)
        assert found[0] == 0

        def spread(cut, rows=rows):
            cut = np.array(cut)
            return sum(((rows[cut == side] - rows[cut == side].mean(axis=0)) ** 2).sum() for side in set(cut.tolist()))

        cuts = [(0, *rest) for rest in itertools.product((0, 1), repeat=count - 1) if any(rest)]
        assert spread(found) == pytest.approx(min(spread(cut) for cut in cuts))


def test_equal_rows_stay_together():
    rows = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    assert two_means(rows).tolist() == [0, 0, 1]
    assert two_means(rows[:2]).tolist() == [0, 0]
    with pytest.raises(ValueError, match="13 distinct rows"):
        two_means(np.eye(13))


def test_actions_like_a_used_one_are_dropped():
    used = ["convert an amount of money between two currencies"]
    drawn = [
        "convert money between currencies",
        "send an e-mail to a person",
        "Convert an amount of  money between two currencies",
        "send an e-mail message to a friend",
    ]
    assert fresh_actions(used, drawn) == [drawn[1], drawn[3]]
    assert fresh_actions([], drawn) == drawn
    assert fresh_actions(used, [used[0], used[0].upper()]) == []
    assert fresh_actions(used, []) == []


def test_actions_without_any_letter_do_no_harm():
    assert fresh_actions(["!!"], ["??"]) == []
    assert tf_idf(["", "…"]).shape == (2, 1)
    assert fresh_actions(["気象予報"], ["メールを送る"]) == ["メールを送る"]


def test_the_pick_depends_on_seed_hop_and_query_only():
    actions = [str(number) for number in range(20)]
    assert pick(actions, 1, 0, "q") == pick(actions, 1, 0, "q")
    assert len({pick(actions, 1, hop, "q") for hop in range(10)}) > 2
    assert len({pick(actions, seed, 0, "q") for seed in range(10)}) > 2
