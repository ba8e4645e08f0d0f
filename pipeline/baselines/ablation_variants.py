"""The variants of the MFTR paper's Table 3: which documents, which queries, and how fields are weighed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from pipeline.errors import UsageError
from pipeline.formats.messages import listing, quote
from pipeline.mftr.settings import PAPER, MftrSettings, Penalty, Weighting


class Documents(StrEnum):
    """What stands for a tool.

    ``raw`` is its documentation verbatim, ``raw-fields`` the documentation's own fields (``raw_fields``),
    ``standardized`` the four fields of a standardizer.
    """

    RAW = "raw"
    RAW_FIELDS = "raw-fields"
    STANDARDIZED = "standardized"


class Queries(StrEnum):
    """What stands for a query: its text, or its rewriting into needs and arguments."""

    ORIGINAL = "original"
    REWRITTEN = "rewritten"


class Combination(StrEnum):
    """How a variant scores: one text against one text, the mean of the field scores, or learned weights."""

    ONE_TEXT = "one-text"
    MEAN = "mean"
    LEARNED = "learned"
    LEARNED_WITHOUT_PENALTY = "learned-without-penalty"


@dataclass(frozen=True)
class Variant:
    """One row of the table.

    Attributes:
        key: what the command line takes.
        label: as the paper prints it.
    """

    key: str
    label: str
    documents: Documents
    queries: Queries
    combination: Combination

    @property
    def needs_standardized(self) -> bool:
        """Whether standardized documents must be given."""
        return self.documents is Documents.STANDARDIZED

    @property
    def needs_rewritten(self) -> bool:
        """Whether rewritten queries must be given; making them needs a language model."""
        return self.queries is Queries.REWRITTEN

    @property
    def trained(self) -> bool:
        """Whether weights are learned."""
        return self.combination in (Combination.LEARNED, Combination.LEARNED_WITHOUT_PENALTY)

    def settings(self, base: MftrSettings = PAPER) -> MftrSettings:
        """MFTR's settings for this variant.

        Raises:
            UsageError: the variant compares one text with one text.
        """
        if self.combination is Combination.ONE_TEXT:
            raise UsageError(f"{self.label} compares whole texts; it has no field weights.")
        if self.combination is Combination.MEAN:
            return replace(base, weighting=Weighting.MEAN, penalty=Penalty.NONE)
        if self.combination is Combination.LEARNED_WITHOUT_PENALTY:
            return replace(base, penalty=Penalty.NONE)
        return base


_RAW, _FIELDS, _STANDARDIZED = Documents.RAW, Documents.RAW_FIELDS, Documents.STANDARDIZED
_ORIGINAL, _REWRITTEN = Queries.ORIGINAL, Queries.REWRITTEN

#: In the order of the table.
VARIANTS: tuple[Variant, ...] = (
    Variant("full-doc", "Full-Doc", _RAW, _ORIGINAL, Combination.ONE_TEXT),
    Variant("standardized-only", "Stand. Only", _STANDARDIZED, _ORIGINAL, Combination.ONE_TEXT),
    Variant("rewrite-only", "Rewrite Only", _RAW, _REWRITTEN, Combination.ONE_TEXT),
    Variant("standardized-rewrite", "Stand. + Rewrite", _STANDARDIZED, _REWRITTEN, Combination.ONE_TEXT),
    Variant("weighting-only", "Weighting Only", _FIELDS, _ORIGINAL, Combination.LEARNED),
    Variant("weighting-standardized", "Weighting + Stand.", _STANDARDIZED, _ORIGINAL, Combination.LEARNED),
    Variant("weighting-rewrite", "Weighting + Rewrite", _FIELDS, _REWRITTEN, Combination.LEARNED),
    Variant("without-weighting", "w/o Adaptive Weighting", _STANDARDIZED, _REWRITTEN, Combination.MEAN),
    Variant("without-penalty", "w/o Missing Penalty", _STANDARDIZED, _REWRITTEN, Combination.LEARNED_WITHOUT_PENALTY),
    Variant("mftr", "MFTR", _STANDARDIZED, _REWRITTEN, Combination.LEARNED),
)


def variant(key: str) -> Variant:
    """The variant of this key.

    Raises:
        UsageError: there is none.
    """
    for found in VARIANTS:
        if found.key == key:
            return found
    raise UsageError(f"Unknown variant {quote(key)}; choose {listing([v.key for v in VARIANTS], len(VARIANTS))}.")
