"""Changes in per cent from zero when something is taken away: grey by one label, colour by every valid answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from dashboard.charts.layout import chart_config, escaped, lay_out, told_apart
from dashboard.charts.palette import Ground, colours, family_colour
from dashboard.components.numbers import points

if TYPE_CHECKING:
    import plotly.graph_objects as go

CONFIG = chart_config("masked-fields")
ROW_PIXELS = 40
_LONGEST, _LONGEST_NARROW = 34, 16


def change_bars(
    rows: pl.DataFrame, figure_name: str, family: str, ground: Ground, *, narrow: bool = False
) -> go.Figure:
    """Draw it, the first row on top.

    Args:
        rows: ``name``, ``old`` and ``new``: changes as fractions of the whole.
        figure_name: ``NDCG@10``, for the axis.
        family: of the retriever, for the colour.
        ground: the theme.
        narrow: shorter names.
    """
    import plotly.graph_objects as go

    shades = colours(ground)
    paint = family_colour(family, ground)
    places = list(range(rows.height))[::-1]
    figure = go.Figure()
    lay_out(figure, shades, height=ROW_PIXELS * max(rows.height, 1) + 80)
    names = rows["name"].to_list()
    everything = [100 * value for name in ("old", "new") for value in rows[name].drop_nulls()]
    for name, shade, offset, said in (
        ("new", paint, 0.19, "every valid answer"),
        ("old", shades.muted, -0.19, "one label"),
    ):
        values = [None if value is None else 100 * value for value in rows[name]]
        texts = ["" if value is None else f"{points(value / 100, signed=True)} %" for value in values]
        figure.add_bar(
            x=values,
            y=[place + offset for place in places],
            orientation="h",
            width=0.34,
            marker={"color": shade},
            text=texts,
            textposition="outside",
            textfont={"color": shades.text, "size": 12},
            cliponaxis=False,
            hovertext=[f"without {escaped(field)}: {text} by {said}" for field, text in zip(names, texts, strict=True)],
            hoverinfo="text",
        )
    low, high = min([*everything, 0.0]), max([*everything, 0.0])
    room = max(high - low, 1.0) * (0.34 if narrow else 0.16)
    figure.update_xaxes(
        range=[low - (room if low < 0 else 0.02 * room), high + (room if high > 0 else 0.1 * room)],
        title={
            "text": f"change of {figure_name} in %:{'<br>' if narrow else ' '}grey one label, "
            "colour every valid answer",
            "font": {"size": 13, "color": shades.faint},
        },
        nticks=6,
    )
    figure.add_vline(x=0, line={"color": shades.faint, "width": 1})
    figure.update_yaxes(
        tickvals=places,
        ticktext=[f"{escaped(name)} " for name in told_apart(names, _LONGEST_NARROW if narrow else _LONGEST)],
        tickfont={"color": shades.text, "size": 13},
        range=[-0.6, rows.height - 0.4],
        showgrid=False,
        automargin=True,
    )
    figure.update_layout(barmode="overlay", margin_b=64 if narrow else 48)
    return figure
