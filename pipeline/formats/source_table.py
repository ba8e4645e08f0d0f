"""Rows as they came from a file, with their places, and the list of what is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from pipeline.benchmark import TABLES
from pipeline.errors import BenchmarkError

#: Columns that say where a row came from: index into ``SourceTable.files``, and 1-based line (row in parquet).
FILE = "_file"
LINE = "_line"
PLACE_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {FILE: pl.UInt16, LINE: pl.UInt32}

_ORDER = {name: order for order, name in enumerate(TABLES)}

#: Problems of one kind kept word for word; the rest are counted.
KEPT_PER_KIND = 1000


@dataclass(frozen=True, eq=False)
class SourceTable:
    """One table of a benchmark before validation.

    Attributes:
        name: a key of ``pipeline.benchmark.TABLES``.
        frame: the columns of that table plus ``FILE`` and ``LINE``.
        files: names for messages, indexed by ``FILE``.
    """

    name: str
    frame: pl.DataFrame
    files: tuple[str, ...]

    @classmethod
    def from_frame(cls, name: str, frame: pl.DataFrame) -> SourceTable:
        """Wrap rows that were never in a file; their places are row numbers of ``name``."""
        placed = frame.with_columns(
            pl.lit(0, dtype=pl.UInt16).alias(FILE),
            pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).alias(LINE),
        )
        return cls(name, placed, (name,))

    def with_frame(self, frame: pl.DataFrame) -> SourceTable:
        """The same table with other rows."""
        return SourceTable(self.name, frame, self.files)

    def place(self, row: Mapping[str, Any]) -> str:
        """Where a row lies, in words: ``combinations.jsonl, line 12``."""
        return place(self.files[row[FILE]], row[LINE])


def place(file: str, line: int) -> str:
    """Where a row lies, in words; only text files have lines."""
    unit = "line" if file.removesuffix(".gz").endswith((".jsonl", ".json")) else "row"
    return f"{file}, {unit} {line}"


@dataclass
class ProblemList:
    """What is wrong, gathered over all tables before anything is refused."""

    entries: list[tuple[int, int, int, str]] = field(default_factory=list)
    _added: Counter[str] = field(default_factory=Counter)

    def add(self, message: str, table: str = "", file: int = 0, line: int = 0) -> None:
        """Note one problem; ``message`` names the place itself. A flood from one table is cut short."""
        self._added[table] += 1
        if self._added[table] > KEPT_PER_KIND:
            return
        if self._added[table] == KEPT_PER_KIND:
            message += f" (the rest of {table or 'the file'} is not listed)"
        self._enter(message, table, file, line)

    def _enter(self, message: str, table: str, file: int, line: int) -> None:
        self.entries.append((_ORDER.get(table, -1), file, line, message))

    def add_rows(self, table: SourceTable, rows: pl.DataFrame, describe: Callable[[dict[str, Any]], str]) -> None:
        """Note every row of ``rows`` (which must carry the place columns), in file order.

        Args:
            table: where the rows come from.
            rows: the rows at fault.
            describe: the problem of one row in words; the place is put before it.
        """
        if rows.is_empty():
            return
        ordered = rows.sort(FILE, LINE, maintain_order=True)
        for row in ordered.head(KEPT_PER_KIND).iter_rows(named=True):
            self._enter(f"{table.place(row)}: {describe(row)}", table.name, row[FILE], row[LINE])
        if ordered.height > KEPT_PER_KIND:
            last = ordered.row(KEPT_PER_KIND, named=True)
            more = ordered.height - KEPT_PER_KIND
            message = f"{table.place(last)}: {describe(last)} (and {more - 1:,} more rows like it)"
            self._enter(message, table.name, last[FILE], last[LINE])

    def raise_if_any(self, message: str) -> None:
        """Refuse when anything was noted.

        Raises:
            BenchmarkError: with every problem, table by table and in file order.
        """
        if self.entries:
            raise BenchmarkError(message, tuple(entry[3] for entry in sorted(self.entries, key=lambda e: e[:3])))
