"""Rows of a file of results, as they are written, each with its line: CSV, TSV or JSON lines."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import OutcomeFileError
from pipeline.formats.json_lines import iterate_json_rows
from pipeline.formats.messages import plural, quote, size
from pipeline.formats.source_table import ProblemList

#: One of these two, and all of ``COLUMNS``.
TASK_COLUMNS = ("task", "query_id")
COLUMNS = ("category", "setting", "passed")
_LARGEST = 64 * 1024**2
_GZIP = b"\x1f\x8b"
_MARK = b"\xef\xbb\xbf"


class LineFault(Exception):
    """What is wrong with one line, or with the whole file.

    Attributes:
        line: from 1; 0 for the whole file.
    """

    def __init__(self, message: str, line: int = 0) -> None:
        """Keep the line beside the message."""
        super().__init__(message)
        self.line = line

    @property
    def placed(self) -> str:
        """The message with its line."""
        return f"line {self.line}: {self}" if self.line else str(self)


def read_rows(path: Path, problems: list[LineFault]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """(line, values by column) of every row that can be taken apart; the others go to ``problems``.

    Raises:
        OutcomeFileError: the file cannot be opened, or is far too large.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise OutcomeFileError(f"{path.name} is larger than {size(_LARGEST)}: a file of results is small")
        data = path.read_bytes()
        if data.startswith(_GZIP) or data[:4096].removeprefix(_MARK).lstrip().startswith(b"{"):
            yield from _json_rows(path, problems)
        else:
            yield from _table_rows(data, problems)
    except OSError as error:
        raise OutcomeFileError(f"{str(path)!r} cannot be read ({error.strerror or error})") from None


def _json_rows(path: Path, problems: list[LineFault]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    faults = ProblemList()
    yield from iterate_json_rows(path, faults)
    for _, _, line, message in faults.entries:
        # The place stands before the message: the file's name is said once above all.
        problems.append(LineFault(message.partition(": ")[2] if message.startswith(path.name) else message, line))


def _table_rows(data: bytes, problems: list[LineFault]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = f"byte 0x{data[error.start]:02X} is not valid UTF-8: save the file as UTF-8"
        problems.append(LineFault(byte, data.count(b"\n", 0, error.start) + 1))
        return
    first = next((line for line in io.StringIO(text) if line.strip()), "")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter="\t" if "\t" in first else ",", strict=True)
    header: list[str] | None = None
    before = 0
    try:
        for row in reader:
            # A quoted cell may hold line ends: a row is where it starts.
            line, before = before + 1, reader.line_num
            if not any(cell.strip() for cell in row):
                continue
            if header is None:
                header = [name.strip().lower() for name in row]
                if wrong := _header_fault(header):
                    problems.append(LineFault(wrong, line))
                    return
            elif len(row) != len(header):
                problems.append(LineFault(f"{plural(len(row), 'cell')} under {plural(len(header), 'column')}", line))
            else:
                yield line, dict(zip(header, row, strict=True))
    except csv.Error as error:
        problems.append(LineFault(f"not a row of a table ({error}): close every quote", before + 1))


def _header_fault(header: list[str]) -> str:
    shown = ", ".join(map(quote, header[:12]))
    missing = [key for key in COLUMNS if key not in header]
    if not any(key in header for key in TASK_COLUMNS):
        missing.insert(0, TASK_COLUMNS[0])
    if missing:
        return f"no column {', '.join(missing)} among {shown}: name the columns task, category, setting, passed"
    repeated = next((name for name in (*TASK_COLUMNS, *COLUMNS) if header.count(name) > 1), None)
    return "" if repeated is None else f"two columns are named {quote(repeated)}: keep one"
