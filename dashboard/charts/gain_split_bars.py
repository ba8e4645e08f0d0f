"""A gain split into what is real and what one label made up: one bar a row, its words above it, all on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dashboard.charts.layout import axis, chart_config, escaped, lay_out
from dashboard.charts.palette import Ground, colours, family_colour

if TYPE_CHECKING:
    import plotly.graph_objects as go

CONFIG = chart_config("gain-split")
ROW_PIXELS = 52
_HALF = 0.17
#: Where the words of a row stand above the middle of its bar, in rows.
_WORDS = 0.42


@dataclass(frozen=True)
class GainBar:
    """One row.

    Attributes:
        name: the average or domain.
        words: what the bar says, beside the name.
        old, new: gains with one label and with every valid answer, fractions; new may be unknown.
        old_ends, new_ends: ends of their intervals, None where there are none.
    """

    name: str
    words: str
    old: float
    new: float | None
    old_ends: tuple[float, float] | None = None
    new_ends: tuple[float, float] | None = None


@dataclass(frozen=True)
class Segment:
    """A part of a bar: ``real``, ``artifact`` (only with one label), ``hidden`` (only with every valid answer)."""

    kind: str
    start: float
    end: float


def segments(old: float, new: float | None) -> list[Segment]:
    """The parts of one bar, from zero outwards; none is empty.

    What both gains share is real; what only the old one has is an artifact of the label; what only the new one has was
    hidden by it. A gain that turns into a loss has no real part.
    """
    if new is None:
        return [Segment("artifact", 0.0, old)] if old else []
    if old * new <= 0:
        found = [Segment("artifact", 0.0, old), Segment("hidden", 0.0, new)]
    elif abs(new) <= abs(old):
        found = [Segment("real", 0.0, new), Segment("artifact", new, old)]
    else:
        found = [Segment("real", 0.0, old), Segment("hidden", old, new)]
    return [segment for segment in found if segment.start != segment.end]


def shared_scale(charts: Sequence[Sequence[GainBar]]) -> tuple[float, float]:
    """One axis for several charts, in points: everything fits, zero is on it."""
    values = [0.0]
    for bars in charts:
        for bar in bars:
            values += [bar.old, *([] if bar.new is None else [bar.new]), *(bar.old_ends or ()), *(bar.new_ends or ())]
    low, high = 100 * min(values), 100 * max(values)
    room = 0.04 * max(high - low, 1.0)
    return (low - room if low < 0 else -0.3 * room), high + room


def gain_split_bars(
    bars: Sequence[GainBar], *, family: str, scale: tuple[float, float], figure_name: str, ground: Ground
) -> go.Figure:
    """Draw it.

    Args:
        bars: rows from top to bottom.
        family: of the retriever, for its colour.
        scale: ends of the axis in points, see ``shared_scale``.
        figure_name: ``NDCG@10``.
        ground: the theme.
    """
    import plotly.graph_objects as go

    shades = colours(ground)
    paint = family_colour(family, ground)
    looks: dict[str, dict[str, Any]] = {
        "real": {"fillcolor": paint, "line": {"width": 0}},
        "artifact": {"fillcolor": shades.muted, "opacity": 0.55, "line": {"width": 0}},
        # An outline in the family's colour: gain that the old label did not see.
        "hidden": {"fillcolor": "rgba(0,0,0,0)", "line": {"color": paint, "width": 2}},
    }
    figure = go.Figure()
    lay_out(figure, shades, height=ROW_PIXELS * len(bars) + 64, left=4, right=4, top=2)
    for place, bar in enumerate(bars):
        y = len(bars) - 1 - place
        for segment in segments(bar.old, bar.new):
            figure.add_shape(
                type="rect", x0=100 * segment.start, x1=100 * segment.end, y0=y - _HALF, y1=y + _HALF,
                layer="between", **looks[segment.kind],
            )  # fmt: skip
        for ends, colour, height in ((bar.old_ends, shades.muted, -0.27), (bar.new_ends, shades.text, 0.0)):
            if ends is not None:
                figure.add_shape(
                    type="line", x0=100 * ends[0], x1=100 * ends[1], y0=y + height, y1=y + height,
                    line={"color": colour, "width": 1.5},
                )  # fmt: skip
        figure.add_annotation(
            x=0, xref="paper", xanchor="left", y=y + _WORDS, yanchor="middle", showarrow=False, align="left",
            text=f"<b>{escaped(bar.name)}</b>  {escaped(bar.words)}", font={"color": shades.text, "size": 13},
            bgcolor=shades.ground, borderpad=1,
        )  # fmt: skip
    # Invisible points give every bar its words on hover.
    reaches = [max(bar.old, bar.new if bar.new is not None else bar.old) for bar in bars]
    figure.add_scatter(
        x=[50 * end for end in reaches],
        y=[len(bars) - 1 - place for place in range(len(bars))],
        mode="markers",
        marker={"size": 26, "opacity": 0},
        hovertext=[f"{escaped(bar.name)}: {escaped(bar.words)}" for bar in bars],
        hoverinfo="text",
    )
    figure.update_xaxes(
        range=list(scale),
        title={"text": f"gain in {figure_name}, points", "font": {"size": 13, "color": shades.faint}},
        **axis(shades) | {"zeroline": True, "zerolinecolor": shades.faint, "zerolinewidth": 1},
    )
    figure.update_yaxes(range=[-0.5, len(bars) - 1 + 0.68], showticklabels=False, showgrid=False)
    return figure
