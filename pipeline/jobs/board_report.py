"""A board as a file: a self-contained HTML report of its rows, or the papers' LaTeX table."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import polars as pl

from pipeline.formats.board_rows import Filters
from pipeline.formats.figures import NONE, decimals_of, figure_text, points, significance_note, whole
from pipeline.formats.flag_words import flag_words
from pipeline.formats.html_report import Report, html_report
from pipeline.formats.method_labels import method_title, method_words
from pipeline.formats.paired_table import groups_of, metrics_of, paired_cells, paired_latex
from pipeline.jobs.public_address import public_address
from pipeline.jobs.site import Site
from store.access import leaderboard
from store.errors import NotFound
from store.records import BenchmarkRecord

VIEWS = ("both", "old", "new", "lift")
#: Titles of columns that belong to some views only; the others are in all.
_ONLY = {
    "Old": {"both", "old", "lift"},
    "New": {"both", "new", "lift"},
    "Lift": {"both", "lift"},
    "Δ rank": {"both", "lift"},
    "Old, 95 %": {"old", "both", "lift"},
    "New, 95 %": {"new", "both", "lift"},
    "Lift, 95 %": {"lift"},
    "Random lift": {"both", "lift"},
}
_ALWAYS = ("#", "Retriever")


@dataclass(frozen=True)
class BoardFigure:
    """Which figure of which board.

    Attributes:
        average: ``macro``, ``micro``, ``domain`` or ``source``.
        domain: with the last two.
        view: one of ``VIEWS``.
    """

    benchmark: BenchmarkRecord
    metric: str
    k: int
    average: str
    domain: str | None = None
    view: str = "both"

    @property
    def sentence(self) -> str:
        """What the figure is, in words."""
        over = {"macro": "mean of the domain means", "micro": "mean over all queries"}.get(
            self.average, f"mean over the queries of {self.domain}"
        )
        return f"{self.metric}@{self.k} × 100, {over}"


def board_report(site: Site, figure: BoardFigure, rows: pl.DataFrame, address: str | None = None) -> str:
    """The rows of a board as a self-contained HTML file.

    Args:
        site: whose address the report names.
        figure: of the board.
        rows: of ``read_board``, filtered and ordered as wanted, ranks in ``rank``.
        address: the view's permalink; None names the board's.
    """
    version = figure.benchmark
    notes = ["Old: scored against the one annotated answer. New: the best over all valid answers. Lift: new − old."]
    if "reported" in rows["provenance"]:
        places = ", ".join(rows.filter(pl.col("provenance") == "reported")["place"].unique().sort().to_list())
        notes.append(f"Figures of {places} are as printed there; no ranking and no interval lies behind them.")
    marked = significance_note([*rows["old_printed"], *rows["new_printed"]])
    if marked:
        notes.append(marked)
    if "sub-query" in rows["level"]:
        notes.append(
            "‡ is asked one need at a time, with needs written from the labels: a ceiling, ranked among themselves."
        )
    if rows.filter(pl.col("flags").list.contains("partial")).height:
        notes.append("Partial runs answer fewer than half of the queries and are not ranked.")
    table = report_table(rows, figure.view)
    if "Random lift" in table.columns:
        notes.append("Random lift: what as many random tools in the place of the valid ones would give.")
    if "Tie group" in table.columns:
        notes.append("Runs of a tie group cannot be told from its leader by a paired test (5 %, Holm).")
    scorers = sorted(set(rows["scorer_version"].drop_nulls().to_list()))
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
                ("Scorer version", ", ".join(scorers) or "none: figures as printed"),
                ("Newest run", "" if newest is None else str(newest)[:10]),
                ("This view", address or f"{public_address(site.settings)}/?lb_benchmark={version.name}"),
            ],
        )
    )


def board_query(figure: BoardFigure, filters: Filters) -> str:
    """The page of the board as the end of an address, with the filters and what differs from the page's usual view."""
    said: dict[str, Any] = {"lb_benchmark": figure.benchmark.name}
    usual = {"view": "both", "metric": "NDCG", "k": "@10"}
    shown = {"view": figure.view, "metric": figure.metric, "k": f"@{figure.k}"}
    said |= {f"lb_{name}": word for name, word in shown.items() if word != usual[name]}
    if filters.search.strip():
        said["lb_search"] = filters.search.strip()
    for column, words in filters.chosen.items():
        said[f"lb_{column}"] = [method_title(word) for word in words] if column == "method" else list(words)
    return f"/?{urlencode(said, doseq=True, safe='@')}"


