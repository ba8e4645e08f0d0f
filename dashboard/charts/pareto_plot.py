"""Score against cost: one disc a retriever in its family's colour, and the line of those that nothing beats."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import polars as pl

from dashboard.charts.layout import chart_config
from dashboard.charts.palette import Ground, colours, family_colour
from dashboard.components.numbers import points

if TYPE_CHECKING:
    import plotly.graph_objects as go

HEIGHT = 470
#: Pixels of the drawing that labels are laid out for; the real ones may be a few more.
WIDE, NARROW = 1040, 290
_LETTER, _LINE, _DISC = 7.0, 17.0, 7.0
#: Costs further apart than this are drawn on a logarithmic axis.
_LOG_FROM = 12.0
#: Points that the axis of scores spans at least, so that a small difference looks small.
_LEAST_SCORES = 10.0

CONFIG = chart_config("score-cost")

#: Places of a label around its disc, the best first: Plotly's word, and where the label's box begins, as shares of
#: its own size, and in which direction the disc pushes it away.
_SPOTS = (
    ("middle right", 0.0, -0.5, 1, 0),
    ("middle left", -1.0, -0.5, -1, 0),
    ("top center", -0.5, 0.0, 0, 1),
    ("bottom center", -0.5, -1.0, 0, -1),
    ("top right", 0.0, 0.0, 1, 1),
    ("bottom right", 0.0, -1.0, 1, -1),
    ("top left", -1.0, 0.0, -1, 1),
    ("bottom left", -1.0, -1.0, -1, -1),
)


#: The line of the best leaves a disc to the right and downwards.
_ABOVE = (*(spot for spot in _SPOTS if spot[0].startswith("top")), _SPOTS[1])


def frontier(costs: Sequence[float], scores: Sequence[float]) -> list[bool]:
    """Which points nothing beats: no other is at least as cheap and as good, and better in one of the two."""
    return [
        not any(
            c <= cost and s >= score and (c < cost or s > score) for c, s in zip(costs, scores, strict=True)
        )
        for cost, score in zip(costs, scores, strict=True)
    ]  # fmt: skip


def label_spots(
    places: Sequence[tuple[float, float]], texts: Sequence[str], first: Sequence[bool], width: float, height: float
) -> list[str | None]:
    """Where each label goes so that none covers another or a disc; None where there is no room.

    Args:
        places: of the discs in pixels, from the lower left.
        texts: the labels.
        first: labels that are placed before the others, above their discs, and even when there is no room.
        width, height: of the drawing, in pixels.
    """
    taken = [(x - _DISC, y - _DISC, x + _DISC, y + _DISC) for x, y in places]
    spots: list[str | None] = [None] * len(places)
    for i in sorted(range(len(places)), key=lambda i: (not first[i], -places[i][1], places[i][0])):
        wide = _LETTER * len(texts[i])
        x, y = places[i]
        for word, left, low, right, up in _ABOVE if first[i] else _SPOTS:
            x0, y0 = x + left * wide + right * _DISC, y + low * _LINE + up * _DISC
            box = (x0, y0, x0 + wide, y0 + _LINE)
            inside = box[0] >= 0 and box[2] <= width and box[1] >= 0 and box[3] <= height
            if inside and not any(_overlap(box, other) for j, other in enumerate(taken) if j != i):
                spots[i] = word
                taken.append(box)
                break
        else:
            if first[i]:
                spots[i] = "top right" if x + wide <= width else "top left"
    return spots


def _overlap(one: tuple[float, ...], two: tuple[float, ...]) -> bool:
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]


def axis_ticks(low: float, high: float) -> list[float]:
    """Round values (1, 2, 5 times a power of ten) from low to high for a logarithmic axis, about six at most."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [step * 10.0**exponent for exponent in exponents for step in steps]
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) <= 6:
            break
    return inside or [low, high]


