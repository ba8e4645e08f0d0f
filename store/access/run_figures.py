"""The figures of runs: checked and written with a run, and the one that ranks it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

import polars as pl
from sqlalchemy import insert, select
from sqlmodel import Session, col

from store.errors import InvalidRecord
from store.models import AverageOf, BenchmarkVersion, MetricSummary, Run, View
from store.records import Summary

#: Columns of ``store.access.runs.summaries``.
SUMMARY_SCHEMA: dict[str, pl.DataType] = {
    "view": pl.String(),
    "metric": pl.String(),
    "k": pl.Int64(),
    "average": pl.String(),
    "domain": pl.String(),
    "value": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "n": pl.Int64(),
    "printed": pl.String(),
    "note": pl.String(),
}


def check_summaries(given: Iterable[Summary]) -> None:
    """Refuse figures that must not be stored.

    Raises:
        InvalidRecord: a figure is not a fraction, names an unknown view or average, or is given twice.
    """
    seen: set[tuple[str, int, str, str, str]] = set()
    for item in given:
        where = f"{item.view} {item.metric}@{item.k} {item.average} {item.domain}".rstrip()
        if not (math.isfinite(item.value) and 0.0 <= item.value <= 1.0):
            raise InvalidRecord(f"{where} is {item.value}: figures are stored as fractions from 0 to 1")
        if any(end is not None and not math.isfinite(end) for end in (item.low, item.high)):
            raise InvalidRecord(f"the interval of {where} is not finite")
        if item.view not in set(View) or item.average not in set(AverageOf) or item.k < 1:
            raise InvalidRecord(f"{where} is not a known view, average or cutoff")
        if item.domain and item.average in {AverageOf.MACRO, AverageOf.MICRO}:
            raise InvalidRecord(f"{where}: a {item.average} figure belongs to no domain")
        key = (item.metric, item.k, item.average, item.domain, item.view)
        if key in seen:
            raise InvalidRecord(f"{where} is given twice")
        seen.add(key)


def insert_summaries(session: Session, run_id: str, given: Sequence[Summary]) -> None:
    """Store the figures of a run that has none yet (core inserts: a run has up to a thousand)."""
    if given:
        rows = [{"run_id": run_id, **{name: getattr(item, name) for name in SUMMARY_SCHEMA}} for item in given]
        session.execute(insert(MetricSummary), rows)


def headline_figures(session: Session, run_ids: Collection[str], *, metric: str = "NDCG") -> pl.DataFrame:
    """What ranks each run: one row a run that has it, columns run_id, k, old, new.

    The average is the benchmark's headline; K is 10 where the run has a figure at 10, else its smallest.
    """
    columns = (col(MetricSummary.run_id), col(MetricSummary.k), col(MetricSummary.view), col(MetricSummary.value))
    query = (
        select(*columns)
        .join(Run, col(Run.id) == col(MetricSummary.run_id))
        .join(BenchmarkVersion, col(BenchmarkVersion.id) == col(Run.benchmark_version_id))
        .where(
            col(MetricSummary.run_id).in_(list(run_ids)),
            col(MetricSummary.metric) == metric,
            col(MetricSummary.domain) == "",
            col(MetricSummary.average) == col(BenchmarkVersion.headline),
        )
    )
    schema = {"run_id": pl.String, "k": pl.Int64, "view": pl.String, "value": pl.Float64}
    found = pl.DataFrame([tuple(row) for row in session.execute(query)], schema=schema, orient="row")
    return (
        found.pivot("view", on_columns=["old", "new"], index=["run_id", "k"], values="value")
        .sort("run_id", pl.col("k") != 10, "k")
        .unique("run_id", keep="first", maintain_order=True)
    )
