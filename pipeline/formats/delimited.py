"""CSV and TSV run files: every cell a text, quotes as in RFC 4180, with a header or three or six columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from pipeline.formats.byte_source import ByteSource
from pipeline.formats.messages import plural, quote, visible
from pipeline.formats.problems import Refusal
from pipeline.formats.reading import Reading
from pipeline.formats.rows import Int32, RowCollector, scores_from_text
from pipeline.formats.sniff import (
    DISTANCE_NAMES,
    QUERY_NAMES,
    RANK_NAMES,
    SCORE_NAMES,
    TAG_NAMES,
    TOOL_NAMES,
    is_header,
)
from pipeline.formats.text_lines import TextLines
from pipeline.run import RunTarget

_BATCH = 1 << 15
_RANK = re.compile(r"[+-]?[0-9]{1,9}")


@dataclass(frozen=True)
class Columns:
    """Which cell holds what; ``score`` or ``rank`` may be None, not both. ``distances``: the score's name says so."""

    width: int
    query: int
    tool: int
    score: int | None
    rank: int | None
    tag: int | None
    distances: bool = False


def columns_of(names: Sequence[str]) -> Columns:
    """Columns by name.

    Raises:
        Refusal: a query, tool, or score and rank column is missing, or named twice.
    """
    if not names:
        raise Refusal("the table has no columns: expected query_id, tool_id and score")
    lowered = [name.strip().lower() for name in names]
    lowered[0] = lowered[0].lstrip("#").strip()

    def find(wanted: tuple[str, ...]) -> int | None:
        places = [i for name in wanted for i, found in enumerate(lowered) if found == name]
        if len(places) > 1 and lowered[places[0]] == lowered[places[1]]:
            raise Refusal(f"two columns are named {quote(names[places[1]])}: keep one", 1)
        return places[0] if places else None

    query, tool, score, rank = (find(wanted) for wanted in (QUERY_NAMES, TOOL_NAMES, SCORE_NAMES, RANK_NAMES))
    distance = find(DISTANCE_NAMES) if score is None else None
    score = distance if score is None else score
    shown = ", ".join(quote(name) for name in names[:12])
    if query is None or tool is None:
        raise Refusal(f"no column {'query_id' if query is None else 'tool_id'} among {shown}")
    if score is None and rank is None:
        raise Refusal(f"neither a column score nor a column rank among {shown}")
    return Columns(len(names), query, tool, score, rank, find(TAG_NAMES), distance is not None)


def read_delimited(source: ByteSource, target: RunTarget, collector: RowCollector, delimiter: str) -> Reading:
    """Read a table into ``collector``.

    Raises:
        Refusal: a limit is exceeded, the text is not UTF-8, quotes do not close, or columns are missing.
    """
    lines = TextLines(source, collector.limits.line_bytes)
    reading = Reading("csv" if delimiter == "," else "tsv")
    table = _Table(target, collector, lines)
    batches = lines.batches()
    try:
        for batch in batches:
            if not table.add_plain(batch, delimiter):
                # A quoted cell may hold line ends: from here on the rows decide how many lines they take.
                table.add_quoted(chain(batch, chain.from_iterable(batches)), delimiter)
                break
    finally:
        table.flush()
    lines.note(reading)
    reading.distances = table.columns is not None and table.columns.distances
    if table.blanks:
        reading.normalised.append(f"{plural(table.blanks, 'blank line')} passed over")
    if table.comments:
        reading.normalised.append(f"{plural(table.comments, 'comment line')} passed over")
    table.report_tags(reading)
    return reading


def _by_position(row: list[str], line: int) -> Columns:
    if len(row) == 3:
        return Columns(3, 0, 1, 2, None, None)
    if len(row) == 6:
        return Columns(6, 0, 2, 4, 3, 5)
    raise Refusal(
        f"{plural(len(row), 'column')}: expected a header with query_id, tool_id and score, or 3 columns "
        "(query_id, tool_id, score), or 6 (query_id, Q0, tool_id, rank, score, tag)",
        line,
    )


