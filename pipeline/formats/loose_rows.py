"""Rows of other people's formats: objects with their places, from JSON lines or parquet, read value by value."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import polars as pl

from pipeline.benchmark import TABLES
from pipeline.formats.benchmark_table import REQUIRED, with_empty_text
from pipeline.formats.json_lines import iterate_json_rows, open_json_lines
from pipeline.formats.messages import listing, quote
from pipeline.formats.source_table import FILE, LINE, PLACE_SCHEMA, ProblemList, SourceTable, place


@dataclass(frozen=True)
class Row:
    """One object of a file.

    Attributes:
        values: as written; no type was changed.
        file: index into the list of files that was read.
        line: 1-based line (row in parquet).
    """

    values: Mapping[str, Any]
    file: int
    line: int


class LooseRows:
    """All rows of one or several files of one shape.

    Args:
        files: ``.jsonl``, ``.jsonl.gz`` or ``.parquet``.
        table: which table they will become, for the order of problems.
        problems: where faults go.
    """

    def __init__(self, files: Sequence[Path], table: str, problems: ProblemList) -> None:
        self.files = tuple(files)
        self.names = _short_names(files)
        self.table = table
        self._problems = problems
        self.rows = [row for index, path in enumerate(files) for row in self._read(index, path)]

    def _read(self, index: int, path: Path) -> Iterable[Row]:
        if path.suffix != ".parquet":
            for line, values in iterate_json_rows(path, self._problems, table=self.table, file_index=index):
                yield Row(values, index, line)
            return
        try:
            frame = pl.read_parquet(path, hive_partitioning=False)
        except (pl.exceptions.PolarsError, OSError) as error:
            self._problems.add(f"{path.name}: not readable parquet ({str(error).splitlines()[0]})", self.table, index)
            return
        for line, values in enumerate(frame.iter_rows(named=True), start=1):
            yield Row(values, index, line)

    def refuse(self, row: Row, message: str) -> None:
        """Note a problem of one row."""
        where = place(self.names[row.file], row.line)
        self._problems.add(f"{where}: {message}", self.table, row.file, row.line)

    def text(self, row: Row, key: str, *, required: bool = False) -> str:
        """The text under ``key``; "" when absent. Anything but text is a problem, never converted."""
        value = row.values.get(key)
        if value is None:
            if required:
                self.refuse(row, f"{key} is missing; every row needs one")
            return ""
        if not isinstance(value, str):
            hint = "; ids are text: put it in quotes" if key == "id" or key.endswith("_id") else ""
            self.refuse(row, f"{key} must be text, found {quote(repr(value))}{hint}")
            return ""
        return value

    def texts(self, row: Row, key: str) -> list[str]:
        """The list of texts under ``key``; empty when absent."""
        value = row.values.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(member, str) for member in value):
            self.refuse(row, f"{key} must be a list of texts, found {quote(repr(value))}")
            return []
        return value

    def note_unknown(self, known: Collection[str], notes: list[str]) -> None:
        """Say which keys are not kept."""
        unknown = Counter(key for row in self.rows for key in row.values if key not in known)
        if unknown:
            names = listing(sorted(unknown))
            notes.append(f"{', '.join(self.names[:3])}: columns that have no place here were left out: {names}")

    def source_table(self, columns: Mapping[str, list[Any]], rows: Sequence[Row]) -> SourceTable:
        """Build the table from one list of values a column, each as long as ``rows``."""
        schema = TABLES[self.table]
        data = {name: columns.get(name, [None] * len(rows)) for name in schema}
        data |= {FILE: [row.file for row in rows], LINE: [row.line for row in rows]}
        frame = pl.DataFrame(data, schema=cast("Any", {**schema, **PLACE_SCHEMA}))
        return SourceTable(self.table, with_empty_text(frame, schema, REQUIRED[self.table]), self.names)


def first_keys(path: Path) -> list[str]:
    """Keys of the first row of a JSON lines or parquet file; empty when there is none or it cannot be read."""
    if path.suffix == ".parquet":
        try:
            return list(pl.read_parquet_schema(path))
        except (pl.exceptions.PolarsError, OSError):
            return []
    with open_json_lines(path) as stream:
        try:
            # Blank lines before the first row cost nothing to write compressed: a few are passed over.
            line = next(filter(bytes.strip, (stream.readline(64 * 1024**2) for _ in range(100))), b"")
            row = json.loads(line.removeprefix(b"\xef\xbb\xbf").decode())
        except (ValueError, RecursionError, OSError, EOFError, zlib.error):
            return []
    return list(row) if isinstance(row, dict) else []


def _short_names(files: Sequence[Path]) -> tuple[str, ...]:
    """File names, with their folder where the name alone would be ambiguous."""
    counts = Counter(path.name for path in files)
    return tuple(path.name if counts[path.name] == 1 else f"{path.parent.name}/{path.name}" for path in files)