def report_table(rows: pl.DataFrame, view: str = "both") -> pl.DataFrame:
    """What a report shows of the rows, as texts: the view's columns that say something in any row."""
    shown = pl.DataFrame([_row(row) for row in rows.iter_rows(named=True)], infer_schema_length=None)
    kept = [
        name
        for name in shown.columns
        if view in _ONLY.get(name, set(VIEWS)) and (name in _ALWAYS or not shown[name].is_in([NONE, ""]).all())
    ]
    # A column of ones and the same way of asking in every row say nothing.
    if shown.height and "Method" in kept and shown["Method"].n_unique() == 1:
        kept.remove("Method")
    return shown.select(kept)


def _row(row: dict[str, Any]) -> dict[str, str]:
    change = row["rank_change"]
    decimals = decimals_of(row["old_printed"], row["new_printed"])
    reported = row["provenance"] == "reported"
    return {
        "#": NONE if row["rank"] is None else whole(row["rank"]),
        "Δ rank": NONE if change is None else "=" if change == 0 else f"{'▲' if change > 0 else '▼'} {abs(change)}",
        "Retriever": row["retriever"] + (" ‡" if row["level"] == "sub-query" else ""),
        "Method": method_words(row["method"], row["contract"] or ""),
        "Old": figure_text(row["old"], row["old_printed"]) + ("*" if row["old_note"] else ""),
        "Old, 95 %": _interval(row, "old"),
        "New": figure_text(row["new"], row["new_printed"]) + ("*" if row["new_note"] else ""),
        "New, 95 %": _interval(row, "new"),
        "Lift": points(row["lift"], decimals, signed=True),
        "Lift, 95 %": _interval(row, "lift"),
        "Random lift": points(row["control"], signed=True),
        "Tie group": NONE if row.get("tie_group") is None else str(row["tie_group"]),
        "Queries": whole(row["n"]),
        "Source": row["place"] if reported and row["place"] else row["provenance"],
        "Date": NONE if reported or row["published_at"] is None else row["published_at"].date().isoformat(),
        "Remarks": "; ".join([*flag_words(row["flags"] or []), *_remarks(row)]),
    }


def _remarks(row: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(note for note in (row["old_note"], row["new_note"]) if note))


def _interval(row: dict[str, Any], name: str) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if low is None or high is None:
        return NONE
    signed = name == "lift"
    return f"{points(low, signed=signed)} to {points(high, signed=signed)}"


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


def board_latex(site: Site, figure: BoardFigure, only: Collection[str] | None = None) -> str:
    """The papers' old/new table of the benchmark at the figure's K: query level, by domain where there are several.

    Args:
        site: where the board is.
        figure: of the board.
        only: ids of the runs to show; None shows all.

    Raises:
        NotFound: nothing has a figure at this K, or for this domain.
    """
    with site.database.reading() as session:
        wide = leaderboard.paired_table(session, figure.benchmark.id, k=figure.k)
    if only is not None:
        wide = wide.filter(pl.col("run_id").is_in(list(only)))
    wide = wide.filter(pl.col("level") == "query") if "query" in wide["level"] else wide
    groups = groups_of(wide)
    domains = [group for group in groups if group.scope.startswith("domain:")]
    chosen = domains if len(domains) > 1 and figure.domain is None else groups
    if figure.domain is not None:
        chosen = [group for group in groups if group.scope == f"domain:{figure.domain}"]
    metrics = metrics_of(wide)
    if not chosen or not metrics:
        where = "" if figure.domain is None else f" for {figure.domain!r}"
        raise NotFound(f"{figure.benchmark.name} has no figures at K = {figure.k}{where}")
    return paired_latex(wide, paired_cells(wide, metrics, figure.k, chosen))
