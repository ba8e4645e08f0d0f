"""Two tools' documentation side by side: which words each has that the other has not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

#: Stretches of more words than this are not compared word by word: the time grows with the product of the lengths.
MOST_WORDS = 500
#: Documents of more lines than this are compared by what they start and end with.
MOST_LINES = 3_000

_WORD = re.compile(r"\w+|[^\w\s]|\s+")


@dataclass(frozen=True)
class Segment:
    """A stretch of one document.

    Attributes:
        text: as it stands in the document.
        differs: whether the other document has something else, or nothing, in its place.
    """

    text: str
    differs: bool


Segments = tuple[Segment, ...]


def document_differences(reference: str, other: str) -> tuple[Segments, Segments]:
    """Cut two documents into what they share and what they do not.

    Lines first, then words within lines that changed, so that long documents take no longer than a page may.

    Returns:
        Segments of ``reference`` and of ``other``; joined, their texts are the documents again.
    """
    first: list[Segment] = []
    second: list[Segment] = []
    one, two = _WORD.findall(reference), _WORD.findall(other)
    if max(len(one), len(two)) <= MOST_WORDS:
        _add_words(first, second, one, two)
    else:
        lines, others = reference.splitlines(keepends=True), other.splitlines(keepends=True)
        for same, a, b, c, d in _matches(lines, others, MOST_LINES):
            left, right = "".join(lines[a:b]), "".join(others[c:d])
            one, two = _WORD.findall(left), _WORD.findall(right)
            if not same and one and two and max(len(one), len(two)) <= MOST_WORDS:
                _add_words(first, second, one, two)
            else:
                _add(first, left, not same)
                _add(second, right, not same)
    return tuple(first), tuple(second)


def _add_words(first: list[Segment], second: list[Segment], one: Sequence[str], two: Sequence[str]) -> None:
    for same, a, b, c, d in _matches(one, two, MOST_WORDS):
        _add(first, "".join(one[a:b]), not same)
        _add(second, "".join(two[c:d]), not same)


def _add(segments: list[Segment], text: str, differs: bool) -> None:
    """Append a stretch; one that differs, or not, like the one before it belongs to that one."""
    if not text:
        return
    if segments and segments[-1].differs == differs:
        text = segments.pop().text + text
    segments.append(Segment(text, differs))


def _matches(one: Sequence[str], two: Sequence[str], most: int) -> list[tuple[bool, int, int, int, int]]:
    """Whether equal, and where, in order: ``one[a:b]`` stands for ``two[c:d]``."""
    start = 0
    while start < min(len(one), len(two)) and one[start] == two[start]:
        start += 1
    end = 0
    while end < min(len(one), len(two)) - start and one[-1 - end] == two[-1 - end]:
        end += 1
    inner, others = one[start : len(one) - end], two[start : len(two) - end]
    found = [(True, 0, start, 0, start)] if start else []
    if max(len(inner), len(others)) > most:
        found.append((False, start, len(one) - end, start, len(two) - end))
    else:
        # Among many, items that stand everywhere are no anchor (difflib's autojunk): they cost most and say least.
        matcher = SequenceMatcher(None, inner, others, autojunk=max(len(inner), len(others)) > MOST_WORDS)
        found += [
            (tag == "equal", a + start, b + start, c + start, d + start)
            for tag, a, b, c, d in matcher.get_opcodes()
        ]  # fmt: skip
    if end:
        found.append((True, len(one) - end, len(one), len(two) - end, len(two)))
    return found
