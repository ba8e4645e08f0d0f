"""Everything that is known of one run beyond its figures: intervals, the random control, and other readings."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from pipeline.run import Run
from pipeline.scoring.aggregations import aggregation_table
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.holes import hole_table
from pipeline.scoring.intervals import summary_intervals
from pipeline.scoring.random_control import random_control

#: What the run's figures would be if they were made in another way, one a row. ``reading`` is an ``Aggregation``
#: (the view is ``new`` then), or what becomes of unjudged tools: ``lower`` (wrong, as in the figure itself),
#: ``condensed`` (taken out) or ``upper`` (right as far as a combination lacks tools).
READINGS = {
    "reading": pl.String,
    "view": pl.String,
    "metric": pl.String,
    "k": pl.Int32,
    "average": pl.String,
    "domain": pl.String,
    "value": pl.Float64,
    "n": pl.Int64,
}

_KEYS = ["metric", "k", "average", "domain"]


@dataclass(frozen=True, eq=False)
class RunStatistics:
    """The statistics of one run.

    Attributes:
        intervals: ``view`` (``old``, ``new``), ``metric``, ``k``, ``average``, ``domain``, ``low``, ``high``.
        lifts: ``metric``, ``k``, ``average``, ``domain``, ``low``, ``high`` of the lift, ``control``, ``control_low``,
            ``control_high`` (see ``random_control``) and ``judged`` (see ``hole_table``).
        readings: columns of ``READINGS``.
    """

    intervals: pl.DataFrame
    lifts: pl.DataFrame
    readings: pl.DataFrame


def run_statistics(
    compiled: CompiledBenchmark, run: Run, per_query: pl.DataFrame, cutoffs: tuple[int, ...]
) -> RunStatistics:
    """Compute the statistics of one run.

    Args:
        compiled: the labels.
        run: the ranked run.
        per_query: its ``RunScores.per_query``, or the columns ``query_id``, ``old_…`` and ``new_…`` of it.
        cutoffs: those of ``per_query``.

    Returns:
        The statistics; ``domain`` is null for macro and micro. The last four columns of ``lifts`` are null for
        sources.

    Raises:
        ValueError: the frame does not have one row for each query of the benchmark, in its order.
    """
    intervals = summary_intervals(per_query, compiled)
    holes = pl.concat([hole_table(compiled, run, k) for k in cutoffs])
    aggregations = pl.concat([aggregation_table(compiled, run, k) for k in cutoffs])
    control = random_control(compiled, run, cutoffs).select(*_KEYS, "control", "control_low", "control_high")
    judged = holes.filter(pl.col("view") == "new").select(*_KEYS, "judged")
    lifts = intervals.filter(pl.col("view") == "lift").select(*_KEYS, "low", "high")
    for other in (control, judged):
        lifts = lifts.join(other, on=_KEYS, how="left", nulls_equal=True, maintain_order="left")
    filled = holes.unpivot(
        ["lower", "condensed", "upper"], index=["view", *_KEYS, "n"], variable_name="reading", value_name="value"
    )
    combined = aggregations.rename({"aggregation": "reading"}).with_columns(view=pl.lit("new"))
    return RunStatistics(
        intervals.filter(pl.col("view") != "lift").select("view", *_KEYS, "low", "high"),
        lifts,
        pl.concat([combined.select(*READINGS), filled.select(*READINGS)]),
    )
