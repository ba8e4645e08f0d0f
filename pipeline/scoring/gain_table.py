"""The gain of one run over another under old and new labels, overall and by domain, with intervals and tests.

One table serves the fine-tuning illusion (a retriever and its base) and any comparison of two runs. Rows that are
known only as printed figures have the same table with empty intervals and p values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.benchmark import Average
from pipeline.scoring.averages import average_of
from pipeline.scoring.holm import holm
from pipeline.scoring.illusion import NO_CLEAR_GAIN, share_is_meaningful, split_gain
from pipeline.scoring.randomization import FLIPS, compare_pairs, gain_change, query_weights
from pipeline.scoring.randomization import SEED as FLIP_SEED
from pipeline.scoring.statistics import CONFIDENCE, RESAMPLES, IllusionIntervals, illusion_of, resample_means
from pipeline.scoring.statistics import SEED as RESAMPLE_SEED

#: One row a metric and scope. ``average`` is ``macro``, ``micro`` or ``domain``; ``domain`` is null for the first
#: two. ``p_old`` and ``p_new`` test the gains, ``p_shrink`` whether they differ (difference of differences);
#: ``…_holm`` is adjusted over all rows of the same metric. ``share`` is the illusion share, null with the reason in
#: ``why_undefined``; a null end of its interval means that the old gain is not clearly positive.
GAIN_TABLE = {
    "metric": pl.String,
    "k": pl.Int32,
    "average": pl.String,
    "domain": pl.String,
    "n": pl.Int64,
    "base_old": pl.Float64,
    "tuned_old": pl.Float64,
    "base_new": pl.Float64,
    "tuned_new": pl.Float64,
    "gain_old": pl.Float64,
    "gain_old_low": pl.Float64,
    "gain_old_high": pl.Float64,
    "p_old": pl.Float64,
    "p_old_holm": pl.Float64,
    "gain_new": pl.Float64,
    "gain_new_low": pl.Float64,
    "gain_new_high": pl.Float64,
    "p_new": pl.Float64,
    "p_new_holm": pl.Float64,
    "artifact": pl.Float64,
    "artifact_low": pl.Float64,
    "artifact_high": pl.Float64,
    "p_shrink": pl.Float64,
    "p_shrink_holm": pl.Float64,
    "share": pl.Float64,
    "share_low": pl.Float64,
    "share_high": pl.Float64,
    "sign_flips": pl.Boolean,
    "why_undefined": pl.String,
}

_TESTS = ("old", "new", "shrink")
_AVERAGES = ("macro", "micro", "domain")


def gain_table(
    base: pl.DataFrame,
    tuned: pl.DataFrame,
    *,
    metrics: Sequence[str] = ("NDCG",),
    k: int = 10,
    averages: Sequence[Average] = (Average.MACRO,),
    domains: Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    flips: int = FLIPS,
    confidence: float = CONFIDENCE,
) -> pl.DataFrame:
    """Split the gain of ``tuned`` over ``base``, from their per-query scores.

    Args:
        base: ``RunScores.per_query`` of the run that gains are measured from.
        tuned: the same of the other run, on the same benchmark version.
        metrics: of ``NDCG``, ``Recall``, ``Comp``.
        k: cutoff.
        averages: overall rows to make, before the domains.
        domains: which domains, in which order; None takes all in the order of their names.
        resamples: of the bootstrap.
        flips: of the tests.
        confidence: of the intervals.

    Returns:
        Columns of ``GAIN_TABLE``.

    Raises:
        ValueError: the runs are not over the same queries.
    """
    check_same_queries(base, tuned)
    names, domain_of = _numbered(base["domain"])
    shown = names if domains is None else [name for name in domains if name in names]
    scores = {
        metric: np.array([run[f"{view}_{metric}@{k}"].to_numpy() for run in (base, tuned) for view in ("old", "new")])
        for metric in metrics
    }
    everything = np.ones(len(domain_of), dtype=np.bool_)
    scopes: list[tuple[str, str | None, Average, npt.NDArray[np.bool_]]] = [
        (str(average), None, average, everything) for average in averages
    ]
    scopes += [("domain", name, Average.MICRO, domain_of == names.index(name)) for name in shown]
    resampled = resample_means(
        np.concatenate(list(scores.values())), domain_of, Average.MICRO, resamples=resamples, seed=RESAMPLE_SEED
    )
    rows: list[dict[str, Any]] = []
    for average, domain, weighing, chosen in scopes:
        differences = [
            row
            for of_metric in scores.values()
            for base_old, base_new, tuned_old, tuned_new in [of_metric[:, chosen]]
            for row in (
                tuned_old - base_old,
                tuned_new - base_new,
                gain_change(base_old, base_new, tuned_old, tuned_new),
            )
        ]
        weights = query_weights(domain_of[chosen], weighing)
        tests = compare_pairs(
            np.array(differences), [(i, None) for i in range(len(differences))], weights, flips=flips, seed=FLIP_SEED
        )
        for m, (metric, of_metric) in enumerate(scores.items()):
            means = [average_of(values[chosen], domain_of[chosen], weighing) for values in of_metric]
            four = slice(4 * m, 4 * m + 4)
            if domain is not None:
                samples = resampled.domain_samples[four, names.index(domain)]
            elif weighing is Average.MACRO:
                samples = resampled.domain_samples[four].mean(axis=1)
            else:
                samples = resampled.samples[four]
            intervals = illusion_of(np.array(means), samples, confidence)
            row = _row(metric, k, average, domain, int(chosen.sum()), means, intervals)
            row |= {f"p_{name}": test.p for name, test in zip(_TESTS, tests[3 * m : 3 * m + 3], strict=True)}
            rows.append(row)
    rows.sort(key=lambda row: list(metrics).index(row["metric"]))  # stable: scopes keep their order
    for metric in metrics:
        family = [row for row in rows if row["metric"] == metric]
        for name in _TESTS:
            for row, adjusted in zip(family, holm([row[f"p_{name}"] for row in family]), strict=True):
                row[f"p_{name}_holm"] = adjusted
    return pl.DataFrame(rows, schema=GAIN_TABLE)


def printed_gain_table(base: pl.DataFrame, tuned: pl.DataFrame, domains: Sequence[str] | None = None) -> pl.DataFrame:
    """The same table from figures alone, as of papers: no intervals, no tests.

    Args:
        base: rows of one run with columns view, metric, k, average, domain (null or "" for macro and micro), value
            and, if known, n.
        tuned: rows of the other run; figures that only one of the two has are left out.
        domains: the order of domains; None keeps the order of ``base``.

    Returns:
        Columns of ``GAIN_TABLE``; ``base_new``, ``gain_new`` and what follows from it are null where a run has no new
        figure.
    """
    before, after = _by_scope(base), _by_scope(tuned)
    metrics = list(dict.fromkeys(metric for metric, *_ in before))
    in_order = list(domains) if domains is not None else list(dict.fromkeys(key[3] for key in before))

    def place(key: tuple[str, int, str, str | None]) -> tuple[int, int, int, int]:
        metric, k, average, domain = key
        return metrics.index(metric), k, _AVERAGES.index(average), in_order.index(domain) if domain else -1

    keys = [
        key
        for key in before
        if key[2] in _AVERAGES
        and (key[3] is None or key[3] in in_order)
        and "old" in before[key]
        and "old" in after.get(key, {})
    ]
    rows = []
    for key in sorted(keys, key=place):
        one, two = before[key], after[key]
        rows.append(_row(*key, one.get("n"), [one["old"], one.get("new"), two["old"], two.get("new")], None))
    return pl.DataFrame(rows, schema=GAIN_TABLE)


def with_sayable_shares(table: pl.DataFrame) -> pl.DataFrame:
    """The table as it is given to readers: a share only where it may be said, see ``share_is_meaningful``.

    Args:
        table: columns of ``GAIN_TABLE``.

    Returns:
        The same rows; elsewhere ``share`` and its interval are null and ``why_undefined`` says why.
    """
    gains = table.select("gain_old", "gain_old_low").iter_rows()
    kept = pl.lit(pl.Series([share_is_meaningful(*row) for row in gains], dtype=pl.Boolean))
    unsaid = ~kept & pl.col("share").is_not_null()
    return table.with_columns(
        pl.when(kept).then(pl.col("share", "share_low", "share_high")).name.keep(),
        why_undefined=pl.when(unsaid).then(pl.lit(NO_CLEAR_GAIN)).otherwise("why_undefined"),
    )


def check_same_queries(first: pl.DataFrame, second: pl.DataFrame) -> None:
    """Refuse per-query frames of different queries.

    Raises:
        ValueError: the queries or their order differ, or there are none.
    """
    if first.height == 0 or not first["query_id"].equals(second["query_id"]):
        raise ValueError("the two runs are not scored over the same queries; compare runs of one benchmark version")


def _numbered(domains: pl.Series) -> tuple[list[str], npt.NDArray[np.int64]]:
    names: list[str] = domains.unique().sort().to_list()
    index = domains.replace_strict(names, range(len(names)), return_dtype=pl.Int64)
    return names, index.to_numpy()


def _row(
    metric: str,
    k: int,
    average: str,
    domain: str | None,
    n: int | None,
    means: Sequence[Any],
    intervals: IllusionIntervals | None,
) -> dict[str, Any]:
    base_old, base_new, tuned_old, tuned_new = means
    split = split_gain(base_old, base_new, tuned_old, tuned_new)
    row: dict[str, Any] = {
        "metric": metric,
        "k": k,
        "average": average,
        "domain": domain,
        "n": n,
        "base_old": base_old,
        "tuned_old": tuned_old,
        "base_new": base_new,
        "tuned_new": tuned_new,
        "gain_old": split.gain_old,
        "gain_new": split.gain_new,
        "artifact": split.artifact,
        "share": split.share,
        "sign_flips": split.sign_flips,
        "why_undefined": split.why_undefined,
    }
    if intervals is not None:
        for name in ("gain_old", "gain_new", "artifact", "share"):
            interval = getattr(intervals, name)
            row |= {f"{name}_low": interval.low, f"{name}_high": interval.high}
    # Tests fill in what they find; all columns are there without them.
    return dict.fromkeys(GAIN_TABLE) | row


def _by_scope(figures: pl.DataFrame) -> dict[tuple[str, int, str, str | None], dict[str, Any]]:
    """(metric, k, average, domain) → value of each view, and n."""
    out: dict[tuple[str, int, str, str | None], dict[str, Any]] = {}
    for row in figures.filter(pl.col("value").is_not_null()).iter_rows(named=True):
        entry = out.setdefault((row["metric"], row["k"], row["average"], row["domain"] or None), {})
        entry[row["view"]] = row["value"]
        if row.get("n") is not None:
            entry["n"] = row["n"]
    return out
