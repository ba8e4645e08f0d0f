"""One table of a benchmark folder, from JSON lines or parquet, in the fixed columns of ``pipeline.benchmark``."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from pipeline.benchmark import TABLES
from pipeline.formats.json_lines import Schema, read_json_rows
from pipeline.formats.messages import quote
from pipeline.formats.source_table import FILE, LINE, ProblemList, SourceTable

#: Columns that every row must fill; all others may be absent or null.
REQUIRED: dict[str, tuple[str, ...]] = {
    "tools": ("tool_id", "documentation"),
    "queries": ("query_id", "text"),
    "ground_truth": ("query_id", "tool_ids"),
    "subqueries": ("query_id", "position", "text", "tool_id"),
    "equivalents": ("query_id", "position", "tool_id", "verdict", "origin"),
    "combinations": ("query_id", "tool_ids", "verdict"),
}
_INTEGERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)


def read_table(name: str, path: Path, problems: ProblemList, notes: list[str]) -> SourceTable:
    """Read a table of a benchmark folder.

    Absent optional text is "", other absent values are null. Unknown columns are named in ``notes``; faults go to
    ``problems``, and the frame is whole only when nothing was added.

    Args:
        name: a key of ``TABLES``.
        path: a ``.jsonl``, ``.jsonl.gz`` or ``.parquet`` file.
        problems: where faults go.
        notes: where unknown columns go.
    """
    schema = TABLES[name]
    frame = read_typed_rows(path, schema, problems, notes, table=name)
    table = SourceTable(name, frame, (path.name,))
    check_required(table, REQUIRED[name], problems)
    return table.with_frame(with_empty_text(frame, schema, REQUIRED[name]))


def read_typed_rows(
    path: Path, schema: Schema, problems: ProblemList, notes: list[str], *, table: str, file_index: int = 0
) -> pl.DataFrame:
    """Read a JSON lines or parquet file strictly into ``schema`` plus the place columns.

    Args:
        path: the file; parquet by its suffix, else JSON lines.
        schema: column → dtype of the result.
        problems: where faults go.
        notes: where unknown columns go.
        table: name for the order of problems.
        file_index: what to write into the ``FILE`` column.
    """
    if path.suffix == ".parquet":
        return _read_parquet(path, schema, problems, notes, table, file_index)
    rows = read_json_rows(path, schema, problems, table=table, file_index=file_index)
    note_unknown(path.name, dict(rows.unknown_keys), notes)
    return rows.frame


def note_unknown(file: str, columns: dict[str, int] | list[str], notes: list[str]) -> None:
    """Say in ``notes`` which columns of a file are not kept."""
    if columns:
        names = ", ".join(quote(column) for column in sorted(columns))
        notes.append(f"{file}: columns that are not part of this format were left out: {names}")


def check_required(table: SourceTable, columns: tuple[str, ...], problems: ProblemList) -> None:
    """Note the rows that lack a value they must have."""
    for column in columns:
        missing = table.frame.filter(pl.col(column).is_null())
        problems.add_rows(table, missing, lambda _, column=column: f"{column} is missing; every row needs one")  # type: ignore[misc]


def with_empty_text(frame: pl.DataFrame, schema: Schema, required: tuple[str, ...]) -> pl.DataFrame:
    """Write absent optional text as "", so that absent, null and empty are one thing."""
    texts = [name for name, dtype in schema.items() if dtype == pl.String and name not in required]
    return frame.with_columns(pl.col(texts).fill_null(""))


def _read_parquet(
    path: Path, schema: Schema, problems: ProblemList, notes: list[str], table: str, file_index: int
) -> pl.DataFrame:
    try:
        raw = pl.read_parquet(path, hive_partitioning=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        problems.add(f"{path.name}: not a readable parquet file ({str(error).splitlines()[0]})", table, file_index)
        raw = pl.DataFrame(schema=dict(schema))
    note_unknown(path.name, [column for column in raw.columns if column not in schema], notes)
    columns = []
    for name, dtype in schema.items():
        if name not in raw.columns or raw.schema[name] == pl.Null or raw.schema[name] == pl.List(pl.Null):
            found = pl.Series(name, [None] * raw.height, dtype=dtype)
            if name in raw.columns and raw.schema[name] == pl.List(pl.Null):
                found = raw[name].cast(dtype)
        elif not _same_kind(raw.schema[name], dtype):
            message = f"{path.name}: column {name} has the type {raw.schema[name]}, not {dtype}; convert it first"
            hint = " (ids are text: a number loses leading zeros)" if name.endswith(("_id", "_ids")) else ""
            problems.add(message + hint, table, file_index)
            found = pl.Series(name, [None] * raw.height, dtype=dtype)
        else:
            found = _checked_cast(path, raw[name], dtype, problems, table, file_index)
        columns.append(found)
    return pl.DataFrame(columns).with_columns(
        pl.lit(file_index, dtype=pl.UInt16).alias(FILE), pl.int_range(1, raw.height + 1, dtype=pl.UInt32).alias(LINE)
    )


def _same_kind(found: pl.DataType, wanted: pl.DataType | type[pl.DataType]) -> bool:
    if wanted == pl.Int32:
        return found in _INTEGERS
    if wanted == pl.Float64:
        return found in _INTEGERS or found in (pl.Float32, pl.Float64)
    return found == wanted


def _checked_cast(
    path: Path,
    series: pl.Series,
    dtype: pl.DataType | type[pl.DataType],
    problems: ProblemList,
    table: str,
    file_index: int,
) -> pl.Series:
    """Cast to the wanted width; note values that do not fit, NaN, and nulls inside lists."""
    cast = series.cast(dtype, strict=False)
    wrong = cast.is_null() & series.is_not_null()
    message = "does not fit 32 bits"
    if dtype == pl.Float64:
        wrong, message = ~cast.is_finite().fill_null(True), "is not a finite number"
    elif dtype == pl.List(pl.String):
        wrong = pl.select(cast.list.eval(pl.element().is_null()).list.any().fill_null(False)).to_series()
        message = "has a null member; write every member as text"
    for row in wrong.arg_true().head(20).to_list():
        problems.add(f"{path.name}, row {row + 1}: {series.name} {message}", table, file_index, row + 1)
    return cast
