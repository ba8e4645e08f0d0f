"""The known id that an unknown one most likely stands for."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cached_property

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from pipeline.formats.messages import quote

_SPACES = " \t\r\n\u00a0\ufeff"
_QUOTES = "\"'"
_DIFFERENCES = {
    "spaces": "surrounding spaces",
    "quotes": "quotes",
    "form": "Unicode normalisation (NFC)",
    "case": "upper and lower case",
}


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


def _plain(identifier: str, *, spaces: bool = True, quotes: bool = True, form: bool = True, case: bool = True) -> str:
    """The id without the differences that people overlook; a keyword set to False keeps one of them."""
    plain = unicodedata.normalize("NFC", identifier) if form else identifier
    plain = plain.strip((_SPACES if spaces else "") + (_QUOTES if quotes else ""))
    return plain.casefold() if case else plain


def _difference(unknown: str, known: str) -> str:
    """Which of the overlooked differences there are: those without which the two would not meet."""
    found = [
        words
        for kind, words in _DIFFERENCES.items()
        if _plain(unknown, **{kind: False}) != _plain(known, **{kind: False})
    ]
    return " and ".join(found) or "spelling"
