"""Which tools to verify next: unjudged ones that runs rank high, where judges are unsure first.

A retriever whose results nobody judged is scored as if they were wrong. The queue says where that may matter most.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from pipeline.benchmark import Benchmark
from pipeline.retrieval.fusion import RRF_K
from pipeline.retrieval.rankings import run_frame
from pipeline.run import Run, RunTarget

#: Columns of ``growth_queue``.
QUEUE = {
    "query_id": pl.String,
    "tool_id": pl.String,
    "runs": pl.Int64,
    "best_rank": pl.Int64,
    "rank_score": pl.Float64,
    "uncertainty": pl.Float64,
    "priority": pl.Float64,
}


def judge_uncertainty(verdicts: pl.DataFrame) -> pl.DataFrame:
    """How much judges, or repeats of one, disagree about the candidates of each query.

    Args:
        verdicts: one row a verdict: ``query_id``, ``position``, ``tool_id``, ``accepted``; several judges' or several
            runs' rows under one another.

    Returns:
        ``query_id`` and ``uncertainty``: the mean over its candidates with two verdicts or more of 1 − |2p − 1|, p
        being the share that accepts; 0 where all agree, 1 where they are split in half. Queries without such a
        candidate are left out.
    """
    return (
        verdicts.group_by("query_id", "position", "tool_id")
        .agg(p=pl.col("accepted").mean(), n=pl.len())
        .filter(pl.col("n") > 1)
        .group_by("query_id")
        .agg(uncertainty=(1 - (2 * pl.col("p") - 1).abs()).mean())
    )


def growth_queue(
    benchmark: Benchmark,
    runs: Mapping[str, Run],
    target: RunTarget,
    *,
    depth: int = 10,
    uncertainty: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Unjudged (query, tool) pairs, the most wanted first.

    A pair is unjudged when the tool is neither in the query's ground truth nor among its equivalents, whatever their
    verdict.

    Args:
        benchmark: with its verdicts so far.
        runs: name → run over the benchmark.
        target: the ids of the runs.
        depth: results of each run that are looked at.
        uncertainty: see ``judge_uncertainty``; queries it does not name count as certain.

    Returns:
        Columns of ``QUEUE``. ``rank_score`` is Σ 1 / (60 + rank) over the runs; ``priority`` is that times
        (1 + uncertainty). Equal priorities go by query and tool id.
    """
    truth = benchmark.ground_truth.explode("tool_ids").select("query_id", tool_id="tool_ids")
    judged = pl.concat([truth, benchmark.equivalents.select("query_id", "tool_id")]).unique()
    ranked = [
        run_frame(run, target)
        .select("query_id", "tool_id", rank=pl.int_range(1, pl.len() + 1).over("query_id"))
        .filter(pl.col("rank") <= depth)
        for run in runs.values()
    ]
    if not ranked:
        return pl.DataFrame(schema=QUEUE)
    known = (
        uncertainty
        if uncertainty is not None
        else pl.DataFrame(schema={"query_id": pl.String, "uncertainty": pl.Float64})
    )
    return (
        pl.concat(ranked)
        .join(judged, on=["query_id", "tool_id"], how="anti")
        .group_by("query_id", "tool_id")
        .agg(
            runs=pl.len(),
            best_rank=pl.col("rank").min(),
            # Sorted, so that the sum does not depend on the order of the runs.
            rank_score=(1.0 / (RRF_K + pl.col("rank").sort())).sum(),
        )
        .join(known, on="query_id", how="left")
        .with_columns(pl.col("uncertainty").fill_null(0.0))
        .with_columns(priority=pl.col("rank_score") * (1 + pl.col("uncertainty")))
        .select(pl.col(name).cast(dtype) for name, dtype in QUEUE.items())
        .sort("priority", "query_id", "tool_id", descending=[True, False, False])
    )
