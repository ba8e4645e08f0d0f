"""From query scores to figures: macro, micro, by domain and by source, over all queries of the benchmark.

A query that a run does not answer counts as 0 (pytrec_eval, BEIR and MTEB leave it out of the mean). Sums are
``math.fsum``'s, rounded once at the end, so that no figure depends on the order of queries or on the machine.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.benchmark import Average
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.kernel import METRICS
from pipeline.scoring.scores import RunScores

#: Columns of a summary; ``domain`` names the domain or source and is null for macro and micro.
SUMMARY = {
    "view": pl.String,
    "metric": pl.String,
    "k": pl.Int32,
    "average": pl.String,
    "domain": pl.String,
    "value": pl.Float64,
    "n": pl.Int64,
}

_COLUMN = re.compile(rf"(old|new)_({'|'.join(METRICS)})@(\d+)")

#: (view, metric, K) → score of every query.
ScoreColumns = dict[tuple[str, str, int], npt.NDArray[np.float64]]


def mean(values: list[float]) -> float:
    """The mean, summed exactly and rounded once; independent of the order of ``values``."""
    return math.fsum(values) / len(values)


def average_of(values: npt.NDArray[np.float64], domain_of: npt.NDArray[np.integer], average: Average) -> float:
    """One figure of per-query values: the mean of the domains' means, or over all queries.

    Args:
        values: (queries,).
        domain_of: (queries,), domain of each query; only domains with queries count.
        average: which mean.
    """
    if average is Average.MICRO:
        return mean(values.tolist())
    return mean([mean(values[domain_of == domain].tolist()) for domain in np.unique(domain_of)])


def scopes(
    compiled: CompiledBenchmark,
) -> list[tuple[str, str | None, Average, npt.NDArray[np.bool_]]]:
    """Macro, micro and every domain: name of the average, domain, which mean, which queries."""
    everything = np.ones(len(compiled.queries), dtype=np.bool_)
    found: list[tuple[str, str | None, Average, npt.NDArray[np.bool_]]] = [
        ("macro", None, Average.MACRO, everything),
        ("micro", None, Average.MICRO, everything),
    ]
    for d, name in enumerate(compiled.domain_names):
        found.append(("domain", name, Average.MICRO, compiled.domain_of == d))
    return found


def summarise(scores: RunScores | pl.DataFrame, compiled: CompiledBenchmark) -> pl.DataFrame:
    """All averages of one run.

    Args:
        scores: the scores, or their ``per_query`` frame as it was stored.
        compiled: the labels: they say which domains and sources there are, and in which order.

    Returns:
        Columns as in ``SUMMARY``. ``average`` is ``macro`` (mean of the domain means), ``micro`` (mean over
        queries), ``domain`` or ``source``; ``n`` is the number of queries behind the value.

    Raises:
        ValueError: the frame does not have one row for each query of the benchmark, in its order.
    """
    columns = score_columns(scores, compiled)
    total = len(compiled.queries)
    if total == 0:
        return pl.DataFrame(schema=SUMMARY)
    groupings = [
        ("domain", compiled.domain_names, *_grouped(compiled.domain_of, len(compiled.domain_names))),
        ("source", compiled.source_names, *_grouped(compiled.source_of, len(compiled.source_names))),
    ]
    rows: list[tuple[str, str, int, str, str | None, float, int]] = []
    for (view, metric, k), values in columns.items():
        by_group = {
            average: [
                (name, mean(grouped[start:end]), end - start)
                for grouped in [values[order].tolist()]
                for name, start, end in zip(names, bounds, bounds[1:], strict=False)
            ]
            for average, names, order, bounds in groupings
        }
        macro = mean([value for _, value, _ in by_group["domain"]])
        rows.append((view, metric, k, "macro", None, macro, total))
        rows.append((view, metric, k, "micro", None, mean(values.tolist()), total))
        rows += [
            (view, metric, k, average, name, value, n)
            for average, groups in by_group.items()
            for name, value, n in groups
        ]
    return pl.DataFrame(rows, schema=SUMMARY, orient="row")


def scores_json(summary: pl.DataFrame) -> dict[str, Any]:
    """A summary in the shape of the command line's documented JSON.

    Returns:
        ``{"old": {"NDCG@10": {"macro", "micro", "domains": {…}, "sources": {…}}, …}, "new": {…}}``; an average that
        a paper does not print is None.
    """
    out: dict[str, Any] = {}
    for view, metric, k, average, domain, value, _ in summary.select(list(SUMMARY)).iter_rows():
        entry = out.setdefault(view, {}).setdefault(f"{metric}@{k}", {"domains": {}, "sources": {}})
        if average in ("macro", "micro"):
            entry[average] = value
        else:
            entry[f"{average}s"][domain] = value
    return {
        view: {
            name: {"macro": e.get("macro"), "micro": e.get("micro"), "domains": e["domains"], "sources": e["sources"]}
            for name, e in entries.items()
        }
        for view, entries in out.items()
    }


def score_columns(scores: RunScores | pl.DataFrame, compiled: CompiledBenchmark) -> ScoreColumns:
    """The per-query scores of one run by (view, metric, K); float64 (queries,) each.

    Raises:
        ValueError: the frame does not have one row for each query of the benchmark, in its order.
    """
    if isinstance(scores, RunScores):
        return {
            (view, metric, k): values[m, j]
            for view, values in (("old", scores.evaluation.old), ("new", scores.evaluation.new))
            for m, metric in enumerate(METRICS)
            for j, k in enumerate(scores.cutoffs)
        }
    if scores["query_id"].to_list() != compiled.queries.ids:
        raise ValueError(f"the per-query scores are not those of the queries of {compiled.name}, in their order")
    named = [(match, name) for name in scores.columns if (match := _COLUMN.fullmatch(name))]
    return {(m[1], m[2], int(m[3])): scores[name].to_numpy() for m, name in named}


def _grouped(group_of: npt.NDArray[np.int32], groups: int) -> tuple[npt.NDArray[np.intp], list[int]]:
    """An order that brings groups together, and where each begins."""
    bounds = [0, *np.cumsum(np.bincount(group_of, minlength=groups)).tolist()]
    return np.argsort(group_of, kind="stable"), bounds
