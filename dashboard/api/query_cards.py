"""``GET /queries/{benchmark}/{query_id}``: one query explained, with what chosen runs make of it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import polars as pl
from pydantic import Field

from dashboard.api.media import Format, without_nan
from dashboard.api.parameters import Formatted, Word
from dashboard.api.resource import Document, Found, Read
from dashboard.api.runs import is_private, shown_run
from dashboard.current_site import the_site
from dashboard.query_reading import content
from pipeline.scoring.query_card import QueryCard, query_card
from store.access import benchmarks
from store.errors import NotFound


class OneQuery(Formatted):
    """Which query, and under which runs."""

    benchmark: Word = Field(description="`slug@version`; `slug` alone means the newest version.")
    query_id: Word
    run: list[Word] = Field([], max_length=8, description="Ids of runs of this benchmark version; repeat for several.")
    token: Word | None = Field(None, description="Of a private run among them.")
    k: int = Field(10, ge=1, le=1000, description="Cutoff of scores and shown lists.")


def _one(said: OneQuery) -> Found:
    with the_site().database.reading() as session:
        version = benchmarks.get(session, said.benchmark)
    if not version.has_content:
        raise NotFound(f"{version.name} carries only printed figures; its queries are not stored here")
    chosen = {run_id: shown_run(run_id, said.token) for run_id in said.run}
    rankings: dict[str, str] = {}
    for run_id, run in chosen.items():
        if run.benchmark_version_id != version.id or run.ranking_artifact is None:
            raise NotFound(f"run {run_id} has no ranking on {version.name}")
        rankings[run_id] = run.ranking_artifact

    def make(chosen_format: Format) -> Document:
        del chosen_format
        labels = content(version).benchmark
        if labels.queries.filter(pl.col("query_id") == said.query_id).is_empty():
            raise NotFound(f"{version.name} has no query {said.query_id!r}")
        artifacts = the_site().artifacts
        scans = {run_id: artifacts.scan(digest) for run_id, digest in rankings.items()}
        return Document({"benchmark": version.name, **_values(query_card(labels, said.query_id, scans, k=said.k))})

    stamp = f"{version.content_hash}|{sorted(rankings.items())}"
    return Found(stamp, make, "equirank-query", private=any(map(is_private, chosen.values())))


def _values(card: QueryCard) -> dict[str, Any]:
    """The card's fields, frames as rows."""
    found = {field.name: getattr(card, field.name) for field in fields(card)}
    return {
        name: without_nan(value).to_dicts() if isinstance(value, pl.DataFrame) else value
        for name, value in found.items()
    }


READS = (
    Read(
        "/queries/{benchmark}/{query_id:path}",
        "One query: its labels with verdicts and reasons, and where each chosen run ranks every valid answer",
        OneQuery,
        _one,
        {
            "type": "object",
            "required": ["benchmark", "query_id", "text", "ground_truth", "combinations", "tools"],
            "properties": {
                "query_id": {"type": "string"},
                "text": {"type": "string"},
                "ground_truth": {"type": "array", "items": {"type": "string"}},
            },
        },
        (Format.JSON,),
    ),
)
