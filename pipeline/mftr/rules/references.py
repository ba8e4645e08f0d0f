"""``$ref`` inside a JSON document: followed a few steps, never outside the document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

_STEPS = 8
#: References followed in one document: a few that point at each other could otherwise be unrolled without end.
_FOLLOWED = 5_000


class References:
    """The places of one document that its references can point to.

    Args:
        root: the whole document.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = _FOLLOWED

    def resolve(self, value: object) -> Any:
        """What a reference points to, with the keys that stand beside it; other values as they are."""
        beside: dict[str, Any] = {}
        for _ in range(_STEPS):
            if not isinstance(value, Mapping) or not isinstance(pointer := value.get("$ref"), str):
                break
            self._left -= 1
            if self._left < 0:
                return None
            beside = {**{key: member for key, member in value.items() if key != "$ref"}, **beside}
            value = self._at(pointer)
        else:
            value = None
        if not beside:
            return value
        return {**value, **beside} if isinstance(value, Mapping) else beside

    def _at(self, pointer: str) -> Any:
        if not pointer.startswith("#/"):
            return None
        place: Any = self._root
        for step in pointer[2:].split("/")[:20]:
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            place = place.get(key) if isinstance(place, Mapping) else None
        return place
