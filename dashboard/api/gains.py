"""``GET /gains``: what fine-tuning gains, old and new, and how much of it is an artifact of one label a query.

The stored gains of a board may still hold runs that were withdrawn or hidden since: pairs are made from the runs that
the board shows now, and only their rows are read.
"""

from __future__ import annotations

from typing import Any, Literal

import polars as pl
from pydantic import Field, model_validator

from dashboard import reading
from dashboard.api.media import Format, row_schema
from dashboard.api.parameters import Paged, Word
from dashboard.api.resource import Found, Page, Read
from dashboard.current_site import the_site
from pipeline.jobs.pair_gains import pair_gains
from pipeline.scoring.fine_tuning_pairs import fine_tuning_pairs
from pipeline.scoring.gain_table import GAIN_TABLE, with_sayable_shares
from store.access import benchmarks, freshness, retrievers, runs
from store.errors import NotFound
from store.records import BenchmarkRecord, RunRecord

#: What a row says of its pair, before the columns of ``GAIN_TABLE``.
PAIR: dict[str, Any] = {
    "base_run": pl.String,
    "base": pl.String,
    "tuned_run": pl.String,
    "tuned": pl.String,
    "method": pl.String,
    "level": pl.String,
    "setting": pl.String,
    "provenance": pl.String,
    "place": pl.String,
    "per_query": pl.Boolean,
    "pending": pl.Boolean,
}


class Gains(Paged):
    """Which pairs: those of the registry on one board, or two runs of it."""

    benchmark: Word = Field(description="`slug@version`; `slug` alone means the newest version.")
    k: int = Field(10, ge=1, le=1000, description="Cutoff.")
    metric: Literal["NDCG", "Recall", "Comp"] | None = Field(None, description="Only this metric.")
    base: Word | None = Field(None, description="Id of the run that gains are measured from; with `tuned`.")
    tuned: Word | None = Field(None, description="Id of the run that gains; with `base`.")

    @model_validator(mode="after")
    def _both(self) -> Gains:
        if (self.base is None) != (self.tuned is None):
            raise ValueError("base and tuned belong together: give the ids of two runs, or neither for all pairs")
        if self.base is not None and self.base == self.tuned:
            raise ValueError("base and tuned are the same run: it gains nothing over itself")
        return self


def _gains(said: Gains) -> Found:
    with the_site().database.reading() as session:
        version = benchmarks.get(session, said.benchmark)
        stamp = freshness.board_stamp(session, version.id)
    pairs = _asked(said, version) if said.base and said.tuned else _of_board(version, stamp)

    def make(chosen: Format) -> Page:
        del chosen
        parts = [_rows(said, base, tuned) for base, tuned in pairs]
        rows = pl.concat([pl.DataFrame(schema=PAIR | GAIN_TABLE), *parts])
        if said.metric is not None:
            rows = rows.filter(pl.col("metric") == said.metric)
        about = {
            "benchmark": {"slug": version.slug, "version": version.version, "hash": version.content_hash},
            "k": said.k,
        }
        return Page(rows.slice(said.offset, said.limit), rows.height, about)

    return Found(f"{version.name}|{stamp}|{pairs!r}", make, f"equirank-{version.slug}-gains-{said.k}")


def _asked(said: Gains, version: BenchmarkRecord) -> list[tuple[RunRecord, RunRecord]]:
    """The two named runs; what is not public is not there."""
    found = []
    with the_site().database.reading() as session:
        for run_id in (said.base or "", said.tuned or ""):
            run = runs.get_shown(session, run_id)
            if run.benchmark_version_id != version.id:
                raise NotFound(f"run {run_id} is not on {version.name}")
            found.append(run)
    return [(found[0], found[1])]


def _of_board(version: BenchmarkRecord, stamp: str) -> list[tuple[RunRecord, RunRecord]]:
    """Every fine-tuned run of the board with its base, in rank order."""
    board = reading.board(version.id, stamp, metric="NDCG", k=10, average=version.headline)
    found = []
    with the_site().database.reading() as session:
        for base, tuned in fine_tuning_pairs(board).select("base_run", "tuned_run").rows():
            try:
                # Asked again, not taken from a kept frame: a run may have been hidden this moment.
                found.append((runs.get_shown(session, base), runs.get_shown(session, tuned)))
            except NotFound:
                continue
    return found


def _rows(said: Gains, base: RunRecord, tuned: RunRecord) -> pl.DataFrame:
    """The gains of one pair; without intervals where no job has made them yet."""
    site = the_site()
    gains = pair_gains(site, base, tuned, said.k, compute=False)
    with site.database.reading() as session:
        names = [retrievers.get_by_id(session, run.retriever_id).name for run in (base, tuned)]
    said_of_pair = {
        "base_run": base.id,
        "base": names[0],
        "tuned_run": tuned.id,
        "tuned": names[1],
        "method": tuned.method,
        "level": tuned.level,
        "setting": tuned.contract,
        "provenance": tuned.provenance,
        "place": tuned.place,
        "per_query": gains.per_query,
        "pending": gains.pending,
    }
    columns = [pl.lit(value, dtype=PAIR[name]).alias(name) for name, value in said_of_pair.items()]
    table = gains.table.select(*(pl.col(name).cast(dtype) for name, dtype in GAIN_TABLE.items()))
    table = with_sayable_shares(table)
    return table.select(*columns, *GAIN_TABLE)


_DESCRIBED = {
    "share": "1 − gain_new / gain_old. Null where the old gain is below half a point or its interval reaches 0, as the "
    "pages show —: `why_undefined` says why.",
    "p_old_holm": "Holm's adjustment, like the other two over all scopes of the pair and metric.",
    "per_query": "Whether the row rests on scores by query; else it has no intervals and no tests.",
    "pending": "The runs have scores by query, but intervals and tests are not computed. A worker does so for "
    "fine-tuned runs and their bases only; of other pairs, `equirank compare` says them.",
}


def _row() -> dict[str, Any]:
    schema = row_schema({**PAIR, **GAIN_TABLE})
    for name, words in _DESCRIBED.items():
        schema["properties"][name]["description"] = words
    return schema


READS = (
    Read(
        "/gains",
        "Gains of fine-tuned runs over their bases, old and new, with intervals and tests, and the share that is an "
        "artifact of one label a query; fractions",
        Gains,
        _gains,
        {
            "type": "object",
            "required": ["benchmark", "k", "total", "limit", "offset", "items"],
            "properties": {
                "benchmark": {"type": "object"},
                "k": {"type": "integer"},
                "total": {"type": "integer"},
                "limit": {"type": "integer"},
                "offset": {"type": "integer"},
                "items": {"type": "array", "items": _row()},
            },
        },
    ),
)
