"""Pass rates by setting and category, and how they differ on the tasks that two settings share.

A rate has Wilson's interval. A difference is paired: over tasks with a result under both settings, with the percentile
interval of a bootstrap that draws tasks within categories, and a sign-flip test, which for pass and fail is McNemar's
test. p values are adjusted with Holm's method over all rows of a study.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pipeline.benchmark import Average
from pipeline.downstream.outcomes import Outcomes
from pipeline.scoring.holm import holm
from pipeline.scoring.randomization import FLIPS, compare_pairs, query_weights
from pipeline.scoring.statistics import CONFIDENCE, RESAMPLES, percentile_interval, resample_means
from pipeline.toolex.validation import wilson_interval

#: Columns of ``pass_rates``; ``category`` is null for all tasks together, ``rate`` and its ends are fractions.
PASS_RATES = {
    "setting": pl.String,
    "category": pl.String,
    "passed": pl.Int64,
    "tasks": pl.Int64,
    "rate": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
}
#: Shared tasks that an interval of a difference needs: with fewer a bootstrap's is far too narrow.
FEWEST_TASKS = 10
#: Columns of ``paired_differences``. ``difference`` is the rate under ``setting`` minus that under ``baseline`` over
#: the ``tasks`` they share; ``gained`` pass under ``setting`` alone, ``lost`` under ``baseline`` alone. ``low`` and
#: ``high`` are null where resampling says nothing: fewer than ``FEWEST_TASKS``, or every task differs alike. ``exact``:
#: every assignment of signs was looked at.
DIFFERENCES = {
    "setting": pl.String,
    "baseline": pl.String,
    "category": pl.String,
    "tasks": pl.Int64,
    "gained": pl.Int64,
    "lost": pl.Int64,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "p_holm": pl.Float64,
    "exact": pl.Boolean,
}


def pass_rates(outcomes: Outcomes, *, confidence: float = CONFIDENCE) -> pl.DataFrame:
    """The share of tasks that passed, over each setting's own tasks.

    Returns:
        Columns of ``PASS_RATES``: by setting in order, all tasks first, then categories in the order of the frame.
    """
    rows = []
    for setting in outcomes.settings:
        own = outcomes.frame.filter(pl.col("setting") == setting)
        for category in (None, *own["category"].unique(maintain_order=True)):
            passed = (own if category is None else own.filter(pl.col("category") == category))["passed"]
            count, tasks = int(passed.sum()), len(passed)
            found = wilson_interval(count, tasks, confidence)
            rows.append((setting, category, count, tasks, found.value, found.low, found.high))
    return pl.DataFrame(rows, schema=PASS_RATES, orient="row")


def paired_differences(
    outcomes: Outcomes, *, resamples: int = RESAMPLES, flips: int = FLIPS, confidence: float = CONFIDENCE
) -> pl.DataFrame:
    """Each setting against every one before it, the last setting first: it is what a study is about.

    Args:
        outcomes: the results.
        resamples: of the bootstrap.
        flips: of the tests; where at most so many assignments of signs exist, p is exact.
        confidence: of the intervals.

    Returns:
        Columns of ``DIFFERENCES``; of a pair all tasks first, then categories. A pair without a task in common has no
        row.
    """
    rows: list[dict[str, Any]] = []
    for place in reversed(range(len(outcomes.settings))):
        for baseline in outcomes.settings[:place]:
            rows += _pair(outcomes.frame, baseline, outcomes.settings[place], resamples, flips, confidence)
    adjusted = holm([row["p"] for row in rows])
    for row, p in zip(rows, adjusted, strict=True):
        row["p_holm"] = p
    return pl.DataFrame(rows, schema=DIFFERENCES)


def _pair(
    frame: pl.DataFrame, baseline: str, setting: str, resamples: int, flips: int, confidence: float
) -> list[dict[str, Any]]:
    after = frame.filter(pl.col("setting") == setting).select("category", "task", after="passed")
    before = frame.filter(pl.col("setting") == baseline).select("category", "task", before="passed")
    shared = before.join(after, on=["category", "task"], how="inner", maintain_order="left")
    if shared.is_empty():
        return []
    names = shared["category"].unique(maintain_order=True).to_list()
    category_of = shared["category"].replace_strict(names, list(range(len(names))), return_dtype=pl.Int64).to_numpy()
    scores = shared.select("before", "after").cast(pl.Float64).to_numpy().T
    resampled = resample_means(scores, category_of, Average.MICRO, resamples=resamples)
    everything = np.ones(len(category_of), dtype=np.bool_)
    scopes = [(None, everything, resampled.samples)]
    scopes += [(name, category_of == i, resampled.domain_samples[:, i]) for i, name in enumerate(names)]
    rows = []
    for category, chosen, samples in scopes:
        own = scores[:, chosen]
        (test,) = compare_pairs(own, [(0, 1)], query_weights(category_of[chosen], Average.MICRO), flips=flips)
        gained, lost = int((own[1] > own[0]).sum()), int((own[1] < own[0]).sum())
        difference = (gained - lost) / own.shape[1]
        told = own.shape[1] >= FEWEST_TASKS and not (own[1] - own[0] == own[1, 0] - own[0, 0]).all()
        interval = percentile_interval(difference, samples[1] - samples[0], confidence)
        rows.append(
            {
                "setting": setting,
                "baseline": baseline,
                "category": category,
                "tasks": own.shape[1],
                "gained": gained,
                "lost": lost,
                "difference": difference,
                "low": interval.low if told else None,
                "high": interval.high if told else None,
                "p": test.p,
                "exact": test.exact,
            }
        )
    return rows
