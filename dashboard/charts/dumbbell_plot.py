"""Old → new for every retriever, one line each: the longer the bar, the more one label hid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from dashboard.charts.layout import chart_config, escaped, told_apart
from dashboard.charts.palette import Ground, colours, family_colour
from dashboard.components.numbers import points

if TYPE_CHECKING:
    import plotly.graph_objects as go

ROW_PIXELS = 30
#: Letters of a name beside its line, and over it on a phone.
_LONGEST, _LONGEST_NARROW = 52, 46

CONFIG = chart_config("old-new")


@dataclass(frozen=True)
class Words:
    """What the two ends of a line, and the way between them, are called."""

    old: str = "old"
    new: str = "new"
    change: str = "lift"


def dumbbell_plot(
    rows: pl.DataFrame, figure_name: str, ground: Ground, words: Words = Words(), *, narrow: bool = False
) -> go.Figure:
    """One line a row, the first on top; grey is old, the family's colour is new.

    Args:
        rows: columns name, family, old, new (fractions); rows without both are left out.
        figure_name: ``NDCG@10``, for the axis.
        ground: the theme.
        words: for the axis and on hover, where the two are not old and new.
        narrow: names stand above their lines instead of beside them.
    """
    import plotly.graph_objects as go

    shades = colours(ground)
    both = rows.drop_nulls(["old", "new"])
    names = both["name"].to_list()
    places = list(range(both.height))[::-1]
    old, new = (100 * both["old"]).to_list(), (100 * both["new"]).to_list()
    paints = [family_colour(family or "", ground) for family in both["family"].to_list()]
    figure = go.Figure()
    for x0, x1, y, paint in zip(old, new, places, paints, strict=True):
        figure.add_shape(type="line", x0=x0, x1=x1, y0=y, y1=y, line={"color": paint, "width": 4}, opacity=0.35)
    hover = [
        f"{name}: {words.old} {points(o / 100)}, {words.new} {points(n / 100)}, "
        f"{words.change} {points((n - o) / 100, signed=True)}"
        for name, o, n in zip(_escaped(names), old, new, strict=True)
    ]
    figure.add_scatter(
        x=old, y=places, mode="markers", marker={"color": shades.muted, "size": 10}, hovertext=hover, hoverinfo="text"
    )
    figure.add_scatter(
        x=new,
        y=places,
        mode="markers",
        marker={"color": paints, "size": 12},
        cliponaxis=False,
        hovertext=hover,
        hoverinfo="text",
    )
    figure.add_scatter(
        x=[max(o, n) for o, n in zip(old, new, strict=True)],
        y=places,
        mode="text",
        text=[f"   {points(n / 100)}  {points((n - o) / 100, signed=True)}" for o, n in zip(old, new, strict=True)],
        textposition="middle right",
        cliponaxis=False,
        textfont={"color": shades.faint, "size": 13},
        hoverinfo="skip",
    )
    low, high = (min(old + new), max(old + new)) if old else (0.0, 100.0)
    room = max(high - low, 5.0)
    figure.update_xaxes(
        range=[max(min(0.0, low - 2.0), low - 0.06 * room), high + 0.04 * room],
        title={
            "text": f"{figure_name} × 100:{'<br>' if narrow else ' '}grey {words.old}, colour {words.new}",
            "font": {"size": 13, "color": shades.faint},
        },
        gridcolor=shades.grid,
        zeroline=False,
        tickfont={"color": shades.faint},
        fixedrange=True,
    )
    figure.update_yaxes(
        tickvals=places,
        ticktext=_escaped(told_apart(names, _LONGEST)),
        tickfont={"color": shades.text, "size": 13},
        range=[-0.7, both.height - 0.3],
        showgrid=False,
        zeroline=False,
        automargin=True,
        fixedrange=True,
        showticklabels=not narrow,
    )
    if narrow:
        for name, y in zip(_escaped(told_apart(names, _LONGEST_NARROW)), places, strict=True):
            figure.add_annotation(
                x=0, xref="paper", xanchor="left", y=y + 0.42, yanchor="middle", showarrow=False, text=name,
                font={"color": shades.text, "size": 13}, bgcolor=shades.ground, borderpad=1,
            )  # fmt: skip
    figure.update_layout(
        height=(ROW_PIXELS + (16 if narrow else 0)) * both.height + (90 if narrow else 70),
        margin={"l": 8, "r": 104, "t": 16 if narrow else 8, "b": 62 if narrow else 48},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "Source Sans, sans-serif"},
        showlegend=False,
        hoverlabel={"bgcolor": shades.ground, "font": {"color": shades.text}},
    )
    return figure


def _escaped(names: list[str]) -> list[str]:
    return [escaped(name) for name in names]
