"""Small benchmarks and the embedded model, shared by the retrieval tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from pipeline.benchmark import (
    COMBINATIONS,
    EQUIVALENTS,
    GROUND_TRUTH,
    QUERIES,
    SUBQUERIES,
    TOOLS,
    Benchmark,
    BenchmarkInfo,
    Kind,
)
from pipeline.formats.benchmark_folder import read_benchmark_folder
from pipeline.retrieval.retrieve import Retrieval
from pipeline.scoring.averages import scores_json, summarise
from pipeline.scoring.compiler import compile_benchmark
from pipeline.scoring.scores import score_run


def benchmark(
    tools: dict[str, str],
    queries: dict[str, tuple[str, list[str]]],
    *,
    subqueries: Sequence[tuple[str, int, str, str]] = (),
    combinations: Sequence[tuple[str, list[str]]] = (),
    instruction: str = "",
    kind: Kind = Kind.TOOL,
) -> Benchmark:
    """A benchmark of tools (id → documentation) and queries (id → text, ground truth)."""
    return Benchmark(
        info=BenchmarkInfo("small", "Small", kind, "1"),
        tools=pl.DataFrame([(i, d, i.upper(), "", "", "") for i, d in tools.items()], schema=TOOLS, orient="row"),
        queries=pl.DataFrame(
            [(i, t, instruction, "", "") for i, (t, _) in queries.items()], schema=QUERIES, orient="row"
        ),
        ground_truth=pl.DataFrame([(i, ids) for i, (_, ids) in queries.items()], schema=GROUND_TRUTH, orient="row"),
        subqueries=pl.DataFrame(list(subqueries), schema=SUBQUERIES, orient="row"),
        equivalents=pl.DataFrame(schema=EQUIVALENTS),
        combinations=pl.DataFrame(
            [(q, ids, ids == queries[q][1], None, "valid", "", "", None, None) for q, ids in combinations],
            schema=COMBINATIONS,
            orient="row",
        ),
        content_hash="0" * 64,
    )


def ranking(found: Retrieval) -> dict[str, list[str]]:
    """Query id → ranked tool ids."""
    offsets = found.run.offsets.tolist()
    return {
        query: [found.target.tools[int(tool)] for tool in found.run.tools[offsets[q] : offsets[q + 1]]]
        for q, query in enumerate(found.target.queries.ids)
    }


def old_figures(folder: Path, found: Retrieval) -> tuple[float, float]:
    """(NDCG@10, Recall@10) over all queries against the one label."""
    compiled = compile_benchmark(read_benchmark_folder(folder))
    old = scores_json(summarise(score_run(compiled, found.run), compiled))["old"]
    return old["NDCG@10"]["micro"], old["Recall@10"]["micro"]
