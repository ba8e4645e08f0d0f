"""Recall@K over K for several methods of one retriever: one panel a label set, both on one scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from dashboard.charts.layout import axis, chart_config, escaped, kept_apart, lay_out
from dashboard.charts.palette import Ground, colours, family_colour
from dashboard.components.numbers import points

if TYPE_CHECKING:
    import plotly.graph_objects as go

CONFIG = chart_config("recall-curves")
PANELS = {"old": "One label", "new": "Every valid answer"}
PANEL_HEIGHT = 320
_DASHES = ("dot", "dash", "dashdot", "longdash")


def recall_curves(curves: pl.DataFrame, own: str, family: str, ground: Ground, *, narrow: bool = False) -> go.Figure:
    """Draw the panels.

    Args:
        curves: ``method`` (as it is to be read), ``view``, ``k``, ``recall`` (fraction).
        own: the method in colour; the others are grey.
        family: of the retriever, for the colour.
        ground: the theme.
        narrow: one panel under the other.
    """
    from plotly.subplots import make_subplots

    shades = colours(ground)
    across = 1 if narrow else 2
    figure = make_subplots(
        rows=3 - across,
        cols=across,
        shared_yaxes=True,
        horizontal_spacing=0.04,
        vertical_spacing=0.18,
        subplot_titles=[f"<b>{title}</b>" for title in PANELS.values()],
    )
    figure.update_annotations(font={"size": 14, "color": shades.text})
    lay_out(figure, shades, height=PANEL_HEIGHT * (3 - across) + 60, left=44, top=34)
    others = [name for name in curves["method"].unique(maintain_order=True) if name != own]
    low = 100 * float(curves["recall"].min() or 0.0)  # type: ignore[arg-type]
    floor = max(0.0, 10 * (low // 10 - 1))
    for place, view in enumerate(PANELS):
        row, column = (place + 1, 1) if narrow else (1, place + 1)
        ends = []
        for name in [*others, own]:
            curve = curves.filter(pl.col("method") == name, pl.col("view") == view).sort("k")
            if curve.is_empty():
                continue
            paint = family_colour(family, ground) if name == own else shades.faint
            dash = "solid" if name == own else _DASHES[others.index(name) % len(_DASHES)]
            shares = (100 * curve["recall"]).to_list()
            figure.add_scatter(
                x=curve["k"].to_list(),
                y=shares,
                mode="lines+markers",
                marker={"size": 5},
                line={"color": paint, "dash": dash, "width": 3 if name == own else 2},
                hovertext=[
                    f"{escaped(name)}: Recall@{k} {points(recall)}" for k, recall in curve.select("k", "recall").rows()
                ],
                hoverinfo="text",
                row=row,
                col=column,
            )
            ends.append((shares[-1], f"{escaped(name)} {points(curve['recall'][-1])}", paint))
        for spot, (_, words, paint) in zip(
            kept_apart([end for end, _, _ in ends], 0.07 * (100 - floor), floor + 2, 99), ends, strict=True
        ):
            figure.add_annotation(
                x=2.0, y=spot, text=words, font={"color": paint, "size": 13}, showarrow=False, xanchor="left", xshift=6,
                row=row, col=column,
            )  # fmt: skip
        figure.update_xaxes(row=row, col=column, **axis(shades))
        figure.update_xaxes(
            type="log",
            range=[-0.06, 3.1 if narrow else 2.75],
            tickvals=[1, 2, 5, 10, 20, 50, 100],
            title={"text": "K (logarithmic)", "font": {"size": 13, "color": shades.faint}},
            row=row,
            col=column,
        )
    figure.update_yaxes(range=[floor, 101])
    figure.update_yaxes(title={"text": "Recall@K in %", "font": {"size": 13, "color": shades.faint}}, col=1)
    return figure
