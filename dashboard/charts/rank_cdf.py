"""How high runs rank the label, the best equivalent and a random item: one panel a run, all on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

import polars as pl

from dashboard.charts.layout import axis, chart_config, escaped, kept_apart, lay_out, told_apart
from dashboard.charts.palette import Ground, colours, family_colour
from dashboard.components.numbers import points

if TYPE_CHECKING:
    import plotly.graph_objects as go

CONFIG = chart_config("rank-curves")
PANEL_HEIGHT = 290
_GAP = 6.5
#: A curve over less than this share of a panel's queries is drawn thin and says over how many.
_FEW = 0.5


def names(kind: str) -> dict[str, str]:
    """Target → words, the same in every panel; a random one is of the benchmark's kind, ``tool`` or ``skill``."""
    return {"equivalent": "best equivalent", "truth": "ground truth", "negative": f"random {kind}"}


@dataclass(frozen=True, eq=False)
class Panel:
    """The curves of one run.

    Attributes:
        curves: columns target, rank, fraction, queries, n, as ``RankCurves.curves``.
    """

    name: str
    family: str
    curves: pl.DataFrame


def rank_cdf(panels: Sequence[Panel], k: int, ground: Ground, *, kind: str, narrow: bool = False) -> go.Figure:
    """Draw the panels.

    Args:
        panels: one a run, at least one.
        k: the cutoff that a dotted line marks.
        ground: the theme.
        kind: what is retrieved: ``tool`` or ``skill``.
        narrow: one panel under the other, shorter words.
    """
    from plotly.subplots import make_subplots

    shades, said = colours(ground), names(kind)
    across = 1 if narrow else min(len(panels), 3)
    down = ceil(len(panels) / across)
    figure = make_subplots(
        rows=down,
        cols=across,
        shared_xaxes=False,
        shared_yaxes=True,
        horizontal_spacing=0.03,
        vertical_spacing=0.24 / down if down > 1 else 0.0,
        subplot_titles=[f"<b>{escaped(name)}</b>" for name in told_apart([panel.name for panel in panels], 38)],
    )
    figure.update_annotations(font={"size": 14, "color": shades.text})
    lay_out(figure, shades, height=PANEL_HEIGHT * down + 50, left=44, top=34)
    for place, panel in enumerate(panels):
        row, column = place // across + 1, place % across + 1
        paints = {
            "equivalent": (family_colour(panel.family, ground), "solid", 3.0),
            "truth": (shades.faint, "solid", 2.0),
            "negative": (shades.muted, "dot", 2.0),
        }
        last = int(panel.curves["rank"].max() or 1)  # type: ignore[arg-type]
        if k <= last:
            figure.add_vline(
                x=k, row=row, col=column, line={"color": shades.muted, "width": 1, "dash": "dot"}, layer="below"
            )
        ends = []
        most = int(panel.curves["n"].max() or 0)  # type: ignore[arg-type]
        for target, (paint, dash, width) in paints.items():
            curve = panel.curves.filter(pl.col("target") == target).sort("rank")
            if curve.is_empty():
                continue
            words = said[target]
            shares = (100 * curve["fraction"]).to_list()
            few = curve["n"][0] < _FEW * most
            figure.add_scatter(
                x=curve["rank"].to_list(),
                y=shares,
                mode="lines",
                line={"color": paint, "dash": dash, "width": 1.0 if few else width},
                opacity=0.6 if few else 1.0,
                hovertext=[
                    f"{escaped(panel.name)}, {words}: {points(fraction)} % in the top {rank} ({queries} of {n} queries)"
                    for rank, fraction, queries, n in curve.select("rank", "fraction", "queries", "n").iter_rows()
                ],
                hoverinfo="text",
                row=row,
                col=column,
            )
            of = f", n {curve['n'][0]}" if few else ""
            ends.append((shares[-1], f"{words} {shares[-1]:.0f}{of}", paint))
        spots = kept_apart([end for end, _, _ in ends], _GAP, 2, 98)
        for spot, (_, words, paint) in zip(spots, ends, strict=True):
            figure.add_annotation(
                x=last, y=spot, text=words, font={"color": paint, "size": 13}, showarrow=False, xanchor="left",
                xshift=6, row=row, col=column,
            )  # fmt: skip
        # The room right of the last rank is for the labels.
        room = 0.42 if across < 3 and not narrow else 0.6
        figure.update_xaxes(
            # The axes' first figures, 0 and 1, must not touch.
            range=[1 - 0.03 * (last - 1), last + room * (last - 1)],
            tickvals=sorted({1, 5, 10, 15, 20, k} & set(range(1, last + 1))),
            row=row,
            col=column,
            **axis(shades),
        )
        if row == down or place + across >= len(panels):
            figure.update_xaxes(
                title={"text": "best rank at most", "font": {"size": 13, "color": shades.faint}}, row=row, col=column
            )
    figure.update_yaxes(range=[0, 100], tickvals=[0, 25, 50, 75, 100])
    figure.update_yaxes(title={"text": "% of queries", "font": {"size": 13, "color": shades.faint}}, col=1)
    return figure
