"""How long the documents of tools and of skills are: shares by length on a logarithmic axis, medians marked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from dashboard.charts.layout import chart_config, escaped, lay_out, shortened
from dashboard.charts.palette import Ground, colours
from dashboard.charts.pareto_plot import axis_ticks
from dashboard.components.numbers import points, whole

if TYPE_CHECKING:
    import plotly.graph_objects as go

CONFIG = chart_config("documentation-length")
HEIGHT = 340
#: Bins for each doubling of the length, of equal width on the axis.
_PER_DOUBLING = 3


@dataclass(frozen=True, eq=False)
class Lengths:
    """The documents of one benchmark.

    Attributes:
        name: of the benchmark.
        kind: ``tool`` or ``skill``.
        bins: of ``length_bins``.
        median: in tokens; None without documents.
    """

    name: str
    kind: str
    bins: pl.DataFrame
    median: int | None


def length_bins(counted: pl.DataFrame) -> pl.DataFrame:
    """Lengths in bins of a third of a doubling: ``low`` (from) and ``high`` (below) in tokens, ``n`` and ``share``.

    Blank documents have no place on a logarithmic axis: they count in the shares but are in no bin. From the first to
    the last bin that holds anything, without a gap.

    Args:
        counted: ``value`` (tokens) and ``n``.
    """
    total = int(counted["n"].sum())
    held: dict[int, int] = {}
    for value, n in counted.select("value", "n").iter_rows():
        if value > 0:
            place = math.floor(_PER_DOUBLING * math.log2(value) + 1e-9)
            held[place] = held.get(place, 0) + n
    places = range(min(held), max(held) + 1) if held else ()
    edges = {place: 2 ** (place / _PER_DOUBLING) for place in [*places, *(place + 1 for place in places)]}
    rows = [(edges[place], edges[place + 1], held.get(place, 0), held.get(place, 0) / total) for place in places]
    schema = {"low": pl.Float64, "high": pl.Float64, "n": pl.Int64, "share": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def length_curves(shown: Sequence[Lengths], ground: Ground, *, narrow: bool = False) -> go.Figure:
    """Draw it: tools in the accent, skills in grey.

    Args:
        shown: one or two benchmarks, at least one with documents.
        ground: the theme.
        narrow: for a phone.
    """
    import plotly.graph_objects as go

    shades = colours(ground)
    # Not the colours of retriever families: these are no retrievers.
    paints = {"tool": shades.accent, "skill": shades.faint}
    figure = go.Figure()
    lay_out(figure, shades, height=HEIGHT, left=8, right=8, top=64)
    low, high, top = math.inf, 1.0, 0.0
    for lengths in shown:
        if lengths.bins.is_empty():
            continue
        paint = paints[lengths.kind]
        low, high = min(low, lengths.bins["low"][0]), max(high, lengths.bins["high"][-1])
        shares = [100 * share for share in lengths.bins["share"]]
        top = max(top, *shares)
        # A step for every bin, down to nothing at both ends.
        x = [lengths.bins["low"][0], *lengths.bins["low"], lengths.bins["high"][-1], lengths.bins["high"][-1]]
        words = [
            f"{escaped(lengths.name)}: {whole(n)} documents of {whole(math.ceil(a - 1e-9))} to "
            f"{whole(math.ceil(b - 1e-9) - 1)} tokens, {points(share)} %"
            for a, b, n, share in lengths.bins.iter_rows()
        ]
        figure.add_scatter(
            x=x,
            y=[0, *shares, shares[-1], 0],
            mode="lines",
            line={"color": paint, "width": 2, "shape": "hv"},
            fill="tozeroy",
            fillcolor=_thin(paint),
            hovertext=[words[0], *words, words[-1], words[-1]],
            hoverinfo="text",
        )
    medians = [one for one in shown if one.median]
    if low == math.inf:
        low = 1.0
    ends = math.log10(low), math.log10(high)
    for one in medians:
        figure.add_shape(
            type="line", x0=one.median, x1=one.median, y0=0, y1=1, yref="paper",
            line={"color": paints[one.kind], "width": 1.5, "dash": "dot"},
        )  # fmt: skip
    for place, one in enumerate(medians):
        assert one.median is not None
        # A line of its own for each: two medians may be close.
        name = shortened(one.name, 26 if narrow else 60)
        right = math.log10(one.median) > (ends[0] + ends[1]) / 2
        figure.add_annotation(
            x=math.log10(one.median), y=1, yref="paper", yanchor="bottom", yshift=2 + 22 * (len(medians) - 1 - place),
            xanchor="right" if right else "left", showarrow=False,
            text=f"<b>{escaped(name)}</b>: median {whole(one.median)}", font={"color": paints[one.kind], "size": 13},
        )  # fmt: skip
    ticks = axis_ticks(10 ** ends[0], 10 ** ends[1])
    figure.update_xaxes(
        type="log",
        range=[ends[0], ends[1]],
        tickvals=ticks,
        ticktext=[whole(round(tick)) for tick in ticks],
        title={"text": "tokens of a document", "font": {"size": 13, "color": shades.faint}},
    )
    figure.update_yaxes(
        range=[0, 1.06 * top if top else 1],
        title={"text": "% of documents", "font": {"size": 13, "color": shades.faint}},
        nticks=5,
        automargin=True,
    )
    return figure


def _thin(colour: str) -> str:
    """The colour, mostly transparent."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.14)"
