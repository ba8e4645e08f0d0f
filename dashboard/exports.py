"""What leaves the site as a file: a board as a self-contained HTML report or as the papers' LaTeX table."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from dashboard.components.board import BoardView
from dashboard.components.board_table import COLUMNS, as_text, visible_columns
from dashboard.components.cost import COST_COLUMNS
from dashboard.components.numbers import points, whole
from dashboard.components.paired import groups_of, metrics_of, paired_cells, paired_latex
from dashboard.current_site import the_site
from pipeline.formats.html_report import Report, html_report
from pipeline.scoring.version import SCORER_VERSION
from store.access import leaderboard
from store.records import BenchmarkRecord

_USUAL = tuple(c.key for c in COLUMNS if c.key not in COST_COLUMNS and c.key not in {"n", "scorer", "level"})


@dataclass(frozen=True)
class BoardFigure:
    """Which figure of which board.

    Attributes:
        average: ``macro``, ``micro``, ``domain`` or ``source``.
        domain: with the last two.
    """

    benchmark: BenchmarkRecord
    metric: str
    k: int
    average: str
    domain: str | None = None
    view: BoardView = BoardView.BOTH

    @property
    def sentence(self) -> str:
        """What the figure is, in words."""
        over = {"macro": "mean of the domain means", "micro": "mean over all queries"}.get(
            self.average, f"mean over the queries of {self.domain}"
        )
        return f"{self.metric}@{self.k} × 100, {over}"


def board_report(figure: BoardFigure, rows: pl.DataFrame, address: str | None = None) -> str:
    """The rows of a board as a self-contained HTML file.

    Args:
        figure: of the board.
        rows: as the page shows them: filtered, ordered, with costs.
        address: the view's permalink; None names the board's.
    """
    version = figure.benchmark
    notes = ["Old: scored against the one annotated answer. New: the best over all valid answers. Lift: new − old."]
    if "reported" in rows["provenance"]:
        places = ", ".join(rows.filter(pl.col("provenance") == "reported")["place"].unique().sort().to_list())
        notes.append(f"Figures of {places} are as printed there; no ranking and no interval lies behind them.")
    if "sub-query" in rows["level"]:
        notes.append(
            "† is asked one need at a time, with needs written from the labels: a ceiling, ranked among themselves."
        )
    if rows.filter(pl.col("flags").list.contains("partial")).height:
        notes.append("Partial runs answer fewer than half of the queries and are not ranked.")
    table = pl.DataFrame()
    if rows.height:
        table = as_text(rows, visible_columns(_USUAL, figure.view, rows, narrow=False))
    scorers = sorted(set(rows["scorer_version"].drop_nulls().to_list())) or [SCORER_VERSION]
    newest = rows["published_at"].drop_nulls().max()
    return html_report(
        Report(
            title=f"{version.title}: retrievers scored against every valid answer",
            lead=_lead(rows),
            caption=f"{figure.sentence}; {whole(rows.height)} {'row' if rows.height == 1 else 'rows'}",
            table=table,
            notes=notes,
            facts=[
                ("Benchmark", version.name),
                ("Benchmark hash", version.content_hash or "figures only"),
                ("Licence", version.licence),
                ("Scorer version", ", ".join(scorers)),
                ("Newest run", "" if newest is None else str(newest)[:10]),
                ("This view", address or f"{the_site().settings.public_url}/?lb_benchmark={version.name}"),
            ],
        )
    )


def _lead(rows: pl.DataFrame) -> str:
    both = rows.filter(pl.col("lift").is_not_null(), pl.col("level") == "query")
    if both.is_empty():
        return ""
    lifts = sorted(both["lift"].to_list())
    if both.height == 1:
        return f"Counting every valid answer lifts the one retriever here by {points(lifts[0])} points."
    return (
        f"Counting every valid answer lifts these {whole(both.height)} runs by "
        f"{points(lifts[0])} to {points(lifts[-1])} points (mean {points(sum(lifts) / len(lifts))})."
    )


def board_latex(figure: BoardFigure) -> str:
    """The papers' old/new table of the benchmark at the figure's K: query level, by domain where there are several."""
    with the_site().database.reading() as session:
        wide = leaderboard.paired_table(session, figure.benchmark.id, k=figure.k)
    wide = wide.filter(pl.col("level") == "query") if "query" in wide["level"] else wide
    groups = groups_of(wide)
    domains = [group for group in groups if group.scope.startswith("domain:")]
    chosen = domains if len(domains) > 1 and figure.domain is None else groups
    if figure.domain is not None:
        chosen = [group for group in groups if group.scope == f"domain:{figure.domain}"]
    return paired_latex(wide, paired_cells(wide, metrics_of(wide), figure.k, chosen))
