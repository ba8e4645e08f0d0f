"""How often each judge accepts a candidate, by the rank at which it was retrieved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from dashboard.charts.layout import chart_config, escaped, kept_apart, lay_out, told_apart
from dashboard.charts.palette import Ground, colours
from dashboard.components.numbers import points, whole

if TYPE_CHECKING:
    import plotly.graph_objects as go

CONFIG = chart_config("acceptance-by-rank")
HEIGHT = 320
_DASHES = ("solid", "dash", "dot", "dashdot")


def acceptance_lines(acceptance: pl.DataFrame, ground: Ground, *, narrow: bool = False) -> go.Figure:
    """Draw it.

    Args:
        acceptance: of ``pipeline.toolex.statistics.acceptance_by_rank``; rows without a rank are left out.
        ground: the theme.
        narrow: shorter names.
    """
    import plotly.graph_objects as go

    shades = colours(ground)
    ranked = acceptance.filter(pl.col("rank").is_not_null()).sort("judge", "rank")
    judges = ranked["judge"].unique(maintain_order=True).to_list()
    figure = go.Figure()
    lay_out(figure, shades, height=HEIGHT, left=48, right=8)
    last = float(ranked["rank"].max() or 1)  # type: ignore[arg-type]
    top = 100 * float(ranked["rate"].max() or 0.0)  # type: ignore[arg-type]
    high = min(100.0, max(1.12 * top, 5.0))
    ends = []
    # Judges are no retriever families: all in the accent, told apart by their strokes and names.
    for place, judge in enumerate(judges):
        line = ranked.filter(pl.col("judge") == judge)
        rates = [100 * rate for rate in line["rate"]]
        figure.add_scatter(
            x=line["rank"].to_list(),
            y=rates,
            mode="lines+markers",
            line={"color": shades.accent, "width": 2.5, "dash": _DASHES[place % len(_DASHES)]},
            marker={"size": 7},
            hovertext=[
                f"{escaped(judge)}, rank {rank}: {whole(accepted)} of {whole(judged)} accepted, {points(rate)} %"
                for rank, judged, accepted, rate in line.select("rank", "judged", "accepted", "rate").iter_rows()
            ],
            hoverinfo="text",
        )
        ends.append(rates[-1])
    spots = kept_apart(ends, 0.08 * high, 0.02 * high, high)
    for spot, name in zip(spots, told_apart(judges, 16 if narrow else 34), strict=True):
        figure.add_annotation(
            x=last, y=spot, text=escaped(name), xanchor="left", xshift=10, showarrow=False,
            font={"color": shades.accent, "size": 13},
        )  # fmt: skip
    # The room right of the last rank is for the names.
    figure.update_xaxes(
        range=[0.5, last + max(last - 1, 1.0) * (0.62 if narrow else 0.34)],
        tickvals=[1, *range(_step(last), int(last) + 1, _step(last))],
        title={"text": "rank in the fused pool", "font": {"size": 13, "color": shades.faint}},
    )
    figure.update_yaxes(
        range=[-0.02 * high, high],
        title={"text": "% accepted", "font": {"size": 13, "color": shades.faint}},
        nticks=6,
    )
    return figure


def _step(last: float) -> int:
    """Ranks between two ticks: about eight ticks in all."""
    return next(step for step in (2, 5, 10, 20, 50, 100, 1000) if last / step <= 8)
