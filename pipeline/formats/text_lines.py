"""Lines of a text as strings, with the line number of anything that is not UTF-8."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.formats.byte_source import ByteSource
from pipeline.formats.messages import plural
from pipeline.formats.problems import Refusal
from pipeline.formats.reading import Reading
from pipeline.formats.text_blocks import TextBlocks


class TextLines:
    """Lines in order.

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

    def batches(self) -> Iterator[list[str]]:
        """The lines of one block after another, without line ends; ``lines`` is theirs to count.

        Raises:
            Refusal: a line is not UTF-8.
        """
        before = 0
        for block in self._blocks:
            data = block.buffer[: block.stop].tobytes()
            wrong: Refusal | None = None
            try:
                text = data.decode()
            except UnicodeDecodeError as error:
                # The lines before the broken one are still read: they may have problems of their own.
                start = data.rfind(b"\n", 0, error.start) + 1
                text = data[:start].decode()
                wrong = Refusal(
                    f"byte 0x{data[error.start]:02X} at byte {error.start - start + 1} of the line is not valid UTF-8: "
                    "save the file as UTF-8",
                    before + data.count(b"\n", 0, start) + 1,
                )
            self.ended = block.ended or wrong is not None
            if "\r\n" in text:
                self.returns += text.count("\r\n")
                text = text.replace("\r\n", "\n")
            batch = text.split("\n")
            batch.pop()
            before += len(batch)
            if batch:
                yield batch
            if wrong is not None:
                raise wrong

    def __iter__(self) -> Iterator[str]:
        r"""The lines one by one, each with ``\\n``.

        Raises:
            Refusal: a line is not UTF-8.
        """
        for batch in self.batches():
            for line in batch:
                self.lines += 1
                yield line + "\n"

    def note(self, reading: Reading) -> None:
        """Write down what was normalised."""
        if self._blocks.marked:
            reading.normalised.append("a byte order mark at the start was removed")
        if self._blocks.old_mac:
            reading.normalised.append("old-Mac line ends (CR) read as line ends")
        if self.returns:
            reading.normalised.append(f"CR LF line ends on {plural(self.returns, 'line')} read as line ends")
        reading.counts["lines"] = self.lines
