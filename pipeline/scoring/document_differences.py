"""Two tools' documentation side by side: which words each has that the other has not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

#: Longer documents (in words) are compared line by line: comparing words grows with the product of the lengths.
MOST_WORDS = 2_000

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


def document_differences(reference: str, other: str) -> tuple[tuple[Segment, ...], tuple[Segment, ...]]:
    """Cut two documents into what they share and what they do not.

    Returns:
        Segments of ``reference`` and of ``other``; joined, their texts are the documents again.
    """
    one, two = _WORD.findall(reference), _WORD.findall(other)
    if max(len(one), len(two)) > MOST_WORDS:
        one, two = reference.splitlines(keepends=True), other.splitlines(keepends=True)
    first: list[Segment] = []
    second: list[Segment] = []
    for tag, a, b, c, d in SequenceMatcher(None, one, two, autojunk=False).get_opcodes():
        for segments, text in ((first, "".join(one[a:b])), (second, "".join(two[c:d]))):
            if text:
                segments.append(Segment(text, tag != "equal"))
    return tuple(first), tuple(second)