def pareto_plot(
    rows: pl.DataFrame, *, score_name: str, cost_name: str, write: Callable[[float], str], ground: Ground, narrow: bool
) -> go.Figure:
    """Draw it.

    Args:
        rows: columns name, family, cost (0 or more), score (fraction); all known.
        score_name: ``NDCG@10, every valid answer``, for the axis.
        cost_name: for the axis, with the unit.
        write: a cost as text.
        ground: the theme.
        narrow: whether it is drawn for a phone.
    """
    import plotly.graph_objects as go

    shades = colours(ground)
    names = [_escaped(name) for name in rows["name"]]
    cost, score = rows["cost"].to_list(), (100 * rows["score"]).to_list()
    best = frontier(cost, score)
    known = [value for value in cost if value > 0]
    log = bool(known) and len(known) == len(cost) and max(known) / min(known) > _LOG_FROM
    low, high = _range([math.log10(c) for c in cost] if log else cost, 0.06)
    bottom, top = _range(score, 0.08, least=_LEAST_SCORES)
    if not log:
        low = max(0.0, low)
    bottom = max(0.0, bottom)
    width, height = (NARROW if narrow else WIDE), HEIGHT - 80
    places = [
        (((math.log10(c) if log else c) - low) / (high - low) * width, (s - bottom) / (top - bottom) * height)
        for c, s in zip(cost, score, strict=True)
    ]
    spots = label_spots(places, rows["name"].to_list(), best, width, height)
    paints = [family_colour(family or "", ground) for family in rows["family"]]
    labels = [
        "" if spot is None else f"<b>{name}</b>" if kept else name
        for name, spot, kept in zip(names, spots, best, strict=True)
    ]
    figure = go.Figure()
    line = sorted(((c, s) for c, s, kept in zip(cost, score, best, strict=True) if kept))
    if line:
        # To the right edge: more cost buys nothing after the best.
        line.append((10**high if log else high, line[-1][1]))
        figure.add_scatter(
            x=[c for c, _ in line], y=[s for _, s in line], mode="lines",
            line={"shape": "hv", "color": shades.muted, "width": 1.5, "dash": "dot"}, hoverinfo="skip",
        )  # fmt: skip
    hover = [
        f"{name}: {points(s / 100)} at {write(c)}" + (" (nothing beats it)" if kept else "")
        for name, s, c, kept in zip(names, score, cost, best, strict=True)
    ]
    figure.add_scatter(
        x=cost,
        y=score,
        mode="markers+text",
        marker={
            "color": paints,
            "size": 12,
            "opacity": [1.0 if kept else 0.75 for kept in best],
            "line": {"color": shades.ground, "width": 1},
        },
        text=labels,
        textposition=[spot or "middle right" for spot in spots],
        textfont={"color": paints, "size": 13},
        cliponaxis=False,
        hovertext=hover,
        hoverinfo="text",
    )  # fmt: skip
    horizontal: dict[str, object] = {"type": "log" if log else "linear", "range": [low, high]}
    if log:
        ticks = axis_ticks(10**low, 10**high)
        horizontal |= {"tickvals": ticks, "ticktext": [write(tick) for tick in ticks]}
    figure.update_xaxes(
        **horizontal,
        title={"text": cost_name, "font": {"size": 13, "color": shades.faint}},
        gridcolor=shades.grid,
        zeroline=False,
        tickfont={"color": shades.faint},
        fixedrange=True,
    )
    figure.update_yaxes(
        range=[bottom, top],
        title={"text": f"{score_name} × 100", "font": {"size": 13, "color": shades.faint}},
        gridcolor=shades.grid,
        zeroline=False,
        tickfont={"color": shades.faint},
        fixedrange=True,
    )
    figure.update_layout(
        height=HEIGHT,
        margin={"l": 56, "r": 24, "t": 12, "b": 52},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "Source Sans, sans-serif"},
        showlegend=False,
        hoverlabel={"bgcolor": shades.ground, "font": {"color": shades.text}},
    )
    return figure


def _range(values: Sequence[float], margin: float, *, least: float = 0.0) -> tuple[float, float]:
    """Ends of an axis with some room beyond the points, at least ``least`` apart."""
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    if high - low < least:
        low, high = (low + high - least) / 2, (low + high + least) / 2
    room = (high - low) or max(abs(high), 1.0) * 0.5
    return low - margin * room, high + margin * room


def _escaped(name: str) -> str:
    """Plotly reads a few HTML tags in texts; names are shown as they are written."""
    return name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
