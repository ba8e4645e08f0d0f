"""One hash for the content of a benchmark, whatever files it came from.

What is hashed (SHA-256, hexadecimal):

- the line ``equirank benchmark content 1``, then the six tables in the order tools, queries, ground_truth,
  subqueries, equivalents, combinations, each as a line ``<name> <number of rows>`` and its rows;
- a row is its fields in the fixed column order of ``pipeline.benchmark``, then a newline. Text is written as
  ``<bytes in UTF-8>:<the text, verbatim>``, a list as ``[<members>]`` followed by its members as texts, a whole
  number in decimal, a truth value as ``t`` or ``f``, a floating-point number as the decimal value of its IEEE 754
  bits, an absent one as ``-``; every field ends with ``;``. Absent text is the empty text;
- the members of a combination are sorted by bytes, for it is a set; those of a ground truth keep their order,
  which positions count along;
- rows are sorted by their first column's bytes, then by the bytes of the whole row.

So the order of rows and columns, the file format, and absent against null or empty optional columns make no
difference; any change of an id, a text, a document's single byte, a verdict or a number does. ``benchmark.toml``
is not part of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import polars as pl

from pipeline.benchmark import TABLES

_BLOCK_ROWS = 100_000
_BLOCK_BYTES = 64 * 1024**2


def content_hash(tables: Mapping[str, pl.DataFrame]) -> str:
    """SHA-256 over the canonical rows of all tables.

    Args:
        tables: table name → frame in the columns of ``TABLES``; an absent table counts as empty.
    """
    digest = hashlib.sha256(b"equirank benchmark content 1\n")
    for name in TABLES:
        frame = tables.get(name)
        digest.update(f"{name} {0 if frame is None else frame.height}\n".encode())
        if frame is not None and frame.height:
            _hash_rows(digest, name, frame)
    return digest.hexdigest()


def _hash_rows(digest: hashlib._Hash, name: str, frame: pl.DataFrame) -> None:
    """Feed the sorted rows block by block; a block never splits the rows of one id."""
    key = next(iter(TABLES[name]))
    ordered = frame.sort(key)
    row = pl.concat_str(
        [_field(column, dtype, as_set=name == "combinations") for column, dtype in TABLES[name].items()]
    )
    block_rows = max(1, min(_BLOCK_ROWS, int(_BLOCK_BYTES / max(1, frame.estimated_size() / frame.height))))
    starts = _group_starts(ordered[key])
    begin = 0
    while begin < ordered.height:
        later = starts.search_sorted(begin + block_rows, side="left")
        end = int(starts[later]) if later < len(starts) else ordered.height
        block = ordered.slice(begin, end - begin)
        lines = block.select(pl.col(key), row.alias("row")).sort(key, "row")["row"]
        digest.update(("\n".join(lines.to_list()) + "\n").encode())
        begin = end


def _group_starts(sorted_keys: pl.Series) -> pl.Series:
    """Positions at which a new id starts."""
    return (sorted_keys != sorted_keys.shift(1)).fill_null(True).arg_true()


def _field(column: str, dtype: object, *, as_set: bool) -> pl.Expr:
    value = pl.col(column)
    if dtype == pl.String:
        text = value.fill_null("")
        return _sized(text) + ";"
    if dtype == pl.List(pl.String):
        members = value.list.sort() if as_set else value
        count = members.list.len().cast(pl.String)
        return "[" + count + "]" + members.list.eval(_sized(pl.element())).list.join("") + ";"
    if dtype == pl.Boolean:
        plain = pl.when(value).then(pl.lit("t")).otherwise(pl.lit("f"))
    elif dtype == pl.Float64:
        # Adding 0.0 makes negative zero positive; equal numbers must hash alike.
        plain = (value + pl.lit(0.0, dtype=pl.Float64)).reinterpret(dtype=pl.UInt64).cast(pl.String)
    else:
        plain = value.cast(pl.String)
    return pl.when(value.is_null()).then(pl.lit("-")).otherwise(plain) + ";"


def _sized(text: pl.Expr) -> pl.Expr:
    return text.str.len_bytes().cast(pl.String) + ":" + text
