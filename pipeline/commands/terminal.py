"""Standard output and error that a terminal cannot be steered through.

Names, ids, notes and file names come from strangers. Whatever a verb prints, characters that a terminal takes as
commands, or that turn the direction of writing, leave this program as ``U+XXXX``.
"""

from __future__ import annotations

import io
import re
import sys
from typing import TextIO

#: Control characters but tab and line feed, halves of pairs, separators, and marks of writing direction.
UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
#: What the progress line begins with: back to the start of the line, and perhaps clear it.
_PROGRESS = re.compile(r"\r(?:\x1b\[K)?")


class SafeStream(io.TextIOWrapper):
    """A text stream that spells out what a terminal would obey."""

    def write(self, text: str) -> int:
        """Write ``text``; returns its length, as every stream does."""
        ours = _PROGRESS.match(text)
        start = ours.end() if ours else 0
        super().write(text[:start] + UNSAFE.sub(lambda found: f"U+{ord(found[0]):04X}", text[start:]))
        return len(text)


def protect() -> None:
    """Put safe streams in place of standard output and error."""
    sys.stdout, sys.stderr = _safe(sys.stdout), _safe(sys.stderr)


def _safe(stream: TextIO) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper):
        return stream  # closed (None), or another program's own
    lines = stream.line_buffering
    encoding = stream.encoding
    return SafeStream(stream.detach(), encoding=encoding, errors="backslashreplace", line_buffering=lines)


def json_escaped(text: str) -> str:
    """JSON with the same characters as escapes, so that nothing of it has to be spelt out."""
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
