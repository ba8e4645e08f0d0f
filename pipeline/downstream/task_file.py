"""A task file as ToolBench's runner reads it: one JSON list, an object a task.

Each object has ``query_id``, ``query``, ``api_list`` and ``relevant APIs`` (tool and API name of the annotated set,
whatever the setting), and two keys of ours that results are sent back with: ``category`` and ``setting``. Ids are text,
as in the benchmark.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import replace
from enum import StrEnum
from typing import TextIO

import polars as pl

from pipeline.benchmark import Benchmark
from pipeline.downstream.api_entry import api_entry
from pipeline.downstream.tool_sets import ToolSets, annotated_sets
from pipeline.errors import BenchmarkError
from pipeline.formats.messages import listing, plural
from pipeline.mftr.schema import Json


class CategoryFrom(StrEnum):
    """Which column of the queries is a task's category."""

    DOMAIN = "domain"
    SOURCE = "source"


def only_tasks(benchmark: Benchmark, tasks: Collection[str]) -> Benchmark:
    """The benchmark with some of its queries alone.

    Raises:
        BenchmarkError: a task is no query of the benchmark.
    """
    unknown = sorted(set(tasks) - set(benchmark.queries["query_id"]))
    if unknown:
        name = f"{benchmark.info.slug}@{benchmark.info.version}"
        raise BenchmarkError(
            f"{plural(len(unknown), 'task is', 'tasks are')} no query of {name}: {listing(unknown, 5)}; "
            "name query ids, one a line"
        )
    return replace(benchmark, queries=benchmark.queries.filter(pl.col("query_id").is_in(list(tasks))))


def task_records(
    benchmark: Benchmark, sets: ToolSets, *, category: CategoryFrom = CategoryFrom.DOMAIN
) -> Iterator[dict[str, Json]]:
    """The objects of a task file, in the benchmark's order.

    Args:
        benchmark: whose queries are the tasks.
        sets: the tools of each.
        category: where the category comes from.
    """
    labels = annotated_sets(benchmark).tools
    named = {tool for query in labels for tool in (*sets.tools[query], *labels[query])}
    rows = benchmark.tools.filter(pl.col("tool_id").is_in(list(named)))
    entries = {row["tool_id"]: api_entry(row) for row in rows.iter_rows(named=True)}
    for query, text, of in benchmark.queries.select("query_id", "text", category.value).iter_rows():
        relevant: list[Json] = [[entries[tool]["tool_name"], entries[tool]["api_name"]] for tool in labels[query]]
        yield {
            "query_id": query,
            "query": text,
            "category": of or "",
            "setting": sets.setting,
            "api_list": [entries[tool] for tool in sets.tools[query]],
            "relevant APIs": relevant,
        }


def write_tasks(records: Iterator[dict[str, Json]], out: TextIO) -> int:
    """Write a task file, an object at a time; returns how many there are."""
    count = 0
    out.write("[")
    for record in records:
        out.write(("," if count else "") + "\n" + json.dumps(record, ensure_ascii=False, indent=1))
        count += 1
    out.write("\n]\n")
    return count
