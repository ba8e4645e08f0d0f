"""What the first K results of each run hold: both, only the label, only an equivalent, or neither."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from dashboard.charts.layout import chart_config, escaped, kept_apart, lay_out, told_apart
from dashboard.charts.palette import Ground, colours
from dashboard.components.numbers import points

if TYPE_CHECKING:
    import plotly.graph_objects as go

CONFIG = chart_config("four-way-split")
ROW_PIXELS = 44

#: Found → words over the first bar.
WORDS = {
    "both": "both",
    "only_truth": "only the<br>label",
    "only_equivalent": "only an<br>equivalent",
    "neither": "neither",
}
_WRITTEN_FROM = 4.5


def four_way_bars(splits: pl.DataFrame, ground: Ground, *, narrow: bool = False) -> go.Figure:
    """Draw one bar a run.

    Args:
        splits: columns name, found (of ``equivalent_ranks.Found``), queries, n, fraction; four rows a run, the runs
            in drawing order.
        ground: the theme.
        narrow: names over their bars instead of left of them.
    """
    import plotly.graph_objects as go

    shades = colours(ground)
    names = splits["name"].unique(maintain_order=True).to_list()
    places = list(range(len(names)))[::-1]
    paints = {
        "both": (shades.line, shades.text),
        "only_truth": (shades.muted, shades.ground if ground is Ground.DARK else shades.text),
        "only_equivalent": (shades.accent, shades.ground),
        "neither": (shades.grid, shades.text),
    }
    figure = go.Figure()
    middles, start = [], 0.0
    for found, (paint, ink) in paints.items():
        rows = splits.filter(pl.col("found") == found)
        shares = [100 * (fraction or 0.0) for fraction in rows["fraction"]]
        figure.add_bar(
            x=shares,
            y=places,
            orientation="h",
            marker={"color": paint, "line": {"color": shades.ground, "width": 1}},
            width=0.5 if narrow else 0.68,
            text=[points(share / 100) if share >= _WRITTEN_FROM * (2 if narrow else 1) else "" for share in shares],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            # Never smaller to fit: what does not fit is left out above.
            constraintext="none",
            textfont={"color": ink, "size": 14},
            hovertext=[
                f"{escaped(name)}: {WORDS[found].replace('<br>', ' ')} {points(share / 100)} % ({queries} of {n})"
                for name, share, queries, n in zip(names, shares, rows["queries"], rows["n"], strict=True)
            ],
            hoverinfo="text",
        )
        middles.append(start + shares[0] / 2)
        start += shares[0]
    gap = 24.0 if narrow else 9.0
    spots = kept_apart(middles, gap, 4 if narrow else 2, 93 if narrow else 97)
    top = len(names) - 0.45
    for spot, (found, words) in zip(spots, WORDS.items(), strict=True):
        accent = found == "only_equivalent"
        figure.add_annotation(
            x=spot, y=top, text=f"<b>{words}</b>" if accent else words, showarrow=False, yanchor="bottom",
            font={"size": 13, "color": shades.accent if accent else shades.faint},
        )  # fmt: skip
    lay_out(figure, shades, height=(ROW_PIXELS + 12 * narrow) * len(names) + 120, top=52, left=8, right=18)
    figure.update_layout(barmode="stack", bargap=0.2)
    figure.update_xaxes(
        range=[0, 100],
        tickvals=[0, 25, 50, 75, 100],
        title={"text": "% of queries with an equivalent", "font": {"size": 13, "color": shades.faint}},
    )
    figure.update_yaxes(range=[-0.6, len(names) - 0.4], showgrid=False)
    if narrow:
        figure.update_yaxes(showticklabels=False)
        for name, place in zip(told_apart(names, 40), places, strict=True):
            if len(names) > 1:
                figure.add_annotation(
                    x=0, y=place - 0.25, text=escaped(name), showarrow=False, xanchor="left",
                    yanchor="top", font={"size": 13, "color": shades.text},
                )  # fmt: skip
    else:
        figure.update_yaxes(
            tickvals=places,
            ticktext=[escaped(name) + "  " for name in told_apart(names, 34)],
            tickfont={"color": shades.text, "size": 13},
            automargin=True,
        )
    return figure
