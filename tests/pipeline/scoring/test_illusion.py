"""The gain split: what is defined, what is not, and that nothing is clipped."""

from __future__ import annotations

import pytest

from pipeline.scoring.illusion import split_gain


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
