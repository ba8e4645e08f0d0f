"""The known id that an unknown one most likely stands for."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cached_property

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from pipeline.formats.messages import quote


class NearestId:
    """Suggests known ids; looks at most ``limit`` unknown ids up, for each look-up reads every known id.

    Args:
        known: all ids that would have been right.
        noun: what they are, in the singular: ``tool``, ``query``.
    """

    def __init__(self, known: Sequence[str], noun: str, limit: int = 20) -> None:
        self._known = known
        self._noun = noun
        self._left = limit
        self._answers: dict[str, str] = {}

    @cached_property
    def _by_plain_form(self) -> dict[str, str]:
        return {_plain(identifier): identifier for identifier in self._known}

    def hint(self, unknown: str) -> str:
        """A clause to put after the unknown id; empty when nothing known is near or the limit is spent."""
        if unknown not in self._answers:
            if self._left <= 0:
                return ""
            self._left -= 1
            self._answers[unknown] = self._look_up(unknown)
        return self._answers[unknown]

    def _look_up(self, unknown: str) -> str:
        twin = self._by_plain_form.get(_plain(unknown))
        if twin is not None:
            return f"; the known {self._noun} {quote(twin)} differs from it only in {_difference(unknown, twin)}"
        cutoff = max(2, len(unknown) // 4)
        found = process.extractOne(unknown, self._known, scorer=Levenshtein.distance, score_cutoff=cutoff)
        return "" if found is None else f"; the nearest known {self._noun} is {quote(found[0])}"


def _plain(identifier: str) -> str:
    return unicodedata.normalize("NFC", identifier).strip(" \t\r\n\"'\u00a0\ufeff").casefold()


def _difference(unknown: str, known: str) -> str:
    parts = []
    if unicodedata.normalize("NFC", unknown) != unicodedata.normalize("NFC", known):
        bare, known_bare = unknown.strip(" \t\r\n\u00a0\ufeff"), known.strip(" \t\r\n\u00a0\ufeff")
        if (bare != unknown) != (known_bare != known):
            parts.append("surrounding spaces")
        if (bare.strip("\"'") != bare) != (known_bare.strip("\"'") != known_bare):
            parts.append("quotes")
        if bare.strip("\"'").casefold() == known_bare.strip("\"'").casefold():
            if bare.strip("\"'") != known_bare.strip("\"'"):
                parts.append("upper and lower case")
        elif unicodedata.normalize("NFC", bare.strip("\"'")) != unicodedata.normalize("NFC", known_bare.strip("\"'")):
            parts.append("upper and lower case")
    if not parts or unicodedata.normalize("NFC", unknown) != unknown:
        parts.append("Unicode normalisation (NFC)")
    return " and ".join(parts)
