"""What measured runs cost: the columns of a plot of score against cost."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl
from sqlalchemy import select
from sqlmodel import Session, col

from store.models import Run

#: Columns of ``efficiencies``; null where a figure does not apply or was not measured.
EFFICIENCY_COLUMNS: dict[str, pl.DataType] = {
    "run_id": pl.String(),
    "encode_seconds_per_1000_documents": pl.Float64(),
    "query_ms": pl.Float64(),
    "dimension": pl.Int64(),
    "parameters": pl.Int64(),
    "index_bytes": pl.Int64(),
    "device": pl.String(),
    "llm_calls_per_query": pl.Float64(),
    "llm_seconds_per_query": pl.Float64(),
    "llm_calls_per_tool": pl.Float64(),
    "aggregation_ms": pl.Float64(),
}


def efficiencies(session: Session, run_ids: Collection[str]) -> pl.DataFrame:
    """Cost of those of the runs that were measured here; one row each, columns of ``EFFICIENCY_COLUMNS``."""
    query = select(col(Run.id), col(Run.efficiency)).where(
        col(Run.id).in_(list(run_ids)), col(Run.efficiency).is_not(None)
    )
    rows = [
        {name: run_id if name == "run_id" else (cost or {}).get(name) for name in EFFICIENCY_COLUMNS}
        for run_id, cost in session.execute(query.order_by(col(Run.id)))
    ]
    return pl.DataFrame(rows, schema=EFFICIENCY_COLUMNS)
