"""How often each number occurs: bars from top to bottom, long tails gathered, the share written beside each bar."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from dashboard.charts.layout import chart_config, lay_out
from dashboard.charts.palette import Ground, colours
from dashboard.components.numbers import points, whole

if TYPE_CHECKING:
    import plotly.graph_objects as go

CONFIG = chart_config("distribution")
ROW_PIXELS = 26
#: Upper ends of the bins; what lies above the last has a bin of its own.
_ENDS = (0, 1, 2, 3, 4, 5, 10, 20, 50, 100, 1000)


def gathered(counted: pl.DataFrame) -> pl.DataFrame:
    """Values in bins: ``bin`` (``3``, ``6–10``, ``more than 1 000``), ``n`` and ``share``.

    From the first to the last bin that holds anything; bins between them stay, though empty.

    Args:
        counted: ``value`` and ``n``.
    """
    bins: list[tuple[str, int]] = []
    below = -1
    for end in _ENDS:
        inside = counted.filter(pl.col("value") > below, pl.col("value") <= end)
        bins.append((whole(end) if end - below == 1 else f"{whole(below + 1)}–{whole(end)}", int(inside["n"].sum())))
        below = end
    bins.append((f"more than {whole(below)}", int(counted.filter(pl.col("value") > below)["n"].sum())))
    filled = [place for place, (_, n) in enumerate(bins) if n]
    kept = bins[filled[0] : filled[-1] + 1] if filled else []
    total = sum(n for _, n in kept)
    return pl.DataFrame(
        [(name, n, n / total) for name, n in kept],
        schema={"bin": pl.String, "n": pl.Int64, "share": pl.Float64},
        orient="row",
    )


def count_bars(bins: pl.DataFrame, *, counts: str, of: str, ground: Ground) -> go.Figure:
    """Draw it.

    Args:
        bins: of ``gathered``.
        counts: what the numbers count, over the bars: ``combinations of a query``.
        of: what is counted, for the axis: ``queries``.
        ground: the theme.
    """
    import plotly.graph_objects as go

    shades = colours(ground)
    places = list(range(bins.height))[::-1]
    shares = [100 * share for share in bins["share"]]
    figure = go.Figure()
    lay_out(figure, shades, height=ROW_PIXELS * max(bins.height, 1) + 84, top=26, left=8, right=8)
    figure.add_bar(
        x=shares,
        y=places,
        orientation="h",
        width=0.66,
        marker={"color": shades.accent},
        text=[f"{points(share)} %" for share in bins["share"]],
        textposition="outside",
        textfont={"color": shades.text, "size": 13},
        cliponaxis=False,
        hovertext=[f"{name}: {whole(n)} {of}, {points(share)} %" for name, n, share in bins.iter_rows()],
        hoverinfo="text",
    )
    figure.add_annotation(
        x=0, xref="paper", xanchor="left", xshift=-4, y=1, yref="paper", yanchor="bottom", yshift=4, showarrow=False,
        text=counts, font={"color": shades.faint, "size": 13},
    )  # fmt: skip
    # The share of the longest bar is written right of it.
    figure.update_xaxes(
        range=[0, 1.22 * max(shares, default=1.0)],
        title={"text": f"% of {of}", "font": {"size": 13, "color": shades.faint}},
        nticks=5,
    )
    figure.update_yaxes(
        range=[-0.6, bins.height - 0.4],
        tickvals=places,
        ticktext=[f"{name} " for name in bins["bin"]],
        tickfont={"color": shades.text, "size": 13},
        showgrid=False,
        automargin=True,
    )
    return figure
