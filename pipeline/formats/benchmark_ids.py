"""Ids of queries and tools: their form, repeats, and references to ids that do not exist."""

from __future__ import annotations

import unicodedata
from typing import Any

import polars as pl

from pipeline.formats.limits import Limits
from pipeline.formats.messages import character, quote
from pipeline.formats.nearest_id import NearestId
from pipeline.formats.source_table import FILE, LINE, ProblemList, SourceTable

#: Control characters and every kind of space: a TREC run could not carry such an id.
_NOT_IN_IDS = r"[\p{Cc}\p{Z}]"
_NOT_IN_LABELS = r"\p{Cc}"


def check_ids(table: SourceTable, column: str, problems: ProblemList) -> None:
    """Note empty, over-long and repeated ids and those with spaces or control characters."""
    frame, value = table.frame, pl.col(column)
    limit = Limits().id_bytes
    problems.add_rows(table, frame.filter(value == ""), lambda _: f"{column} is empty; every row needs its own id")
    problems.add_rows(
        table,
        frame.filter(value.str.contains(_NOT_IN_IDS)),
        lambda row: (
            f"{column} {quote(row[column])} holds {_invisible(row[column])}; run files cannot carry it, rename it"
        ),
    )
    problems.add_rows(
        table,
        frame.filter(value.str.len_bytes() > limit),
        lambda row: f"{column} {quote(row[column])} is longer than {limit} bytes; shorten it",
    )
    repeated = frame.with_columns(
        pl.col(FILE, LINE).first().over(column).name.prefix("first"), value.is_first_distinct().alias("f")
    )
    problems.add_rows(
        table,
        repeated.filter(~pl.col("f") & (value != "")),
        lambda row: f"{column} {quote(row[column])} was already given ({_first_place(table, row)}); keep one row",
    )


def check_labels(table: SourceTable, columns: tuple[str, ...], problems: ProblemList) -> None:
    """Note control characters in the short texts by which scores are broken down."""
    for column in columns:
        problems.add_rows(
            table,
            table.frame.filter(pl.col(column).str.contains(_NOT_IN_LABELS)),
            lambda row, column=column: f"{column} {quote(row[column])} holds {_invisible(row[column])}; remove it",  # type: ignore[misc]
        )


def check_known(
    table: SourceTable, column: str, known: pl.Series, nearest: NearestId, noun: str, problems: ProblemList
) -> None:
    """Note every reference, one id or a list of them, to an id that is not ``known``."""
    frame = table.frame.select(FILE, LINE, column)
    if frame.schema[column] == pl.List(pl.String):
        frame = frame.explode(column).drop_nulls(column)
    dangling = frame.join(known.to_frame(column), on=column, how="anti")
    problems.add_rows(table, dangling, lambda row: f"unknown {noun} {quote(row[column])}{nearest.hint(row[column])}")


def _first_place(table: SourceTable, row: dict[str, Any]) -> str:
    return table.place({FILE: row["first" + FILE], LINE: row["first" + LINE]})


def _invisible(identifier: str) -> str:
    """The first character that may not be in an id, as ``U+XXXX`` with its name."""
    found = next((c for c in identifier if unicodedata.category(c)[0] == "Z" or unicodedata.category(c) == "Cc"), " ")
    return character(ord(found))
