"""``GET /runs/{run_id}``, its card and its scores by query; a private run only with its token."""

from __future__ import annotations

import polars as pl
from pydantic import Field

from dashboard.api.media import TABULAR, Format, row_schema
from dashboard.api.parameters import Formatted, Paged, Word
from dashboard.api.resource import Document, File, Found, Page, Read
from dashboard.current_site import the_site
from pipeline.jobs.citations import benchmark_address, run_bibtex
from pipeline.jobs.run_card import card_text, run_address, run_card
from pipeline.jobs.run_records import run_record
from pipeline.scoring.averages import scores_json
from pipeline.scoring.run_statistics import READINGS
from store.access import benchmarks, retrievers, run_figures, runs, statistics
from store.errors import NotFound
from store.models import State, Visibility
from store.records import RunRecord

_TOKEN = Field(None, description="Of a private run's link.")


class OneRun(Formatted):
    """Which run."""

    run_id: Word
    token: Word | None = _TOKEN


class RunQueries(Paged):
    """Which run, and which part of its scores."""

    run_id: Word
    token: Word | None = _TOKEN
    k: int | None = Field(None, ge=1, le=1000, description="Only the scores at this cutoff.")
    domain: Word | None = Field(None, description="Only the queries of this domain.")


def shown_run(run_id: str, token: str | None) -> RunRecord:
    """The run, where this reader may see it.

    Raises:
        NotFound: there is none, or not for this reader; the two cannot be told apart.
    """
    with the_site().database.reading() as session:
        return runs.get_shown(session, run_id, token=token)


def is_private(run: RunRecord) -> bool:
    """Whether the answer is for this reader only."""
    return run.visibility == Visibility.PRIVATE.value or run.state != State.PUBLISHED.value


def _stamp(run: RunRecord) -> str:
    """Changes with everything about the run that can."""
    with the_site().database.reading() as session:
        retriever = retrievers.get_by_id(session, run.retriever_id)
    return f"{run!r}|{retriever!r}"


def _one(said: OneRun) -> Found:
    run = shown_run(said.run_id, said.token)
    site = the_site()

    def make(chosen: Format) -> Document | File:
        with site.database.reading() as session:
            figures = runs.summaries(session, run.id)
            lifts = statistics.lifts(session, run.id)
            retriever = retrievers.get_by_id(session, run.retriever_id)
            version = benchmarks.get_by_id(session, run.benchmark_version_id)
        if chosen is Format.BIBTEX:
            cited = run_bibtex(
                run,
                retriever,
                version,
                address=run_address(site, run),
                benchmark_address=benchmark_address(site, version),
            )
            return File(cited)
        record = {name: value for name, value in run_record(site, run.id).items() if name != "file"}
        # Other ways to count (mean over combinations, unjudged tools taken out, …), once they are made.
        readings = None if run.statistics_artifact is None else site.artifacts.get_frame(run.statistics_artifact)
        value = {
            "run": {**record, "retriever_key": retriever.key, "address": run_address(site, run)},
            "scores": scores_json(figures),
            "figures": figures.to_dicts(),
            "lifts": lifts.to_dicts(),
            "readings": None if readings is None else readings.to_dicts(),
        }
        return Document(value, figures)

    return Found(_stamp(run), make, f"equirank-run-{run.id}", private=is_private(run))


def _card(said: OneRun) -> Found:
    run = shown_run(said.run_id, said.token)

    def make(chosen: Format) -> Document | File:
        card = run_card(the_site(), run)
        return File(card_text(card)) if chosen is Format.TEXT else Document(card)

    return Found(_stamp(run), make, f"equirank-run-{run.id}-card", private=is_private(run))


def _queries(said: RunQueries) -> Found:
    run = shown_run(said.run_id, said.token)
    digest = run.per_query_artifact
    if digest is None:
        raise NotFound(f"run {run.id} has no scores by query: its figures are printed in {run.place}")

    def make(chosen: Format) -> Page:
        del chosen
        frame = the_site().artifacts.scan(digest)
        names = frame.collect_schema().names()
        if said.k is not None:
            names = [name for name in names if "@" not in name or _cutoff(name) == str(said.k)]
            if not any("@" in name for name in names):
                raise NotFound(f"run {run.id} has no scores at K = {said.k}")
        if said.domain is not None:
            frame = frame.filter(pl.col("domain") == said.domain)
        total = int(frame.select(pl.len()).collect().item())
        rows = frame.select(names).slice(said.offset, said.limit).collect()
        about = {"run_id": run.id, "benchmark_hash": run.benchmark_hash, "scorer_version": run.scorer_version}
        return Page(rows, total, about)

    return Found(f"{run.id}|{digest}", make, f"equirank-run-{run.id}-queries", private=is_private(run))


def _cutoff(column: str) -> str:
    """``10`` of ``new_NDCG@10_low_exact``."""
    return column.partition("@")[2].partition("_")[0]


READS = (
    Read(
        "/runs/{run_id}",
        "One run: where it came from, its hashes and versions, and all its figures",
        OneRun,
        _one,
        {
            "type": "object",
            "required": ["run", "scores", "figures", "lifts", "readings"],
            "properties": {
                "run": {"type": "object"},
                "scores": {"type": "object", "description": "As `equirank runs show --format json`."},
                "figures": {"type": "array", "items": row_schema(run_figures.SUMMARY_SCHEMA)},
                "lifts": {"type": "array", "items": row_schema(statistics.LIFTS)},
                "readings": {
                    "type": ["array", "null"],
                    "items": row_schema(READINGS),
                    "description": "Other ways to count; null until they are made.",
                },
            },
        },
        (*TABULAR, Format.BIBTEX),
    ),
    Read(
        "/runs/{run_id}/card",
        "What a run can be reproduced from: hashes, versions, contract and command",
        OneRun,
        _card,
        {"type": "object", "required": ["run", "benchmark", "contract", "hashes", "versions", "reproduce"]},
        (Format.JSON, Format.TEXT),
    ),
    Read(
        "/runs/{run_id}/queries",
        "The scores of every query, in the order of query ids' bytes",
        RunQueries,
        _queries,
        {
            "type": "object",
            "required": ["run_id", "total", "limit", "offset", "items"],
            "properties": {
                "run_id": {"type": "string"},
                "total": {"type": "integer"},
                "limit": {"type": "integer"},
                "offset": {"type": "integer"},
                "items": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["query_id"],
                        "properties": {"query_id": {"type": "string"}, "domain": {"type": ["string", "null"]}},
                        "description": "`old_NDCG@10`, `new_NDCG@10`, `winner_NDCG@10` … for every metric and cutoff",
                    },
                },
            },
        },
    ),
)
