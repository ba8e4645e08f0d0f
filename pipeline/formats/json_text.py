"""JSON as a stream of events, with what the parser lets pass or words badly checked on the way."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Any

import ijson

from pipeline.formats.byte_source import ByteSource
from pipeline.formats.messages import quote, size
from pipeline.formats.problems import Refusal
from pipeline.formats.text_blocks import BYTE_ORDER_MARK

#: A text longer than this is refused: the parser would have to hold it.
_LONGEST_TEXT = 4 << 20
_READ = 1 << 16
_ESCAPE = re.compile(rb"\\(?:u[0-9a-fA-F]{4}|[^u])", re.DOTALL)
#: Longest escape of one character: a surrogate pair.
_PAIR = 12


class JsonText:
    """The bytes of a JSON file as the parser reads them.

    Attributes:
        marked: the text began with a byte order mark, removed.
        lines: line feeds seen; ``bytes``: bytes seen.
    """

    def __init__(self, source: ByteSource) -> None:
        """Remove a byte order mark."""
        self._source = source
        self.marked = source.peek(3) == BYTE_ORDER_MARK
        if self.marked:
            source.read(3)
        self.lines = 0
        self.bytes = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._unquoted = 0
        self._escapes = b""

    def read(self, count: int = _READ) -> bytes:
        """The next bytes, for the parser.

        Raises:
            Refusal: invalid UTF-8, half of a surrogate pair, or a text too long to hold.
        """
        if count == 0:
            return b""
        data = self._source.read(min(count, _READ) if count > 0 else _READ)
        self._check_encoding(data)
        self._check_length(data)
        self._check_escapes(data)
        self.lines += data.count(b"\n")
        self.bytes += len(data)
        return data

    def _check_encoding(self, data: bytes) -> None:
        held = self._decoder.getstate()[0]
        try:
            self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            if not data:
                return  # a truncated text: the parser says so
            at = error.start - len(held)
            line = self.lines + 1 + data.count(b"\n", 0, max(at, 0))
            raise Refusal(
                f"byte 0x{error.object[error.start]:02X}"
                f" at byte {self.bytes + at + 1:,} of the text is not valid UTF-8: "
                "save the file as UTF-8",
                line,
            ) from None

    def _check_length(self, data: bytes) -> None:
        plain = data.replace(b'\\"', b"") if b"\\" in data else data
        if b'"' in plain:
            self._unquoted = len(plain) - plain.rfind(b'"')
        else:
            self._unquoted += len(data)
            if self._unquoted > _LONGEST_TEXT:
                raise Refusal(f"a text or number is longer than {size(_LONGEST_TEXT)}, the limit: this is no run file")

    def _check_escapes(self, data: bytes) -> None:
        """Refuse lone surrogates, which the parser would turn into question marks."""
        if b"\\" not in data and not self._escapes:
            return
        text = self._escapes + data
        self._escapes = b""
        position, pending = 0, -1
        while (start := text.find(b"\\", position)) >= 0:
            if data and start > len(text) - _PAIR:
                break
            found = _ESCAPE.match(text, start)
            if found is None:
                position = start + 1
                continue
            position = found.end()
            value = int(found[0][2:], 16) if found[0][1:2] == b"u" else 0
            if 0xD800 <= value < 0xDC00:
                pair = _ESCAPE.match(text, position)
                low = int(pair[0][2:], 16) if pair and pair[0][1:2] == b"u" else 0
                if pair is None or not 0xDC00 <= low < 0xE000:
                    pending = value
                else:
                    position = pair.end()
            elif 0xDC00 <= value < 0xE000:
                pending = value
            if pending >= 0:
                raise Refusal(
                    f"the escape \\u{pending:04x} is half of a surrogate pair"
                    f" and stands for no character: write the id again",
                    self.lines + 1 + data.count(b"\n", 0, max(0, start - len(text) + len(data))),
                )
        if start >= 0 and data:
            self._escapes = text[start:]

    def events(self, where: Any) -> Iterator[tuple[str, Any]]:
        """Parser events; numbers are read in C, as int64 or by strtod.

        The other mode, Python's ``int`` and ``Decimal``, crashes the process on a number of 5,000 digits (ijson 3.6).

        Args:
            where: called without arguments for the place to name in a refusal, such as ``query "a"``.

        Raises:
            Refusal: the text is not JSON.
        """
        try:
            yield from ijson.basic_parse(self, buf_size=_READ, use_float=True)
        except ijson.JSONError as error:
            raise self._syntax(str(error), where()) from None

    def _syntax(self, text: str, place: str) -> Refusal:
        lines = text.split("\n")
        if "premature EOF" in text or "incomplete" in text.lower():
            return Refusal(
                f"the JSON ends early, at byte {self.bytes:,} on line {self.lines + 1:,}"
                f" {place}: the file is truncated, "
                "write or upload it again"
            )
        arrow = max((line.find("^") for line in lines), default=-1)
        context = lines[1] if len(lines) > 1 else ""
        near = context[max(0, arrow - 12) : arrow + 12]
        for word in ("NaN", "-Infinity", "Infinity", "nan", "inf"):
            if word in near:
                return Refusal(
                    f"a score {place} is {word}, which is not JSON and not finite: leave it out or give it a number"
                )
        if "overflow" in text:
            return Refusal(f"a number {place} is too large, or whole with more than 19 digits: scale the scores")
        if "trailing garbage" in text:
            return Refusal(f"something follows the end of the JSON: {quote(near.strip())}; write one JSON value a file")
        reason = lines[0].removeprefix("lexical error: ").removeprefix("parse error: ").rstrip(".")
        return Refusal(
            f"the text is not valid JSON {place}"
            f", near line {max(1, self.lines):,}: {reason}, at {quote(context.strip())}"
        )
