"""Parquet run files: columns query_id, tool_id and score (or rank), read in batches."""

from __future__ import annotations

import io
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pipeline.formats.byte_source import ByteSource
from pipeline.formats.delimited import Columns, columns_of
from pipeline.formats.messages import listing, size, visible
from pipeline.formats.parquet_pages import check_pages
from pipeline.formats.problems import Refusal
from pipeline.formats.reading import Reading
from pipeline.formats.rows import Int32, RowCollector
from pipeline.formats.unknown_ids import UnknownIds
from pipeline.identifiers import IdTable
from pipeline.run import RunTarget

_BATCH = 1 << 16
#: Ranks have at most nine digits, as in text files.
_MOST_RANK = 999_999_999
_FAR = _MOST_RANK + 1


def read_parquet(source: ByteSource, target: RunTarget, collector: RowCollector) -> Reading:
    """Read the table into ``collector``.

    Raises:
        Refusal: it is damaged, a column is missing, of a wrong type, or has nulls.
    """
    file = source.whole()
    try:
        return _read(file, target, collector)
    except (pl.exceptions.PolarsError, OSError, ValueError, MemoryError) as error:
        raise _damaged(error) from None
    except pl.exceptions.PanicException as error:
        raise _damaged(error) from None


def _damaged(error: BaseException) -> Refusal:
    reason = visible(str(error).strip().split("\n")[0][:200])
    return Refusal(f"the Parquet file is damaged or truncated ({reason}): write or upload it again")


def _read(file: Path | io.BytesIO, target: RunTarget, collector: RowCollector) -> Reading:
    frame = pl.scan_parquet(file, glob=False, hive_partitioning=False)
    schema = frame.collect_schema()
    columns = columns_of(schema.names())
    names = schema.names()
    wanted = [names[place] for place in (columns.query, columns.tool, columns.score, columns.rank) if place is not None]
    _check_types(schema, names, columns)
    with file.open("rb") if isinstance(file, Path) else nullcontext(file) as opened:
        check_pages(opened, wanted, collector.limits)
    total = int(frame.select(pl.len()).collect().item())
    if total > collector.limits.rows:
        raise Refusal(
            f"the file has {total:,} rows, more than the limit of {collector.limits.rows:,}: keep fewer a query"
        )
    reading = Reading("parquet", counts={"lines": total}, distances=columns.distances)
    others = [name for name in names if name not in wanted]
    if others:
        reading.notes.append(f"columns not read: {listing(others)}")
    first = 0
    for batch in frame.select(wanted).collect_batches(chunk_size=_BATCH, maintain_order=True):
        _take(batch, first, names, columns, target, collector)
        first += batch.height
    return reading


def _check_types(schema: pl.Schema, names: list[str], columns: Columns) -> None:
    for place in (columns.query, columns.tool):
        dtype = schema[names[place]]
        if not isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
            raise Refusal(f"column {names[place]} has type {dtype}: ids are texts, write it as String")
    if columns.score is not None:
        dtype = schema[names[columns.score]]
        if not (dtype.is_float() or dtype.is_integer()):
            raise Refusal(f"column {names[columns.score]} has type {dtype}: write scores as Float32 or Float64")
    if columns.rank is not None:
        dtype = schema[names[columns.rank]]
        if not dtype.is_integer():
            raise Refusal(f"column {names[columns.rank]} has type {dtype}: write ranks as whole numbers (Int32)")


def _take(
    batch: pl.DataFrame, first: int, names: list[str], columns: Columns, target: RunTarget, collector: RowCollector
) -> None:
    """Check one batch and hand it on; ``first`` is its first row, 0-based."""
    bad = np.zeros(batch.height, dtype=np.bool_)
    for place in (columns.query, columns.tool, columns.score, columns.rank):
        if place is None:
            continue
        nulls = batch[names[place]].is_null()
        if nulls.any():
            rows = np.flatnonzero(nulls.to_numpy())
            bad[rows] = True
            collector.problems.add(
                f"column {names[place]} is null in row {first + int(rows[0]) + 1:,}: give every row a value",
                count=len(rows),
            )
    for place in (columns.query, columns.tool):
        _refuse_endless(batch[names[place]], names[place], first, collector.limits.line_bytes)
    query = positions_of(batch[names[columns.query]], target.queries, collector.unknown_queries, first)
    tool = positions_of(batch[names[columns.tool]], target.tools, collector.unknown_tools, first)
    score = None
    if columns.score is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            doubles = batch[names[columns.score]].cast(pl.Float64).fill_null(0.0).to_numpy()
            score = doubles.astype(np.float32)
        infinite = ~np.isfinite(score)
        if infinite.any():
            rows = np.flatnonzero(infinite)
            bad[rows] = True
            value = doubles[rows[0]]
            collector.problems.add(
                f"column {names[columns.score]} is {value}"
                f" in row {first + int(rows[0]) + 1:,}: scores must be finite as "
                "32-bit floats",
                count=len(rows),
            )
    rank = None
    if columns.rank is not None:
        # Values no Int64 holds become null here; those that were null before are refused already.
        wide = batch[names[columns.rank]].cast(pl.Int64, strict=False).fill_null(_FAR).to_numpy()
        far = ((wide > _MOST_RANK) | (wide < -_MOST_RANK)) & ~bad
        if far.any():
            row = int(np.flatnonzero(far)[0])
            value = batch[names[columns.rank]][row]
            bad |= far
            collector.problems.add(
                f"column {names[columns.rank]} is {value} in row {first + row + 1:,}: write 1, 2, 3, …",
                count=int(far.sum()),
            )
        rank = np.where(far, 0, wide).astype(np.int32)
    tool = np.where(bad, np.int32(-1), tool)
    collector.add(query, tool, score, rank)


def _refuse_endless(ids: pl.Series, name: str, first: int, longest: int) -> None:
    """Stop before a text of many megabytes is copied about: no line of a text file could hold it either."""
    lengths = ids.cast(pl.String).str.len_bytes()
    if (lengths > longest).any():
        row = int(np.flatnonzero((lengths > longest).fill_null(False).to_numpy())[0])
        raise Refusal(
            f"column {name} has {size(int(lengths[row]))} in row {first + row + 1:,}, longer than "
            f"{size(longest)}: this is no id"
        )


def positions_of(ids: pl.Series, table: IdTable, unknown: UnknownIds | None = None, first: int = 0) -> Int32:
    """Positions of a column of ids, -1 where unknown or null; each distinct id is looked up once.

    Args:
        ids: a column of texts.
        table: where to look.
        unknown: receives unknown ids, with their row counted on from ``first``.
    """
    frame = pl.DataFrame({"id": ids.cast(pl.String)}).with_row_index("row")
    distinct = frame.group_by("id", maintain_order=True).agg(pl.col("row").min(), pl.len()).drop_nulls("id")
    found = table.find(distinct["id"].to_list())
    if unknown is not None:
        for i in np.flatnonzero(found < 0).tolist():
            identifier, row, count = distinct.row(i)
            unknown.add(identifier, None, f"row {first + row + 1:,}", count)
    distinct = distinct.select("id", pl.Series("position", found, dtype=pl.Int32))
    joined: Any = frame.join(distinct, on="id", how="left", maintain_order="left")["position"].fill_null(-1).to_numpy()
    return np.ascontiguousarray(joined, dtype=np.int32)
