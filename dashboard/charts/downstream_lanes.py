"""Pass rates by category: one lane a setting, a dot with its interval, named where the eye starts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from dashboard.charts.layout import chart_config, escaped, lay_out, told_apart
from dashboard.charts.palette import Ground, colours
from dashboard.components.numbers import points, whole

if TYPE_CHECKING:
    import plotly.graph_objects as go

CONFIG = chart_config("downstream-pass-rates")
LANE_PIXELS = 20
#: Letters of a setting's name beside its first dot, and of a category's name.
_LONGEST, _LONGEST_NARROW = 22, 16
_LONGEST_CATEGORY = 26


def downstream_lanes(
    rates: pl.DataFrame, settings: Sequence[str], ground: Ground, *, all_words: str, narrow: bool = False
) -> go.Figure:
    """Draw it; the first setting is grey, the last has the accent.

    Args:
        rates: columns of ``pipeline.downstream.pass_rates.PASS_RATES``.
        settings: from top to bottom within a category.
        ground: the theme.
        all_words: what all tasks together are called.
        narrow: names of categories stand above their lanes instead of beside them.
    """
    import plotly.graph_objects as go

    shades = colours(ground)
    categories = rates["category"].unique(maintain_order=True).to_list()
    titles = told_apart([all_words if name is None else name for name in categories], _LONGEST_CATEGORY)
    names = told_apart(list(settings), _LONGEST_NARROW if narrow else _LONGEST)
    paints = _paints(len(settings), ground)
    block = len(settings) + (1.6 if narrow else 0.9)
    figure = go.Figure()
    for lane, (setting, name, paint) in enumerate(zip(settings, names, paints, strict=True)):
        own = rates.filter(pl.col("setting") == setting)
        at = [-block * categories.index(category) - lane for category in own["category"]]
        rate, low, high = ((100 * own[column]).to_list() for column in ("rate", "low", "high"))
        for y, left, right in zip(at, low, high, strict=True):
            figure.add_shape(
                type="line", x0=left, x1=right, y0=y, y1=y, line={"color": paint, "width": 2}, opacity=0.45,
                layer="below",
            )  # fmt: skip
        figure.add_scatter(
            x=rate,
            y=at,
            mode="markers",
            marker={"color": paint, "size": 11},
            cliponaxis=False,
            hovertext=[
                f"{escaped(setting)}, {escaped(all_words if row['category'] is None else row['category'])}: "
                f"{points(row['rate'])} % [{points(row['low'])}, {points(row['high'])}], "
                f"{whole(row['passed'])} of {whole(row['tasks'])} tasks"
                for row in own.iter_rows(named=True)
            ],
            hoverinfo="text",
        )
        said = [
            f"  <b>{points(x / 100)}</b>" + (f"  {escaped(name)}" if y > -block else "")
            for x, y in zip(rate, at, strict=True)
        ]
        figure.add_scatter(
            x=high, y=at, mode="text", text=said, textposition="middle right", cliponaxis=False,
            textfont={"color": shades.faint if lane == 0 and len(settings) > 1 else paint, "size": 13},
            hoverinfo="skip",
        )  # fmt: skip
    middles = [-block * place - (len(settings) - 1) / 2 for place in range(len(categories))]
    height = round(LANE_PIXELS * block * len(categories)) + 72
    lay_out(figure, shades, height=height, right=140 if narrow else 190, top=4)
    ends = [*rates["low"].to_list(), *rates["high"].to_list()] or [0.0, 1.0]
    figure.update_xaxes(
        range=[10 * math.floor(10 * min(ends)), 10 * math.ceil(10 * max(ends))],
        title={"text": "tasks passed, %", "font": {"size": 13, "color": shades.faint}},
        nticks=6,
    )
    figure.update_yaxes(range=[-block * len(categories) + 0.6, 1.1 if narrow else 0.6], showgrid=False)
    if narrow:
        figure.update_yaxes(showticklabels=False)
        for place, title in enumerate(titles):
            figure.add_annotation(
                x=0, xref="paper", xanchor="left", y=-block * place + 0.85, yanchor="middle", showarrow=False,
                text=escaped(title), font={"size": 13, "color": shades.text},
            )  # fmt: skip
    else:
        figure.update_yaxes(
            tickvals=middles,
            ticktext=[escaped(title) + "  " for title in titles],
            tickfont={"color": shades.text, "size": 13},
            automargin=True,
        )
    return figure


def _paints(count: int, ground: Ground) -> list[str]:
    """Grey, then other colours, then the accent."""
    shades = colours(ground)
    if count == 1:
        return [shades.accent]
    between = [shades.categories[1 + i % (len(shades.categories) - 1)] for i in range(count - 2)]
    return [shades.muted, *between, shades.accent]
