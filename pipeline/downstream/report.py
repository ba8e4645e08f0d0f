"""A study as it is told: rates, differences, what the ToolEX paper prints, and how far the figures carry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from pipeline.downstream.outcomes import Outcomes
from pipeline.downstream.pass_rates import FEWEST_TASKS, paired_differences, pass_rates
from pipeline.formats.figures import MINUS, NONE, points
from pipeline.published import PublishedFigure, figures

#: All tasks together, where a category is named.
ALL = "all tasks"
CAVEAT = (
    "Passing more often than with the annotated set does not make a retriever better than an oracle: the annotated set "
    "is one valid answer, not the easiest one to use, and the agent, its judge and the tools behind the documents move "
    "these rates as well. What a study like this can show is whether the equivalents work in practice."
)
#: Below differences.
NO_INTERVAL = f"{NONE} for an interval: fewer than {FEWEST_TASKS} shared tasks, or all of them differ alike"
_PUBLISHED = "toolex-downstream-"


@dataclass(frozen=True, eq=False)
class DownstreamReport:
    """The figures of one study.

    Attributes:
        rates: columns of ``PASS_RATES``.
        differences: columns of ``DIFFERENCES``.
        notes: of the results: what is missing, and so counts in no difference.
    """

    settings: tuple[str, ...]
    rates: pl.DataFrame
    differences: pl.DataFrame
    notes: tuple[str, ...]

    @property
    def categories(self) -> list[str]:
        """In order; all tasks together are none."""
        return self.rates["category"].drop_nulls().unique(maintain_order=True).to_list()


def downstream_report(outcomes: Outcomes) -> DownstreamReport:
    """Compute the figures of a study."""
    return DownstreamReport(outcomes.settings, pass_rates(outcomes), paired_differences(outcomes), outcomes.notes)


def reported_figures() -> tuple[PublishedFigure, ...]:
    """What the ToolEX paper prints of its own study (§4.4), as printed."""
    return tuple(figure for figure in figures() if figure.key.startswith(_PUBLISHED))


def rate_table(report: DownstreamReport) -> pl.DataFrame:
    """Rates as people read them: one row a category, one column a setting, × 100 with the 95 % interval."""
    shown: dict[str | None, dict[str, str]] = {None: {}, **{name: {} for name in report.categories}}
    for row in report.rates.iter_rows(named=True):
        ends = f"[{points(row['low'])}, {points(row['high'])}]"
        shown[row["category"]][row["setting"]] = f"{points(row['rate'])} {ends}, n {row['tasks']:,}"
    return pl.DataFrame(
        [
            {"category": ALL if category is None else category}
            | {f"{setting}, %": cells.get(setting, NONE) for setting in report.settings}
            for category, cells in shown.items()
        ],
        schema=dict.fromkeys(("category", *(f"{setting}, %" for setting in report.settings)), pl.String),
    )


def difference_table(report: DownstreamReport) -> pl.DataFrame:
    """Differences as people read them, in points with the 95 % interval."""
    rows = [
        {
            "difference of": f"{row['setting']} {MINUS} {row['baseline']}",
            "category": ALL if row["category"] is None else row["category"],
            "tasks": f"{row['tasks']:,}",
            "points": points(row["difference"], signed=True),
            "95 % interval": _interval(row["low"], row["high"]),
            "gained": f"{row['gained']:,}",
            "lost": f"{row['lost']:,}",
            "p": p_text(row["p"]),
            "p (Holm)": p_text(row["p_holm"]),
        }
        for row in report.differences.iter_rows(named=True)
    ]
    names = ("difference of", "category", "tasks", "points", "95 % interval", "gained", "lost", "p", "p (Holm)")
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String))


def _interval(low: float | None, high: float | None) -> str:
    return NONE if low is None or high is None else f"[{points(low, signed=True)}, {points(high, signed=True)}]"


def p_text(p: float) -> str:
    """A p value with three decimals; small ones as a bound."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def reported_table(reported: Sequence[PublishedFigure]) -> pl.DataFrame:
    """The paper's figures with their place and our remarks."""
    rows = [(figure.subject, f"{figure.printed} {figure.unit}", figure.place, figure.note) for figure in reported]
    return pl.DataFrame(rows, schema=dict.fromkeys(("figure", "printed", "place", "remark"), pl.String), orient="row")


def report_json(report: DownstreamReport) -> dict[str, Any]:
    """The documented shape of ``downstream report --format json``, without the study: fractions in full precision."""
    return {
        "settings": list(report.settings),
        "rates": report.rates.to_dicts(),
        "differences": report.differences.to_dicts(),
        "notes": list(report.notes),
        "reported": [
            {
                "figure": figure.subject,
                "printed": figure.printed,
                "unit": figure.unit,
                "place": figure.place,
                "note": figure.note,
            }
            for figure in reported_figures()
        ],
        "caveat": CAVEAT,
    }
