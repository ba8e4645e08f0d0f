"""How much of a fine-tuning gain is left once every valid combination counts (SCORING §3, Illusion)."""

from __future__ import annotations

from dataclasses import dataclass

#: Gains at or below this are no gain: the difference of two equal means may leave rounding noise.
NO_GAIN = 1e-12
#: Old gains below half a point are too close to zero for a percentage of them: with figures of one decimal, as papers
#: print them, rounding alone moves the share by 20 points.
LEAST_GAIN = 0.005
#: Why a share that can be computed is not said; see ``share_is_meaningful``.
NO_CLEAR_GAIN = "The gain under one label is near zero or may be zero, so a share of it means nothing."


@dataclass(frozen=True)
class GainSplit:
    """A fine-tuned retriever's gain over its base, under one label and under all valid combinations.

    Attributes:
        gain_old: gain with one label a query, as a fraction (0.0643 for 6.43 points).
        gain_new: gain with all valid combinations; None when there are no new scores.
        share: 1 − gain_new / gain_old, the part of the old gain that the labels made up. Negative when one label
            hid gain, above 1 when the sign flips; None when there is no old gain or no new scores. Never clipped.
    """

    gain_old: float
    gain_new: float | None
    share: float | None

    @property
    def artifact(self) -> float | None:
        """The part of the old gain that is gone, gain_old − gain_new; negative when one label hid gain."""
        return None if self.gain_new is None else self.gain_old - self.gain_new

    @property
    def sign_flips(self) -> bool:
        """Whether an old gain is a loss once every valid combination counts."""
        return self.gain_new is not None and self.gain_old > NO_GAIN and self.gain_new < -NO_GAIN

    @property
    def why_undefined(self) -> str:
        """Why there is no share, in words; empty when there is one."""
        if self.share is not None:
            return ""
        if self.gain_new is None:
            return "There are no scores against all valid combinations."
        return "There is no gain under one label a query, so no part of it can be an artifact."


def share_is_meaningful(gain_old: float | None, gain_old_low: float | None) -> bool:
    """Whether the share of an old gain may be said as a percentage.

    Not where the gain is near zero or may be zero: a share of next to nothing is any number at all.

    Args:
        gain_old: gain with one label, a fraction.
        gain_old_low: the lower end of its interval; None where there is none, as for printed figures.
    """
    return gain_old is not None and gain_old >= LEAST_GAIN and (gain_old_low is None or gain_old_low > 0)


def split_gain(base_old: float, base_new: float | None, tuned_old: float, tuned_new: float | None) -> GainSplit:
    """Split the gain of a fine-tuned retriever over its base.

    Args:
        base_old: the base's metric against the one label, a fraction.
        base_new: the base's metric over all valid combinations, None when not known.
        tuned_old: the fine-tuned retriever's metric against the one label.
        tuned_new: the fine-tuned retriever's metric over all valid combinations, None when not known.
    """
    gain_old = tuned_old - base_old
    gain_new = None if base_new is None or tuned_new is None else tuned_new - base_new
    share = None if gain_new is None or gain_old <= NO_GAIN else 1 - gain_new / gain_old
    return GainSplit(gain_old, gain_new, share)
