"""Tables of a benchmark in, a consistent benchmark out, or every reason why not.

As strict as for run files (SCORING §7): nothing is dropped silently. What is merged or added is said in the
benchmark's notes; what cannot be right is refused, all problems at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from pipeline.benchmark import TABLES, Benchmark, BenchmarkInfo
from pipeline.formats.benchmark_combinations import normal_combinations
from pipeline.formats.benchmark_ids import check_ids, check_known, check_labels
from pipeline.formats.benchmark_labels import check_subqueries, normal_equivalents, normal_ground_truth
from pipeline.formats.benchmark_table import REQUIRED, with_empty_text
from pipeline.formats.benchmark_toml import info_problems
from pipeline.formats.content_hash import content_hash
from pipeline.formats.messages import quote
from pipeline.formats.nearest_id import NearestId
from pipeline.formats.source_table import ProblemList, SourceTable


def build_benchmark(info: BenchmarkInfo, frames: Mapping[str, pl.DataFrame], notes: Sequence[str] = ()) -> Benchmark:
    """Validate frames that were made in memory.

    Args:
        info: what the benchmark says of itself.
        frames: table name → rows; columns may be absent where they are optional, tables after ground_truth too.
        notes: what was noticed before, to be kept in front.

    Raises:
        BenchmarkError: the tables are inconsistent.
    """
    tables = {}
    for name, frame in frames.items():
        schema = TABLES[name]
        absent = [pl.lit(None, dtype=dtype).alias(column) for column, dtype in schema.items() if column not in frame]
        whole = frame.with_columns(absent).select(schema.keys()).cast(dict(schema))  # type: ignore[arg-type]
        tables[name] = SourceTable.from_frame(name, with_empty_text(whole, schema, REQUIRED[name]))
    return validate_benchmark(info, tables, notes)


def validate_benchmark(info: BenchmarkInfo, tables: Mapping[str, SourceTable], notes: Sequence[str] = ()) -> Benchmark:
    """Check all tables against each other and put them in their final form.

    Args:
        info: what the benchmark says of itself.
        tables: table name → rows in the columns of ``TABLES`` (required ones without nulls, optional text never
            null); ``tools``, ``queries`` and ``ground_truth`` must be there, the others are optional.
        notes: what was noticed before, to be kept in front.

    Raises:
        BenchmarkError: with every problem found, table by table, in file order.
    """
    problems, found = ProblemList(), list(notes)
    for problem in info_problems(info):
        problems.add(problem)
    for name in ("tools", "queries", "ground_truth"):
        if name not in tables or tables[name].frame.is_empty():
            problems.add(f"{name} is empty; a benchmark needs tools, queries and a ground truth", name)
    whole = {
        name: tables.get(name) or SourceTable.from_frame(name, pl.DataFrame(schema=schema))
        for name, schema in TABLES.items()
    }
    whole = _consistent(whole, problems, found)
    problems.raise_if_any(f"The benchmark {quote(info.slug)} cannot be taken as it is:")
    frames = {name: whole[name].frame.select(schema.keys()) for name, schema in TABLES.items()}
    return Benchmark(info=info, content_hash=content_hash(frames), notes=tuple(found), **frames)


def _consistent(tables: dict[str, SourceTable], problems: ProblemList, notes: list[str]) -> dict[str, SourceTable]:
    """Run every check in the order of the tables; return them normalised."""
    tools, queries, truth = tables["tools"], tables["queries"], tables["ground_truth"]
    check_ids(tools, "tool_id", problems)
    check_labels(tools, ("domain", "source"), problems)
    check_ids(queries, "query_id", problems)
    check_labels(queries, ("domain", "source"), problems)
    known_tools, known_queries = tools.frame["tool_id"], queries.frame["query_id"]
    near_tool, near_query = NearestId(known_tools.to_list(), "tool"), NearestId(known_queries.to_list(), "query")
    for name in ("ground_truth", "subqueries", "equivalents", "combinations"):
        members = "tool_ids" if "tool_ids" in TABLES[name] else "tool_id"
        check_known(tables[name], "query_id", known_queries, near_query, "query", problems)
        check_known(tables[name], members, known_tools, near_tool, "tool", problems)
    check_ids(truth, "query_id", problems)
    blank = queries.frame.filter(pl.col("text").str.strip_chars() == "")
    if blank.height:
        ids = ", ".join(map(quote, blank["query_id"].head(5)))
        more = ", …" if blank.height > 5 else ""
        notes.append(f"{blank.height:,} {'query has' if blank.height == 1 else 'queries have'} no text: {ids}{more}")
    truth = normal_ground_truth(truth, queries, problems, notes)
    one_truth = truth.frame.unique("query_id", keep="first", maintain_order=True).filter(
        pl.col("tool_ids").list.len() > 0
    )
    check_subqueries(tables["subqueries"], one_truth, problems)
    equivalents = normal_equivalents(tables["equivalents"], one_truth, tables["subqueries"].frame, problems, notes)
    combinations = normal_combinations(
        tables["combinations"], one_truth, queries.frame.unique("query_id", maintain_order=True), problems, notes
    )
    return {**tables, "ground_truth": truth, "equivalents": equivalents, "combinations": combinations}
