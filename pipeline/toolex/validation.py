"""What people found when they checked accepted combinations (ToolEX paper, appendix B).

Two reviewers judge every item without seeing each other; a third decides where they disagree. Precision is the share
of decided items that are valid; agreement and κ are of the two reviewers, before the third. Agreed items are decided
before disputed ones, so while disagreements are open precision leans upwards: bounds say what it may become.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist

from pipeline.scoring.statistics import CONFIDENCE, Interval


class Bucket(StrEnum):
    """Why a combination is invalid."""

    DECOMPOSITION = "decomposition ambiguity"
    NEAR_SYNONYM = "near-synonym but not substitutable"
    COVERAGE = "incomplete coverage"
    PLATFORM = "cross-platform mismatch"
    OTHER = "other"


@dataclass(frozen=True)
class Review:
    """One reviewer's word on one item.

    Attributes:
        bucket: why it is invalid; None when it is valid.
    """

    reviewer: str
    valid: bool
    reason: str = ""
    bucket: Bucket | None = None


@dataclass(frozen=True)
class ReviewedItem:
    """An item with what was said of it.

    Attributes:
        first, second: the two independent reviews; None while one is missing.
        third: who decided a disagreement.
    """

    item: str
    first: Review | None = None
    second: Review | None = None
    third: Review | None = None

    @property
    def deciding(self) -> Review | None:
        """The review that counts: of two that agree the first, else the third's; None while undecided."""
        if self.first is None or self.second is None:
            return None
        return self.first if self.first.valid == self.second.valid else self.third

    @property
    def buckets(self) -> tuple[Bucket, ...]:
        """Why it is invalid, by those whose verdict it became; empty when it is valid or undecided.

        Two who agree that it is invalid may differ about why: each of two different buckets counts half.
        """
        decided = self.deciding
        if decided is None or decided.valid:
            return ()
        if decided is self.third:
            said = [decided]
        else:
            said = [review for review in (self.first, self.second) if review is not None]
        return tuple(review.bucket or Bucket.OTHER for review in said)


@dataclass(frozen=True)
class Bounds:
    """A share while part of it is open.

    Attributes:
        least, most: the share if none, and if all, of the open ones count; None without any reviewed item.
        low, high: lower end of the interval of ``least``, upper end of that of ``most``.
    """

    least: float | None
    most: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class ValidationReport:
    """The result of a review.

    Attributes:
        items: in the sample.
        reviewed: with both reviews.
        decided: with a final verdict.
        valid: decided as valid.
        precision: share of decided items that are valid, with Wilson's interval; values None without any.
        bounds: of the reviewed items, the share that is valid if every open disagreement ends as invalid, and if every
            one ends as valid; the interval reaches over both, and is that of ``precision`` once nothing is open.
        agreement: share of reviewed items on which both reviewers agree; None without any.
        kappa: Cohen's κ of the two reviewers; None where it is undefined (both always say the same one thing).
        taxonomy: invalid items by bucket; an item on which two buckets were named counts half in each.
    """

    items: int
    reviewed: int
    decided: int
    valid: int
    precision: Interval
    bounds: Bounds
    agreement: float | None
    kappa: float | None
    taxonomy: Mapping[Bucket, float]

    @property
    def to_adjudicate(self) -> int:
        """Open disagreements: reviewed items that wait for a third reviewer."""
        return self.reviewed - self.decided


def validation_report(items: Sequence[ReviewedItem], confidence: float = CONFIDENCE) -> ValidationReport:
    """Precision, agreement, κ and taxonomy.

    Args:
        items: the whole sample, reviewed or not.
        confidence: nominal coverage of the interval.
    """
    pairs = [(item.first.valid, item.second.valid) for item in items if item.first and item.second]
    decided = [review.valid for item in items if (review := item.deciding) is not None]
    taxonomy: dict[Bucket, float] = dict.fromkeys(Bucket, 0.0)
    for item in items:
        named = item.buckets
        for bucket in named:
            taxonomy[bucket] += 1 / len(named)
    return ValidationReport(
        items=len(items),
        reviewed=len(pairs),
        decided=len(decided),
        valid=sum(decided),
        precision=wilson_interval(sum(decided), len(decided), confidence),
        bounds=_bounds(sum(decided), len(pairs) - len(decided), len(pairs), confidence),
        agreement=sum(a == b for a, b in pairs) / len(pairs) if pairs else None,
        kappa=cohen_kappa(pairs),
        taxonomy=taxonomy,
    )


def _bounds(valid: int, undecided: int, reviewed: int, confidence: float) -> Bounds:
    least = wilson_interval(valid, reviewed, confidence)
    most = wilson_interval(valid + undecided, reviewed, confidence)
    return Bounds(least.value, most.value, least.low, most.high)


def wilson_interval(successes: int, trials: int, confidence: float = CONFIDENCE) -> Interval:
    """A share with Wilson's score interval (Wilson, JASA 1927), which holds for small samples and shares near 1."""
    if not trials:
        return Interval(None, None, None, confidence)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share = successes / trials
    scale = 1 + z * z / trials
    middle = (share + z * z / (2 * trials)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    # Rounding must not push an end of the range past what it bounds.
    return Interval(share, min(share, max(0.0, middle - half)), max(share, min(1.0, middle + half)), confidence)


def cohen_kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Agreement of two reviewers beyond chance (Cohen, 1960); None where chance alone explains everything."""
    if not pairs:
        return None
    n = len(pairs)
    observed = sum(a == b for a, b in pairs) / n
    first, second = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    # In whole numbers, so that "always the same" is recognised exactly.
    expected = first[True] * second[True] + first[False] * second[False]
    if expected == n * n:
        return None
    return (observed - expected / (n * n)) / (1 - expected / (n * n))


def corrected_band(old: float, new: float, found: ValidationReport) -> Interval:
    """A new metric as it would be, to first order, if only the valid share of the accepted combinations counted.

    C* is beyond doubt, so the old value is; what the new one adds was earned by accepted combinations, of which the
    measured share is valid. Taking the lift to be spread evenly over them, the corrected value is
    old + precision · (new − old); the ends of the precision's interval give the band, which reaches over every outcome
    of open disagreements.

    Args:
        old: the metric against C*.
        new: the metric against every accepted combination, at least ``old``.
        found: precision of the accepted combinations and its bounds.
    """

    def at(share: float | None) -> float | None:
        return None if share is None else old + share * (new - old)

    precision, bounds = found.precision, found.bounds
    return Interval(at(precision.value), at(bounds.low), at(bounds.high), precision.confidence)
