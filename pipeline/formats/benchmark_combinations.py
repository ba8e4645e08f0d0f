"""Combinations as sets: distinct, non-empty, of known tools, the ground truth always among them."""

from __future__ import annotations

import polars as pl

from pipeline.benchmark import Judgement
from pipeline.formats.benchmark_labels import check_enum, collapse_repeats
from pipeline.formats.messages import plural, quote
from pipeline.formats.source_table import FILE, LINE, ProblemList, SourceTable

#: Joins the sorted members of a set to one text; ids hold no control characters.
_SEPARATOR = "\n"


def normal_combinations(
    table: SourceTable, ground_truth: pl.DataFrame, queries: pl.DataFrame, problems: ProblemList, notes: list[str]
) -> SourceTable:
    """Merge equal sets, mark and complete the ground truth, and order: query, ground truth first, file order."""
    file = table.files[0]
    check_enum(table, "verdict", list(Judgement), problems)
    problems.add_rows(
        table,
        table.frame.filter(pl.col("tool_ids").list.len() == 0),
        lambda row: f"an empty combination of query {quote(row['query_id'])}; remove the row",
    )
    frame = collapse_repeats(table.frame, file, "a combination names a tool twice", notes)
    if frame.is_empty():
        return table
    truth = ground_truth.select("query_id", _set_key().alias("truth_key"))
    frame = frame.with_columns(_set_key().alias("set_key")).join(
        truth, on="query_id", how="left", maintain_order="left"
    )
    frame = frame.with_columns((pl.col("set_key") == pl.col("truth_key")).alias("is_truth")).drop("truth_key")
    frame = _merge_equal_sets(table.with_frame(frame), problems, notes)
    frame = _mark_ground_truth(table.with_frame(frame), problems, notes)
    frame = _add_ground_truth(frame, ground_truth, file, notes)
    order = queries.select("query_id", pl.int_range(pl.len(), dtype=pl.UInt32).alias("query_order"))
    frame = (
        frame.join(order, on="query_id", how="left", maintain_order="left")
        .sort(pl.col("query_order"), ~pl.col("is_ground_truth"), maintain_order=True)
        .drop("query_order")
    )
    return table.with_frame(frame)


def _set_key() -> pl.Expr:
    return pl.col("tool_ids").list.sort().list.join(_SEPARATOR)


def _merge_equal_sets(table: SourceTable, problems: ProblemList, notes: list[str]) -> pl.DataFrame:
    """Keep the first of equal sets of a query; refuse when their verdicts differ."""
    row_key = pl.concat_str("query_id", "set_key", separator=_SEPARATOR)
    distinct = row_key.is_first_distinct()
    repeats = table.frame.select(distinct.alias("distinct"))["distinct"].not_().sum()
    if not repeats:
        return table.frame.drop("set_key")
    key = ["query_id", "set_key"]
    verdicts = table.frame.filter(row_key.is_duplicated()).with_columns(
        pl.col("verdict").first().over(key).alias("first_verdict")
    )
    problems.add_rows(
        table,
        verdicts.filter(pl.col("verdict") != pl.col("first_verdict")),
        lambda row: (
            f"the combination {_shown(row['tool_ids'])} of query {quote(row['query_id'])} is {row['verdict']} here "
            f"and {row['first_verdict']} in an earlier row (combinations are sets); decide on one"
        ),
    )
    noun = "combination repeats" if repeats == 1 else "combinations repeat"
    notes.append(f"{table.files[0]}: {repeats:,} {noun} another of the same query (as a set); merged")
    return table.frame.filter(distinct).drop("set_key")


def _mark_ground_truth(table: SourceTable, problems: ProblemList, notes: list[str]) -> pl.DataFrame:
    """Let ``is_ground_truth`` say which set is C*; refuse claims that contradict it."""
    problems.add_rows(
        table,
        table.frame.filter(pl.col("is_ground_truth") & ~pl.col("is_truth")),
        lambda row: (
            f"is_ground_truth is true, but {_shown(row['tool_ids'])} is not the ground truth of query "
            f"{quote(row['query_id'])}; write false, or correct ground_truth"
        ),
    )
    problems.add_rows(
        table,
        table.frame.filter(pl.col("is_truth") & (pl.col("verdict") != Judgement.VALID)),
        lambda row: (
            f"the ground truth of query {quote(row['query_id'])} is called {quote(row['verdict'])}; it always counts "
            "as valid: write valid or leave the row out"
        ),
    )
    denied = table.frame.filter(pl.col("is_truth") & ~pl.col("is_ground_truth")).height
    if denied:
        notes.append(f"{table.files[0]}: is_ground_truth was false for {plural(denied, 'ground truth')}; set to true")
    return table.frame.with_columns(is_ground_truth=pl.col("is_truth").fill_null(False)).drop("is_truth")


def _add_ground_truth(frame: pl.DataFrame, ground_truth: pl.DataFrame, file: str, notes: list[str]) -> pl.DataFrame:
    """Add C* as a valid combination to each query that lacks it."""
    present = frame.filter("is_ground_truth").select("query_id")
    missing = ground_truth.join(present, on="query_id", how="anti", maintain_order="left")
    if missing.is_empty():
        return frame
    queries = "query" if missing.height == 1 else "queries"
    notes.append(f"{file}: the ground truth was not among the combinations of {missing.height:,} {queries}; added")
    rows = missing.select(
        "query_id",
        "tool_ids",
        pl.lit(True).alias("is_ground_truth"),
        pl.lit(str(Judgement.VALID)).alias("verdict"),
        pl.lit("").alias("reason"),
        pl.lit("").alias("judge"),
        pl.lit(0, dtype=pl.UInt16).alias(FILE),
        pl.lit(0, dtype=pl.UInt32).alias(LINE),
    )
    return pl.concat([frame, rows], how="diagonal")


def _shown(tool_ids: list[str]) -> str:
    shown = ", ".join(quote(tool) for tool in tool_ids[:4])
    return "{" + shown + (", …" if len(tool_ids) > 4 else "") + "}"