class _Table:
    """Rows waiting to be looked up together."""

    def __init__(self, target: RunTarget, collector: RowCollector, lines: TextLines) -> None:
        self.columns: Columns | None = None
        self.blanks = 0
        self.comments = 0
        self._target = target
        self._collector = collector
        self._text = lines
        self._rows: list[list[str]] = []
        self._lines: list[int] = []
        self._tags: dict[str, int] = {}

    def add_quoted(self, lines: Iterator[str], delimiter: str) -> None:
        """Take all remaining rows, some of which may reach over several lines."""
        before = self._text.lines

        def counted() -> Iterator[str]:
            for line in lines:
                self._text.lines += 1
                yield line + "\n"

        reader = csv.reader(counted(), delimiter=delimiter, strict=True)
        while True:
            begin = before + reader.line_num + 1
            try:
                row = next(reader, None)
            except csv.Error as error:
                raise Refusal(
                    f"the quotes or cells of this line cannot be read ({error}): quote as in RFC 4180", begin
                ) from None
            if row is None:
                return
            self._add(row, begin)

    def add_plain(self, batch: list[str], delimiter: str) -> bool:
        """Take a batch of lines without quotes, a row each; False when there are quotes, or line ends inside a line."""
        if any('"' in line or "\r" in line for line in batch):
            return False
        first = self._text.lines + 1
        self._text.lines += len(batch)
        width = self.columns.width if self.columns is not None else -1
        if all(line.count(delimiter) == width - 1 for line in batch):
            # No list a row: hundreds of thousands of them would keep the garbage collector busy.
            self.flush()
            cells = delimiter.join(batch).split(delimiter)
            self._take([cells[column::width] for column in range(width)], range(first, first + len(batch)))
            return True
        for number, line in enumerate(batch, first):
            self._add(line.split(delimiter) if line else [], number, last=number == self._text.lines)
        return True

    def _add(self, row: list[str], line: int, last: bool = False) -> None:
        """Take one row; a wrong number of columns is a problem."""
        if not row or (len(row) == 1 and not row[0].strip()):
            self.blanks += 1
            return
        if self.columns is None:
            if is_header(row):
                self.columns = columns_of(row)
                return
            if row[0].startswith("#") and len(row) not in (3, 6):
                self.comments += 1
                return
            self.columns = _by_position(row, line)
        width = self.columns.width
        if len(row) != width:
            if row[0].startswith("#"):
                self.comments += 1
                return
            tail = " (the file may be truncated here)" if last and not self._text.ended and len(row) < width else ""
            self._collector.problems.add(
                f"{plural(len(row), 'column')}, expected {width}{tail}: {quote(','.join(row))}", line
            )
            return
        self._rows.append(row)
        self._lines.append(line)
        if len(self._rows) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Look the waiting rows up and hand them to the collector."""
        if not self._rows or self.columns is None:
            return
        rows, lines = self._rows, self._lines
        self._rows, self._lines = [], []
        self._take(list(zip(*rows, strict=True)), lines)

    def _take(self, cells: Sequence[Sequence[str]], lines: Sequence[int]) -> None:
        """Look columns of cells up and hand them to the collector."""
        assert self.columns is not None
        columns, collector = self.columns, self._collector
        query = self._target.queries.find(cells[columns.query])
        tool = self._target.tools.find(cells[columns.tool])
        for positions, column, unknown in (
            (query, columns.query, collector.unknown_queries),
            (tool, columns.tool, collector.unknown_tools),
        ):
            for i in np.flatnonzero(positions < 0).tolist():
                unknown.add(cells[column][i], lines[i])
        faults: list[tuple[int, str]] = []
        score = None
        if columns.score is not None:
            score, wrong = scores_from_text(cells[columns.score])
            faults += wrong.items()
        rank = None
        if columns.rank is not None:
            rank, wrong = _ranks(cells[columns.rank])
            faults += wrong.items()
        for i, message in sorted(faults):
            collector.problems.add(message, lines[i])
            tool[i] = -1
        if columns.tag is not None:
            tags = cells[columns.tag]
            if len(self._tags) < 20 and not self._tags.keys() >= set(tags):
                for i, tag in enumerate(tags):
                    if tag not in self._tags and len(self._tags) < 20:
                        self._tags[tag] = lines[i]
        collector.add(query, tool, score, rank, np.array(lines, dtype=np.int32) - np.int32(1))

    def report_tags(self, reading: Reading) -> None:
        """Several run tags are several runs."""
        if len(self._tags) > 1:
            named = ", ".join(f"{quote(tag)} (first on line {line})" for tag, line in self._tags.items())
            self._collector.problems.add(
                f"the file has several run tags, {named}: submit one run a file", list(self._tags.values())[1]
            )
        for tag in list(self._tags)[:1]:
            reading.prefill["tag"] = visible(tag[:200])


def _ranks(tokens: Sequence[str]) -> tuple[Int32, dict[int, str]]:
    wrong: dict[int, str] = {}
    values = np.zeros(len(tokens), dtype=np.int32)
    for i, token in enumerate(tokens):
        if _RANK.fullmatch(token):
            values[i] = int(token)
        else:
            wrong[i] = f"rank {quote(token)} is not a whole number (at most nine digits): write 1, 2, 3, …"
    return values, wrong
