"""The gain split: what is defined, what is not, and that nothing is clipped."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline.commands.comparison import _gain_frame
from pipeline.scoring.gain_table import GAIN_TABLE, with_sayable_shares
from pipeline.scoring.illusion import NO_CLEAR_GAIN, share_is_meaningful, split_gain


def test_part_of_the_gain_is_an_artifact():
    split = split_gain(0.40, 0.50, 0.50, 0.55)
    assert split.gain_old == pytest.approx(0.10)
    assert split.gain_new == pytest.approx(0.05)
    assert split.share == pytest.approx(0.5)
    assert split.artifact == pytest.approx(0.05)
    assert split.why_undefined == ""


def test_hidden_gain_is_a_negative_share():
    split = split_gain(0.10, 0.20, 0.20, 0.35)
    assert split.share == pytest.approx(-0.5)
    assert not split.sign_flips


def test_a_flipped_sign_is_a_share_above_one():
    split = split_gain(0.10, 0.30, 0.20, 0.25)
    assert split.share == pytest.approx(1.5)
    assert split.sign_flips


@pytest.mark.parametrize("tuned_old", [0.3, 0.2])
def test_no_old_gain_has_no_share(tuned_old: float):
    split = split_gain(0.3, 0.4, tuned_old, 0.5)
    assert split.share is None
    assert "no gain under one label" in split.why_undefined


def test_rounding_noise_is_no_gain():
    assert split_gain(0.3, 0.3, 0.1 + 0.2, 0.4).share is None


@pytest.mark.parametrize(("base_new", "tuned_new"), [(None, 0.5), (0.4, None), (None, None)])
def test_without_new_scores_there_is_no_share(base_new: float | None, tuned_new: float | None):
    split = split_gain(0.3, base_new, 0.4, tuned_new)
    assert (split.gain_new, split.share, split.artifact) == (None, None, None)
    assert "no scores" in split.why_undefined


def test_no_percentage_of_next_to_nothing():
    # As printed (no interval): the papers' gains, among them 4B on Code (+2.1) and SkillEq 0.6B (+3.3).
    assert all(share_is_meaningful(gain, None) for gain in (0.0643, 0.0717, 0.021, 0.033, 0.244))
    assert not any(share_is_meaningful(gain, None) for gain in (None, 0.0, 0.004, -0.02))
    # As measured: the interval decides.
    assert share_is_meaningful(0.011, 0.001)
    assert not share_is_meaningful(0.011, -0.004)


def test_the_shell_gives_no_such_percentage_either():
    gains = [(0.0717, None), (0.011, -0.004)]
    rows = [
        dict.fromkeys(GAIN_TABLE)
        | {"average": "macro", "gain_old": gain, "gain_old_low": low, "gain_new": 0.038, "share": 1 - 0.038 / gain}
        for gain, low in gains
    ]
    table = pl.DataFrame(rows, schema=GAIN_TABLE)
    assert _gain_frame(table)["artifact share"].to_list() == ["47.0 %", "—"]
    said = with_sayable_shares(table)
    assert said["share"].to_list() == [pytest.approx(0.47, abs=0.0005), None]
    assert said["why_undefined"].to_list() == [None, NO_CLEAR_GAIN]
    assert said.drop("share", "why_undefined").equals(table.drop("share", "why_undefined"))
    assert with_sayable_shares(table.clear()).equals(table.clear())
