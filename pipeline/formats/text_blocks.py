"""A text as blocks of whole lines, with the line ends and the byte order mark it came with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.formats.byte_source import ByteSource
from pipeline.formats.messages import size
from pipeline.formats.problems import Refusal
from pipeline.word_scan import SLACK

#: Bytes a block holds unless one line is longer.
BLOCK = 4 << 20

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, eq=False)
class Block:
    """Whole lines of a text.

    Attributes:
        buffer: uint8; the lines are ``buffer[:stop]`` and end in a line feed, ``SLACK`` more bytes can be read.
        ended: False for the last block of a text without a final line end (one was added).
    """

    buffer: npt.NDArray[np.uint8]
    stop: int
    ended: bool = True


def _last_line_end(memory: memoryview, filled: int) -> int:
    """Place of the last line feed in ``memory[:filled]``, -1 without one; most often near the end."""
    for width in (1 << 10, filled):
        start = max(0, filled - width)
        found = bytes(memory[start:filled]).rfind(b"\n")
        if found >= 0:
            return start + found
    return -1


class TextBlocks:
    """Blocks of a text, byte order mark removed and old-Mac line ends turned into line feeds.

    Attributes:
        marked: the text began with a byte order mark.
        old_mac: lines end in a lone carriage return.
    """

    def __init__(self, source: ByteSource, longest: int) -> None:
        """Look at the head of the text.

        Args:
            source: the bytes.
            longest: a line longer than this stops the reading once it fills a block.
        """
        self._source = source
        self._longest = longest
        head = source.peek(1 << 16)
        self.marked = head.startswith(BYTE_ORDER_MARK)
        if self.marked:
            source.read(len(BYTE_ORDER_MARK))
            head = head[len(BYTE_ORDER_MARK) :]
        feed, carriage = head.find(b"\n"), head.find(b"\r")
        undecided = carriage == len(head) - 1 and len(head) >= (1 << 16) - len(BYTE_ORDER_MARK)
        self.old_mac = carriage >= 0 and feed < 0 and not undecided

    def __iter__(self) -> Iterator[Block]:
        """The blocks, in order.

        Raises:
            Refusal: a line does not fit a block, or line ends are mixed in a way that hides lines.
        """
        capacity = max(BLOCK, 2 * self._longest)
        carried = b""
        while True:
            buffer = np.empty(capacity + 1 + SLACK, dtype=np.uint8)
            memory = buffer.data
            memory[: len(carried)] = carried
            filled = len(carried) + self._source.readinto(memory[len(carried) : capacity])
            final = filled < capacity
            memory[filled : filled + 1 + SLACK] = bytes(1 + SLACK)
            if self.old_mac:
                text = buffer[len(carried) : filled]
                if (text == 10).any():
                    raise Refusal("some lines end in a carriage return and others in a line feed: use one kind")
                text[text == 13] = 10
            last = _last_line_end(memory, filled)
            if final:
                ended = filled == 0 or last == filled - 1
                if not ended:
                    memory[filled] = 10
                    filled += 1
                if filled:
                    yield Block(buffer, filled, ended)
                return
            if last < 0:
                raise Refusal(f"a line is longer than {size(self._longest)}, the limit for a line: is this a run file?")
            carried = bytes(memory[last + 1 : filled])
            yield Block(buffer, last + 1)
