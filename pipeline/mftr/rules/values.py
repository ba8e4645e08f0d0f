"""Values out of documents that strangers wrote: parsed without a crash, cut to what can be stored and scored."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from pipeline.mftr.schema import Json

#: Deeper values are left out: they say nothing to a retriever, and writing them could exhaust the stack.
DEPTH = 12
#: Characters of a text that are kept; the longest real description has some thousand.
LONGEST = 20_000

_SPACE = re.compile(r"\s+")
_SURROGATE = re.compile("[\ud800-\udfff]")
#: Words that stand for "nothing" in records filled in by hand.
_NOTHING = frozenset({"", "n/a", "na", "none", "null", "nil", "-", "--", ".", "...", "…", "tbd", "todo", "unknown"})


def parse_json(text: str) -> Any:
    """The JSON value of a text; None when it is none, or too deep or too large a number to read."""
    start = text.lstrip("\ufeff \t\r\n")
    if not start.startswith(("{", "[")):
        return None
    try:
        return json.loads(start, parse_constant=_no_constant)
    except (ValueError, RecursionError, MemoryError):
        return None


def _no_constant(name: str) -> None:
    return None


def tidy(value: object) -> str:
    """A text on one line with single spaces; "" for anything but text and for words that stand for nothing."""
    if not isinstance(value, str):
        return ""
    line = " ".join(_whole_characters(value[: 4 * LONGEST]).split())[:LONGEST].rstrip()
    if len(line) > 1 and line[0] == line[-1] == '"':
        line = line[1:-1].strip()
    return "" if line.lower() in _NOTHING else line


def first_text(record: Mapping[str, Any], *keys: str) -> str:
    """The first of the keys that holds a text."""
    return next((text for key in keys if (text := tidy(record.get(key)))), "")


def joined(*texts: str) -> str:
    """Texts one after another as sentences, without those that another already says."""
    kept: list[str] = []
    for text in texts:
        if text and not any(_key(text) in _key(other) for other in kept):
            kept = [other for other in kept if _key(other) not in _key(text)] + [text]
    sentences = [text if text.endswith((".", "!", "?", ":", "。")) else f"{text}." for text in kept[:-1]]
    return " ".join(sentences + kept[-1:])


def _key(text: str) -> str:
    return _SPACE.sub(" ", text.lower()).rstrip(" .!:")


def name_of(value: object) -> str:
    """A parameter's name as it is written; "" when there is none."""
    if isinstance(value, str):
        return " ".join(_whole_characters(value[:400]).split())
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)[:400] if abs(value) < 10**18 else ""
    return ""


def stored(value: object) -> Json:
    """A value that JSON can hold: finite, not too deep, whole characters; None where nothing is left."""
    try:
        return _stored(value, DEPTH)
    except _TooDeepError:
        return None


class _TooDeepError(Exception):
    pass


def _stored(value: object, depth: int) -> Json:
    if depth == 0:
        raise _TooDeepError
    match value:
        case bool() | None:
            return value
        case str():
            return _whole_characters(value[:LONGEST])
        case int():
            return value if abs(value) < 2**63 else None
        case float():
            return value if math.isfinite(value) else None
        case list() | tuple():
            return [_stored(member, depth - 1) for member in value[:1000]]
        case dict():
            members = list(value.items())[:1000]
            return {_whole_characters(str(key)[:400]): _stored(member, depth - 1) for key, member in members}
        case _:
            return None


def _whole_characters(text: str) -> str:
    """Halves of surrogate pairs, which no file can hold, become U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)
