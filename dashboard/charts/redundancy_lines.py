"""Lift against redundancy: what counting every valid answer adds where a query has few or many of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from dashboard.charts.layout import axis, chart_config, escaped, kept_apart, lay_out, told_apart
from dashboard.charts.palette import Ground, colours, family_colour
from dashboard.components.numbers import points, whole

if TYPE_CHECKING:
    import plotly.graph_objects as go

CONFIG = chart_config("lift-redundancy")
HEIGHT = 360


@dataclass(frozen=True, eq=False)
class LiftLine:
    """One run.

    Attributes:
        groups: of ``pipeline.scoring.redundancy.lift_by_redundancy``.
    """

    name: str
    family: str
    groups: pl.DataFrame


def group_words(above: float | None, up_to: float | None, *, short: bool = False) -> str:
    """Equivalents per sub-query: ``none``, ``over 0 to 1``, ``over 8``; short: ``0``, ``≤1``, ``>8``."""
    if short:
        return f">{above:g}" if up_to is None else "0" if up_to == 0 else f"≤{up_to:g}"
    if above is None:
        return "none" if up_to == 0 else f"up to {up_to:g}"
    if up_to is None:
        return f"over {above:g}"
    return f"over {above:g} to {up_to:g}"


def redundancy_lines(lines: Sequence[LiftLine], figure_name: str, ground: Ground, *, narrow: bool = False) -> go.Figure:
    """Draw it.

    Args:
        lines: at least one; all over the same queries.
        figure_name: ``NDCG@10``.
        ground: the theme.
        narrow: shorter names.
    """
    import plotly.graph_objects as go

    shades = colours(ground)
    figure = go.Figure()
    lay_out(figure, shades, height=HEIGHT, left=48, right=6)
    first = lines[0].groups
    words = [group_words(above, up_to) for above, up_to in first.select("above", "up_to").iter_rows()]
    counts = first["n"].to_list()
    places = list(range(len(words)))
    values = [100 * value for line in lines for value in line.groups["lift"]]
    low, high = min([0.0, *values]), max([1.0, *values])
    room = high - low
    ends = [100 * line.groups["lift"][-1] for line in lines]
    spots = kept_apart(ends, 0.065 * room, low, high + 0.02 * room)
    said = told_apart([line.name for line in lines], 16 if narrow else 44)
    for line, spot, name in zip(lines, spots, said, strict=True):
        paint = family_colour(line.family, ground)
        lifts = line.groups["lift"].to_list()
        figure.add_scatter(
            x=places,
            y=[100 * value for value in lifts],
            mode="lines+markers",
            line={"color": paint, "width": 2.5},
            marker={"size": 7},
            hovertext=[
                f"{escaped(line.name)}, {word} equivalents a need: lift {points(value, signed=True)} "
                f"({whole(n)} queries)"
                for word, value, n in zip(words, lifts, counts, strict=True)
            ],
            hoverinfo="text",
        )
        figure.add_annotation(
            x=places[-1], y=spot, text=escaped(name), xanchor="left", xshift=10,
            showarrow=False, font={"color": paint, "size": 13},
        )  # fmt: skip
    # The room right of the last group is for the names.
    beyond = max(len(words) - 1, 1) * (0.62 if narrow else 0.42)
    figure.update_xaxes(
        range=[-0.15, len(words) - 1 + beyond],
        tickvals=places,
        ticktext=[group_words(above, up_to, short=True) for above, up_to in first.select("above", "up_to").iter_rows()]
        if narrow
        else [f"{word}<br>n = {whole(n)}" for word, n in zip(words, counts, strict=True)],
        tickangle=0,
        title={"text": "equivalents a need has", "font": {"size": 13, "color": shades.faint}},
        **axis(shades),
    )
    figure.update_yaxes(
        range=[low - 0.05 * room, high + 0.08 * room],
        title={"text": f"lift in {figure_name}, points", "font": {"size": 13, "color": shades.faint}},
        **axis(shades),
    )
    figure.update_layout(margin={"b": 66})
    return figure
