"""Lines of a text as strings, with the line number of anything that is not UTF-8."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.formats.byte_source import ByteSource
from pipeline.formats.problems import Refusal
from pipeline.formats.reading import Reading
from pipeline.formats.text_blocks import TextBlocks


class TextLines:
    r"""Lines in order, each with its line end as ``\n``.

    Attributes:
        returns: lines that ended in CR LF.
        lines: lines handed out.
        ended: whether the last line had a line end.
    """

    def __init__(self, source: ByteSource, longest: int) -> None:
        """``longest`` is the limit for a line, in bytes."""
        self._blocks = TextBlocks(source, longest)
        self.returns = 0
        self.lines = 0
        self.ended = True

    def __iter__(self) -> Iterator[str]:
        """The lines.

        Raises:
            Refusal: a line is not UTF-8.
        """
        for block in self._blocks:
            data = block.buffer[: block.stop].tobytes()
            self.ended = block.ended
            try:
                text = data.decode()
            except UnicodeDecodeError as error:
                before = data.rfind(b"\n", 0, error.start) + 1
                raise Refusal(
                    f"byte 0x{data[error.start]:02X} at byte {error.start - before + 1}"
                    f" of the line is not valid UTF-8: "
                    "save the file as UTF-8",
                    self.lines + data.count(b"\n", 0, error.start) + 1,
                ) from None
            start = 0
            while start < len(text):
                end = text.index("\n", start)
                line = text[start : end + 1]
                if line.endswith("\r\n"):
                    self.returns += 1
                    line = line[:-2] + "\n"
                self.lines += 1
                yield line
                start = end + 1

    def note(self, reading: Reading) -> None:
        """Write down what was normalised."""
        if self._blocks.marked:
            reading.normalised.append("a byte order mark at the start was removed")
        if self._blocks.old_mac:
            reading.normalised.append("old-Mac line ends (CR) read as line ends")
        if self.returns:
            reading.normalised.append(f"CR LF line ends on {self.returns:,} lines read as line ends")
        reading.counts["lines"] = self.lines
