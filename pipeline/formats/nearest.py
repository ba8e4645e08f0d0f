"""What an unknown id may have been meant to be."""

from __future__ import annotations

import re
import unicodedata
from functools import cached_property

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from pipeline.formats.messages import quote, visible
from pipeline.identifiers import IdTable

_QUOTES = "\"'`“”‘’«»„"
#: Longest id that is compared by edit distance.
_LONGEST = 300
_INVISIBLE = re.compile(r"[\u200b-\u200f\u2060-\u2064\ufeff\u00ad\u202a-\u202e]")


def _unquoted(text: str) -> str:
    return text.strip(_QUOTES)


def _trimmed(text: str) -> str:
    return _INVISIBLE.sub("", text).strip()


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


class NearestId:
    """Finds the known id that an unknown one most resembles; built only when a file has unknown ids."""

    def __init__(self, table: IdTable) -> None:
        """Keep the table; nothing is computed yet."""
        self._table = table

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self._table.ids)

    @cached_property
    def _folded(self) -> dict[str, str]:
        return {identifier.casefold(): identifier for identifier in self._table.ids}

    @cached_property
    def _normalised(self) -> dict[str, str]:
        return {_composed(identifier): identifier for identifier in self._table.ids}

    @cached_property
    def _loose(self) -> dict[str, str]:
        return {self._loosen(identifier): identifier for identifier in self._table.ids}

    @staticmethod
    def _loosen(text: str) -> str:
        return _composed(_unquoted(_trimmed(text))).casefold()

    def hint(self, identifier: str) -> str:
        """Half a sentence that begins with ``"; "``, or ``""`` when nothing is near."""
        for known, how in (
            (self._known_or_none(_unquoted(identifier)), "only in the quotes around it: remove them"),
            (
                self._known_or_none(_trimmed(identifier)),
                "only in surrounding spaces or invisible characters: remove them",
            ),
            (self._folded.get(identifier.casefold()), "only in case: ids are compared byte for byte"),
            (
                self._normalised.get(_composed(identifier)),
                "only in Unicode normalisation (NFC): ids are compared byte for byte",
            ),
            (self._loose.get(self._loosen(identifier)), "only in case, quotes, spaces or Unicode normalisation"),
        ):
            if known is not None and known != identifier:
                return f"; it differs from the known {quote(known)} {how}"
        if len(identifier) > _LONGEST or not identifier:
            return ""
        found = process.extractOne(
            identifier,
            self._table.ids,
            scorer=Levenshtein.distance,
            score_cutoff=max(1, min(8, len(identifier) // 3)),
        )
        return f"; the nearest known id is {quote(visible(found[0]))}" if found is not None else ""

    def _known_or_none(self, text: str) -> str | None:
        return text if text in self._known else None
