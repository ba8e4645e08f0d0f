"""Stored runs as plain values, in the shape that ``equirank runs …`` prints."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.jobs.site import Site
from store.access import benchmarks, retrievers, run_figures, runs
from store.models import Provenance, State, Visibility


def list_records(site: Site, benchmark: str | None = None) -> list[dict[str, Any]]:
    """Runs that were uploaded or measured here, newest first; reported figures are not among them.

    Raises:
        NotFound: the benchmark is not stored.
    """
    with site.database.reading() as session:
        version = None if benchmark is None else benchmarks.get(session, benchmark).id
        frame = runs.list_runs(
            session,
            benchmark_version_id=version,
            provenances=(Provenance.UPLOADED, Provenance.MEASURED),
        )
        figures = run_figures.headline_figures(session, frame["run_id"].to_list())
    scored = {row.pop("run_id"): row for row in figures.to_dicts()}
    no_figure = {"k": None, "old": None, "new": None}
    return [
        {
            "id": row["run_id"],
            "benchmark": row["benchmark"],
            "retriever": row["retriever"],
            "method": row["method"],
            "contract": row["contract"],
            "level": row["level"],
            "provenance": row["provenance"],
            "state": row["state"],
            "visibility": row["visibility"],
            "answered": row["queries_answered"],
            "queries": row["queries_total"],
            "flags": row["flags"],
            "ndcg": scored.get(row["run_id"], no_figure),
            "created": row["created_at"].isoformat(timespec="seconds"),
            "published": row["published_at"] and row["published_at"].isoformat(timespec="seconds"),
        }
        for row in frame.iter_rows(named=True)
    ]


def run_headline(site: Site, run_id: str) -> list[str]:
    """What somebody who has just measured a run wants to know: its figure, and how others come to see it.

    Raises:
        NotFound: there is no such run.
    """
    with site.database.reading() as session:
        run = runs.get(session, run_id)
        figures = run_figures.headline_figures(session, [run_id])
    lines = []
    for _, k, old, new in figures.iter_rows():
        told = "" if new is None else f", {100 * new:.1f} by every valid answer"
        lines.append(f"NDCG@{k}: {100 * old:.1f} by the one label{told}")
    if (run.state, run.visibility) != (State.PUBLISHED.value, Visibility.PUBLIC.value):
        lines.append(f"private until it is published: equirank runs publish {run_id}")
    return lines


def run_record(site: Site, run_id: str) -> dict[str, Any]:
    """Everything that makes one run's figures reproducible.

    Raises:
        NotFound: there is no such run.
    """
    with site.database.reading() as session:
        run = runs.get(session, run_id)
        version = benchmarks.get_by_id(session, run.benchmark_version_id)
        retriever = retrievers.get_by_id(session, run.retriever_id)
    return {
        "id": run.id,
        "benchmark": version.name,
        "benchmark_hash": run.benchmark_hash,
        "retriever": retriever.name,
        "method": run.method,
        "level": run.level,
        "contract": run.contract,
        "contract_hash": run.contract_hash,
        "provenance": run.provenance,
        "state": run.state,
        "visibility": run.visibility,
        "place": run.place,
        "file": run.raw_name,
        "file_hash": run.raw_artifact,
        "ranking_hash": run.ranking_hash,
        "scorer_version": run.scorer_version,
        "depth": run.depth,
        "queries": run.queries_total,
        "missing": run.missing,
        "flags": list(run.flags),
        "notes": list(run.notes),
        "efficiency": None if run.efficiency is None else dict(run.efficiency),
        "trained_on_benchmark": run.trained_on_benchmark,
        "link": run.link,
        "licence": run.licence,
        "created": run.created_at.isoformat(timespec="seconds"),
        "published": run.published_at and run.published_at.isoformat(timespec="seconds"),
    }


def run_summary(site: Site, run_id: str) -> pl.DataFrame:
    """The run's figures: ``view, metric, k, average, domain, value, …``."""
    with site.database.reading() as session:
        return runs.summaries(session, run_id)
