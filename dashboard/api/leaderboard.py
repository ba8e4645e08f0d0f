"""``GET /leaderboard``: a board as the page shows it, as rows, as a report or as the papers' LaTeX table."""

from __future__ import annotations

from typing import Literal

import polars as pl
from pydantic import Field, field_validator, model_validator

from dashboard import reading
from dashboard.api.media import TABULAR, Format, row_schema
from dashboard.api.parameters import Line, Paged, Word
from dashboard.api.resource import File, Found, Page, Read
from dashboard.current_site import the_site
from dashboard.exports import BoardFigure, board_latex, board_report
from pipeline.formats.board_rows import FILTERS, BoardView, Filters, SortKey, narrowed, ordered, ranked_for
from store.access import benchmarks, efficiency, freshness, leaderboard
from store.records import BenchmarkRecord


class Board(Paged):
    """One figure of a benchmark version, with the filters and orders of the page."""

    benchmark: Word = Field(description="`slug@version`; `slug` alone means the newest version.")
    metric: Literal["NDCG", "Recall", "Comp"] = "NDCG"
    k: int = Field(10, ge=1, le=1000, description="Cutoff.")
    average: Literal["macro", "micro", "domain", "source"] | None = Field(
        None, description="What the figure is the mean of; without it, the benchmark's headline, or the domain."
    )
    domain: Word | None = Field(None, description="Name of a domain, or of a source with `average=source`.")
    view: Literal["both", "old", "new", "lift"] = Field("both", description="`old` ranks by the one-label figure.")
    sort: str = Field(
        SortKey.RANK.value,
        json_schema_extra={"enum": [key.value for key in SortKey]},
        description="What the rows are ordered by; unknown values come last.",
    )
    reverse: bool = False
    search: Line = Field("", description="Text in the name, family, method, setting or place.")
    family: list[Word] = Field([], max_length=50)
    size: list[Word] = Field([], max_length=50)
    training: list[Word] = Field([], max_length=50)
    weights: list[Word] = Field([], max_length=50)
    provenance: list[Word] = Field([], max_length=50)
    level: list[Word] = Field([], max_length=50)
    method: list[Word] = Field([], max_length=50)

    @field_validator("sort")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in list(SortKey):
            raise ValueError(f"takes {', '.join(SortKey)}")
        return value

    @model_validator(mode="after")
    def _fits(self) -> Board:
        if self.domain is not None and self.average in {"macro", "micro"}:
            raise ValueError(f"a {self.average} figure belongs to no domain: leave out average or domain")
        if self.domain is None and self.average in {"domain", "source"}:
            raise ValueError(f"average={self.average} needs domain, the name of one")
        return self


def _board(said: Board) -> Found:
    with the_site().database.reading() as session:
        version = benchmarks.get(session, said.benchmark)
        stamp = freshness.board_stamp(session, version.id)

    def make(chosen: Format) -> Page | File:
        figure = BoardFigure(version, said.metric, said.k, _average(said, version), said.domain, BoardView(said.view))
        rows = _rows(said, version, stamp)
        if chosen is Format.LATEX:
            return File(board_latex(figure, rows["run_id"].to_list()))
        if chosen is Format.HTML:
            return File(board_report(figure, rows))
        about = {
            "benchmark": {"slug": version.slug, "version": version.version, "hash": version.content_hash},
            "figure": {"metric": said.metric, "k": said.k, "average": figure.average, "domain": said.domain},
        }
        return Page(rows.slice(said.offset, said.limit), rows.height, about)

    return Found(f"{version.name}|{stamp}", make, f"equirank-{version.slug}-{said.metric}{said.k}")


def _average(said: Board, version: BenchmarkRecord) -> str:
    return said.average or ("domain" if said.domain is not None else version.headline)


def _rows(said: Board, version: BenchmarkRecord, stamp: str) -> pl.DataFrame:
    """All rows that pass the filters, in order; ranks are those of the whole board."""
    # The frame that the page shows, kept for both.
    average = _average(said, version)
    board = reading.board(version.id, stamp, metric=said.metric, k=said.k, average=average, domain=said.domain)
    # Tie groups are there once they are computed; the columns always are.
    missing = [name for name in _TIES if name not in board.columns]
    board = board.with_columns(pl.lit(None, pl.Int64).alias(name) for name in missing)
    filters = Filters({name: getattr(said, name) for name in FILTERS}, said.search)
    shown = narrowed(ranked_for(board, BoardView(said.view)), filters)
    return ordered(shown, SortKey(said.sort), reverse=said.reverse)


_TIES = ("tie_old", "tie_new")
_NUMBERS = dict.fromkeys(
    ("old", "new", "lift", "old_low", "old_high", "new_low", "new_high", *leaderboard.LIFT_COLUMNS, "coverage"),
    pl.Float64(),
)
_COUNTS = dict.fromkeys(("n", "rank", "rank_old", "rank_new", "rank_change", "tie_group", *_TIES), pl.Int64())
_TEXTS = dict.fromkeys(("old_printed", "new_printed", "old_note", "new_note"), pl.String())
_SCHEMA = {
    "type": "object",
    "required": ["benchmark", "figure", "total", "limit", "offset", "items"],
    "properties": {
        "benchmark": {"type": "object"},
        "figure": {"type": "object"},
        "total": {"type": "integer"},
        "limit": {"type": "integer"},
        "offset": {"type": "integer"},
        "items": {
            "type": "array",
            "items": row_schema(
                {**leaderboard.RUN_COLUMNS, **_NUMBERS, **_COUNTS, **_TEXTS, **efficiency.EFFICIENCY_COLUMNS}
            ),
        },
    },
}

READS = (
    Read(
        "/leaderboard",
        "The board of one figure: one row a current published run, figures as fractions",
        Board,
        _board,
        _SCHEMA,
        (*TABULAR, Format.HTML, Format.LATEX),
    ),
)
