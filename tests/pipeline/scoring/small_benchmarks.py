"""Small benchmarks and runs for the scoring tests, built in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from pipeline.benchmark import TABLES, Benchmark, BenchmarkInfo, Kind
from pipeline.run import Run, RunTarget

#: query id → (domain, source, C*, other valid combinations)
Labels = Mapping[str, tuple[str, str, Sequence[str], Sequence[Sequence[str]]]]


def frame(table: str, rows: Sequence[Mapping[str, object]]) -> pl.DataFrame:
    """Rows of one table, missing columns null."""
    schema = TABLES[table]
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)


def benchmark(
    tools: Sequence[str],
    labels: Labels,
    *,
    equivalents: Sequence[Mapping[str, object]] = (),
    invalid: Sequence[tuple[str, Sequence[str]]] = (),
    subqueries: Sequence[Mapping[str, object]] = (),
    content_hash: str = "0" * 64,
) -> Benchmark:
    """A benchmark of the given labels; C* is the first row of its query unless there are no combinations at all."""
    combinations: list[dict[str, object]] = []
    for query, (_, _, truth, others) in labels.items():
        if others:
            rows = [list(truth), *map(list, others)]
            combinations += [
                {"query_id": query, "tool_ids": row, "is_ground_truth": i == 0, "verdict": "valid"}
                for i, row in enumerate(rows)
            ]
    combinations += [{"query_id": q, "tool_ids": list(row), "verdict": "invalid"} for q, row in invalid]
    return Benchmark(
        info=BenchmarkInfo("small", "small", Kind.TOOL, "1"),
        tools=frame("tools", [{"tool_id": t, "domain": "web"} for t in tools]),
        queries=frame("queries", [{"query_id": q, "domain": d, "source": s} for q, (d, s, _, _) in labels.items()]),
        ground_truth=frame("ground_truth", [{"query_id": q, "tool_ids": list(v[2])} for q, v in labels.items()]),
        subqueries=frame("subqueries", subqueries),
        equivalents=frame("equivalents", equivalents),
        combinations=frame("combinations", combinations),
        content_hash=content_hash,
    )


def canonical(combinations: Sequence[Sequence[str]]) -> list[frozenset[str]]:
    """Distinct sets in compiled order (no RRF scores): the first stays first, the others by their sorted ids."""
    first, *others = map(frozenset, combinations)
    return [first, *sorted(set(others) - {first}, key=lambda c: sorted(map(str.encode, c)))]


def ranked(results: Mapping[str, float]) -> list[str]:
    """The ranking rule: float32 score descending, ties by id bytes descending."""
    return sorted(results, key=lambda tool: (np.float32(results[tool]), tool.encode()), reverse=True)


def run_of(target: RunTarget, results: Mapping[str, Mapping[str, float]]) -> Run:
    """A run from ``{query: {tool: score}}``."""
    tools: list[str] = []
    scores: list[float] = []
    offsets = [0]
    for query in target.queries.ids:
        order = ranked(results.get(query, {}))
        tools += order
        scores += [results[query][tool] for tool in order]
        offsets.append(len(tools))
    return Run(
        offsets=np.array(offsets, dtype=np.int64),
        tools=target.tools.find(tools),
        scores=np.array(scores, dtype=np.float32),
        ranking_hash="",
    )
