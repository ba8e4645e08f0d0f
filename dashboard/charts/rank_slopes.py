"""From the old to the new order: one line a retriever, its name and place at both ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from dashboard.charts.layout import chart_config, escaped, lay_out, told_apart
from dashboard.charts.palette import Ground, colours, family_colour

if TYPE_CHECKING:
    import plotly.graph_objects as go

CONFIG = chart_config("rank-changes")
ROW_PIXELS = 25


def rank_slope_plot(rows: pl.DataFrame, ground: Ground, *, narrow: bool = False) -> go.Figure:
    """Draw it.

    Args:
        rows: columns name, family, rank_old, rank_new, rank_change; see ``pipeline.scoring.rank_changes.rank_slopes``.
        ground: the theme.
        narrow: shorter names.
    """
    import plotly.graph_objects as go

    shades = colours(ground)
    figure = go.Figure()
    count = rows.height
    lay_out(figure, shades, height=ROW_PIXELS * count + 40, left=2, right=2, top=8)
    figure.update_layout(margin={"b": 8})
    # Every row has a line of its own on both sides, also where several share a rank.
    left = {name: place for place, name in enumerate(rows.sort("rank_old", "rank_new", "name")["name"])}
    right = {name: place for place, name in enumerate(rows.sort("rank_new", "rank_old", "name")["name"])}
    said = dict(zip(rows["name"], told_apart(rows["name"].to_list(), 15 if narrow else 40), strict=True))
    for row in rows.iter_rows(named=True):
        name, change = row["name"], row["rank_change"]
        moves = change != 0
        paint = family_colour(row["family"] or "", ground) if moves else shades.muted
        y = [-left[name], -right[name]]
        words = f"{name}: {row['rank_old']} → {row['rank_new']}"
        figure.add_scatter(
            x=[0, 1], y=y, mode="lines+markers", line={"color": paint, "width": 2.5 if moves else 1.5},
            marker={"size": 6, "color": paint}, hovertext=[escaped(words)] * 2, hoverinfo="text",
        )  # fmt: skip
        mark = "" if not moves else f"  {'▲' if change > 0 else '▼'} {abs(change)}"
        shown = escaped(said[name])
        ends = (
            (0, f"{shown}  {row['rank_old']}", "right", -8, y[0]),
            (1, f"{row['rank_new']}  {shown}{mark}", "left", 8, y[1]),
        )
        for x, text, anchor, shift, at in ends:
            figure.add_annotation(
                x=x, y=at, text=text, xanchor=anchor, xshift=shift, showarrow=False,
                font={"size": 13, "color": shades.text if moves else shades.faint},
            )  # fmt: skip
    for x, text, anchor in ((0, "one label", "right"), (1, "every valid answer", "left")):
        figure.add_annotation(
            x=x, y=0.95, text=f"<b>{text}</b>", xanchor=anchor, showarrow=False,
            font={"size": 13, "color": shades.faint},
        )  # fmt: skip
    # The room beside the lines is for the names.
    figure.update_xaxes(range=[-2.6, 3.8] if narrow else [-1.4, 2.6], visible=False)
    figure.update_yaxes(range=[-count + 0.4, 1.4], visible=False)
    return figure
