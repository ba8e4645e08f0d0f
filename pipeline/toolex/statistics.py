"""What an expansion found, in numbers: Table 1 of the paper and what explains it.

Table 1 itself is ``pipeline.scoring.benchmark_statistics``, the spreads behind its means
``pipeline.scoring.benchmark_distributions``; both read any benchmark. Here is what only an expansion knows: how judges
decided by rank, and what became of the queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.benchmark import Benchmark, Judgement, Origin
from pipeline.scoring.benchmark_statistics import benchmark_statistics

#: Columns of ``acceptance_by_rank``; ``rank`` is null for all ranks together.
ACCEPTANCE = {
    "judge": pl.String,
    "rank": pl.Int32,
    "judged": pl.Int64,
    "accepted": pl.Int64,
    "unanswered": pl.Int64,
    "rate": pl.Float64,
}


def table_one(benchmark: Benchmark, states: pl.DataFrame | None = None) -> pl.DataFrame:
    """Table 1 with what became of the queries, over all and by domain.

    Args:
        benchmark: the expanded version.
        states: its ``query_states_frame``; without it the columns about queries are null.

    Returns:
        Columns of ``benchmark_statistics``, then ``audited`` (combinations that were asked about), ``truncated``
        (queries cut off at the cap), ``decomposition_failed`` (queries that keep C* alone).
    """
    figures = benchmark_statistics(benchmark)
    names = ("audited", "truncated", "decomposition_failed")
    if states is None:
        return figures.with_columns(pl.lit(None, dtype=pl.Int64).alias(name) for name in names)
    known = states.join(benchmark.queries.select("query_id", "domain"), on="query_id", how="inner")
    sums = [pl.col(name).cast(pl.Int64).sum() for name in names]
    whole = known.select(pl.lit(None, dtype=pl.String).alias("domain"), *sums)
    found = pl.concat([whole, known.group_by("domain").agg(sums)])
    return figures.join(found, on="domain", how="left", nulls_equal=True, maintain_order="left")


def acceptance_by_rank(equivalents: pl.DataFrame) -> pl.DataFrame:
    """How many candidates each judge accepted, over all ranks and at each.

    Args:
        equivalents: of the expanded version; only judged candidates count, which leaves out the ground truth.

    Returns:
        Columns of ``ACCEPTANCE``, by judge, all ranks first. A candidate without a valid answer counts as not
        accepted and under ``unanswered``.
    """
    judged = equivalents.filter(pl.col("origin") == Origin.JUDGED.value).select(
        "judge",
        pl.col("retrieval_rank").alias("rank"),
        (pl.col("verdict") == Judgement.VALID.value).alias("valid"),
        (pl.col("verdict") == Judgement.UNSURE.value).alias("unsure"),
    )
    figures = [
        pl.len().cast(pl.Int64).alias("judged"),
        pl.col("valid").sum().cast(pl.Int64).alias("accepted"),
        pl.col("unsure").sum().cast(pl.Int64).alias("unanswered"),
        pl.col("valid").mean().alias("rate"),
    ]
    overall = judged.group_by("judge").agg(pl.lit(None, dtype=pl.Int32).alias("rank"), *figures)
    by_rank = judged.filter(pl.col("rank").is_not_null()).group_by("judge", "rank").agg(figures)
    return pl.concat([overall.select(ACCEPTANCE.keys()), by_rank.select(ACCEPTANCE.keys())]).sort(
        "judge", "rank", nulls_last=False
    )


def audits_by_judge(combinations: pl.DataFrame) -> pl.DataFrame:
    """How each judge of combinations decided, C* left out.

    Returns:
        ``judge``, ``audited``, ``covered``, ``consistent``, ``accepted``, ``rate``.
    """
    return (
        combinations.filter(~pl.col("is_ground_truth"))
        .group_by("judge")
        .agg(
            audited=pl.len().cast(pl.Int64),
            covered=pl.col("coverage").sum().cast(pl.Int64),
            consistent=pl.col("dependency_consistent").sum().cast(pl.Int64),
            accepted=(pl.col("verdict") == Judgement.VALID.value).sum().cast(pl.Int64),
            rate=(pl.col("verdict") == Judgement.VALID.value).mean(),
        )
        .sort("judge")
    )


def by_length_quartile(
    benchmark: Benchmark, tokens: Sequence[int], values: Mapping[str, npt.NDArray[np.float64]]
) -> pl.DataFrame:
    """Means of per-query values (a lift, a fine-tuning gain) by quartile of the labelled documents' length.

    Args:
        benchmark: whose queries the values belong to.
        tokens: length of each tool's documentation, in the order of ``benchmark.tools``.
        values: name → one value a query, in the order of ``benchmark.queries``.

    Returns:
        One row a quartile, from 1: ``quartile``, ``queries``, ``shortest``, ``longest`` (mean tokens of a query's
        ground-truth documents), then the mean of each value. Quartiles hold equally many queries, up to one; equal
        lengths are told apart by query id.
    """
    lengths = benchmark.tools.select("tool_id", tokens=pl.Series(tokens, dtype=pl.Int64))
    order = benchmark.queries.select("query_id", *(pl.Series(name, column) for name, column in values.items()))
    known = (
        benchmark.ground_truth.explode("tool_ids")
        .join(lengths, left_on="tool_ids", right_on="tool_id")
        .group_by("query_id")
        .agg(pl.col("tokens").mean())
        .join(order, on="query_id")
        .sort("tokens", "query_id")
        .with_columns(quartile=(pl.int_range(pl.len()) * 4 // pl.len() + 1).cast(pl.Int32))
    )
    return (
        known.group_by("quartile")
        .agg(
            queries=pl.len().cast(pl.Int64),
            shortest=pl.col("tokens").min(),
            longest=pl.col("tokens").max(),
            **{name: pl.col(name).mean() for name in values},
        )
        .sort("quartile")
    )
