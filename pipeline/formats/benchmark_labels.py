"""Ground truth, sub-queries and equivalents: what each must satisfy, and what is put in order."""

from __future__ import annotations

import polars as pl

from pipeline.benchmark import Judgement, Origin
from pipeline.formats.messages import plural, quote
from pipeline.formats.source_table import ProblemList, SourceTable


def normal_ground_truth(
    table: SourceTable, queries: SourceTable, problems: ProblemList, notes: list[str]
) -> SourceTable:
    """One non-empty set of distinct tools for every query; a label given twice is merged."""
    frame = table.frame
    problems.add_rows(
        table,
        frame.filter(pl.col("tool_ids").list.len() == 0),
        lambda row: f"the ground truth of query {quote(row['query_id'])} is empty; name at least one tool",
    )
    problems.add_rows(
        queries,
        queries.frame.join(frame.select("query_id"), on="query_id", how="anti"),
        lambda row: f"query {quote(row['query_id'])} has no ground truth; add its row or remove the query",
    )
    return table.with_frame(collapse_repeats(frame, table.files[0], "a ground truth names a tool twice", notes))


def collapse_repeats(frame: pl.DataFrame, file: str, what: str, notes: list[str]) -> pl.DataFrame:
    """Keep each tool of a set once, where it came first; say how many rows had a repeat."""
    members = pl.col("tool_ids")
    repeats = frame.filter(members.list.n_unique() < members.list.len())
    if repeats.is_empty():
        return frame
    example = quote(repeats["query_id"][0])
    notes.append(f"{file}: {what} in {plural(repeats.height, 'row')} (first: query {example}); it is kept once")
    return frame.with_columns(members.list.unique(maintain_order=True))


def check_subqueries(table: SourceTable, ground_truth: pl.DataFrame, problems: ProblemList) -> None:
    """Sub-queries of a query and its ground-truth tools must correspond one to one, positions being 0, 1, …."""
    placed = table.frame.join(ground_truth.select("query_id", pl.col("tool_ids").alias("truth")), on="query_id")
    size = pl.col("truth").list.len()
    problems.add_rows(
        table,
        placed.filter(~pl.col("position").is_between(0, size.cast(pl.Int32) - 1)),
        lambda row: (
            f"position {row['position']} of query {quote(row['query_id'])} is out of range; it has "
            f"{len(row['truth'])} ground-truth tools, so positions are 0 to {len(row['truth']) - 1}"
        ),
    )
    problems.add_rows(
        table,
        placed.filter(~pl.col("truth").list.contains(pl.col("tool_id"))),
        lambda row: (
            f"the sub-query's tool {quote(row['tool_id'])} is not in the ground truth of query {quote(row['query_id'])}"
        ),
    )
    for column, what in (("position", "position"), ("tool_id", "ground-truth tool")):
        problems.add_rows(
            table,
            placed.filter(~pl.struct("query_id", column).is_first_distinct()),
            lambda row, column=column, what=what: (  # type: ignore[misc]
                f"{what} {quote(str(row[column]))} of query {quote(row['query_id'])} has a second sub-query; "
                "write exactly one a ground-truth tool"
            ),
        )
    short = placed.filter((pl.len().over("query_id") < size) & pl.col("query_id").is_first_distinct())
    problems.add_rows(
        table,
        short,
        lambda row: (
            f"query {quote(row['query_id'])} has fewer sub-queries than its {len(row['truth'])} ground-truth tools; "
            "write exactly one a tool, or none"
        ),
    )


def check_enum(table: SourceTable, column: str, allowed: list[str], problems: ProblemList) -> None:
    """Note values outside a closed set; case counts."""
    problems.add_rows(
        table,
        table.frame.filter(~pl.col(column).is_in(allowed)),
        lambda row: f"{column} is {quote(row[column])}; write one of {', '.join(allowed)}",
    )


def normal_equivalents(
    table: SourceTable,
    ground_truth: pl.DataFrame,
    subqueries: pl.DataFrame,
    problems: ProblemList,
    notes: list[str],
) -> SourceTable:
    """Check positions, verdicts and origins; merge rows that say the same of the same tool."""
    check_enum(table, "verdict", list(Judgement), problems)
    check_enum(table, "origin", list(Origin), problems)
    problems.add_rows(
        table,
        table.frame.filter(pl.col("retrieval_rank") < 0),
        lambda row: f"retrieval_rank is {row['retrieval_rank']}; ranks are not negative",
    )
    _check_positions(table, ground_truth, subqueries, problems)
    key = ["query_id", "position", "tool_id"]
    repeated = table.frame.filter(pl.struct(key).is_duplicated())
    if repeated.is_empty():
        return table
    verdicts = repeated.with_columns(pl.col("verdict").first().over(key).alias("first_verdict"))
    problems.add_rows(
        table,
        verdicts.filter(pl.col("verdict") != pl.col("first_verdict")),
        lambda row: (
            f"tool {quote(row['tool_id'])} at position {row['position']} of query {quote(row['query_id'])} is "
            f"{row['verdict']} here and {row['first_verdict']} in an earlier row; decide on one"
        ),
    )
    merged = table.frame.unique(key, keep="first", maintain_order=True)
    notes.append(
        f"{table.files[0]}: {plural(table.frame.height - merged.height, 'row')} repeated the verdict on a tool; merged"
    )
    return table.with_frame(merged)


def _check_positions(
    table: SourceTable, ground_truth: pl.DataFrame, subqueries: pl.DataFrame, problems: ProblemList
) -> None:
    """Positions are in range; what is called ground truth is the tool of that position, and is valid."""
    by_label = ground_truth.select(
        "query_id", pl.col("tool_ids").alias("truth"), pl.col("tool_ids").list.len().cast(pl.Int32).alias("size")
    )
    by_subquery = subqueries.unique(["query_id", "position"], keep="first").select(
        "query_id", "position", pl.col("tool_id").alias("subquery_tool")
    )
    placed = (
        table.frame.join(by_label, on="query_id", how="left")
        .join(by_subquery, on=["query_id", "position"], how="left")
        .with_columns(in_range=pl.col("position").is_between(0, pl.col("size") - 1))
        .with_columns(
            truth_tool=pl.coalesce(
                "subquery_tool",
                pl.col("truth").list.get(pl.when("in_range").then("position"), null_on_oob=True),
            )
        )
    )
    problems.add_rows(
        table,
        placed.filter(~pl.col("in_range")),
        lambda row: (
            f"position {row['position']} of query {quote(row['query_id'])} is out of range; positions count its "
            f"ground-truth tools from 0 to {row['size'] - 1}"
        ),
    )
    problems.add_rows(
        table,
        placed.filter((pl.col("origin") == Origin.GROUND_TRUTH) & (pl.col("tool_id") != pl.col("truth_tool"))),
        lambda row: (
            f"origin is ground_truth, but the ground-truth tool at position {row['position']} of query "
            f"{quote(row['query_id'])} is {quote(row['truth_tool'])}, not {quote(row['tool_id'])}"
        ),
    )
    problems.add_rows(
        table,
        placed.filter((pl.col("tool_id") == pl.col("truth_tool")) & (pl.col("verdict") != Judgement.VALID)),
        lambda row: (
            f"the ground-truth tool {quote(row['tool_id'])} of query {quote(row['query_id'])} is called "
            f"{quote(row['verdict'])}; the ground truth is exempt from judging: write valid or leave the row out"
        ),
    )
