"""Every figure of one run with its interval: what a summary stores beside each value."""

from __future__ import annotations

import numpy as np
import polars as pl

from pipeline.benchmark import Average
from pipeline.scoring.averages import SUMMARY, score_columns, summarise
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.scores import RunScores
from pipeline.scoring.statistics import CONFIDENCE, RESAMPLES, SEED, percentile_interval, resample_means

#: Columns of ``summary_intervals``; ``view`` is also ``lift``, new minus old.
SUMMARY_INTERVALS = {**SUMMARY, "low": pl.Float64, "high": pl.Float64}

_KEYS = ["view", "metric", "k", "average", "domain"]


def summary_intervals(
    scores: RunScores | pl.DataFrame,
    compiled: CompiledBenchmark,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    confidence: float = CONFIDENCE,
) -> pl.DataFrame:
    """The summary of one run, its lifts, and the interval of each: stratified paired bootstrap, percentile.

    Queries are drawn within domains for macro, micro and domains, and within sources for sources, the same draws for
    every metric, cutoff and view.

    Args:
        scores: the scores, or their ``per_query`` frame as it was stored.
        compiled: the labels.
        resamples: draws.
        seed: of the draws.
        confidence: nominal coverage.

    Returns:
        Columns of ``SUMMARY_INTERVALS``; the rows of ``summarise`` in its order, then the lifts.

    Raises:
        ValueError: the frame does not have one row for each query of the benchmark, in its order.
    """
    summary = summarise(scores, compiled)
    if summary.height == 0:
        return pl.DataFrame(schema=SUMMARY_INTERVALS)
    columns = score_columns(scores, compiled)
    names = list(columns)
    rows = np.array([columns[name] for name in names])
    found: list[tuple[str, str, int, str, str | None, float | None, float | None]] = []
    strata = [
        ("domain", compiled.domain_names, compiled.domain_of),
        ("source", compiled.source_names, compiled.source_of),
    ]
    for average, groups, group_of in strata:
        resampled = resample_means(rows, group_of, Average.MICRO, resamples=resamples, seed=seed)
        scopes: list[tuple[str, str | None, np.ndarray]] = [
            (average, name, resampled.domain_samples[:, g]) for g, name in enumerate(groups)
        ]
        if average == "domain":
            scopes = [
                ("macro", None, resampled.domain_samples.mean(axis=1)),
                ("micro", None, resampled.samples),
                *scopes,
            ]
        for scope, group, samples in scopes:
            for i, (view, metric, k) in enumerate(names):
                drawn = [(view, samples[i])]
                if view == "new":
                    drawn.append(("lift", samples[i] - samples[names.index(("old", metric, k))]))
                for kind, values in drawn:
                    interval = percentile_interval(None, values, confidence)
                    found.append((kind, metric, k, scope, group, interval.low, interval.high))
    intervals = pl.DataFrame(
        found, schema={name: SUMMARY_INTERVALS[name] for name in [*_KEYS, "low", "high"]}, orient="row"
    )
    return (
        pl.concat([summary, _lifts(summary)])
        .join(intervals, on=_KEYS, how="left", nulls_equal=True, maintain_order="left")
        .select(*SUMMARY_INTERVALS)
    )


def _lifts(summary: pl.DataFrame) -> pl.DataFrame:
    """New minus old of every figure that has both."""
    keys = _KEYS[1:]
    old = summary.filter(pl.col("view") == "old").select(*keys, before="value")
    return (
        summary.filter(pl.col("view") == "new")
        .join(old, on=keys, how="inner", nulls_equal=True, maintain_order="left")
        .with_columns(view=pl.lit("lift"), value=pl.col("value") - pl.col("before"))
        .select(*SUMMARY)
    )
