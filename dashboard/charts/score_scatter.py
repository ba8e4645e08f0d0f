"""Two runs query by query: the score of one against the other; a disc's area is the number of queries there."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from dashboard.charts.layout import axis, chart_config, escaped, lay_out, shortened
from dashboard.charts.palette import Ground, colours, family_colour
from dashboard.components.numbers import whole

if TYPE_CHECKING:
    import plotly.graph_objects as go

CONFIG = chart_config("query-scores")
HEIGHT = 440
#: Discs are gathered on a grid this fine, in points.
_GRID = 2.0
_SMALLEST, _LARGEST = 4.0, 34.0


def gathered(changes: pl.DataFrame, view: str) -> pl.DataFrame:
    """Queries at the same place: ``x`` and ``y`` in points, ``queries``, ``outcome`` (of the tuned run).

    Args:
        changes: of ``query_changes``.
        view: ``old`` or ``new``.
    """
    grid = [(100 * pl.col(f"{name}_{view}") / _GRID).round() * _GRID + 0.0 for name in ("base", "tuned")]
    outcome = pl.col(f"outcome_{view}").alias("outcome")
    return (
        changes.select(grid[0].alias("x"), grid[1].alias("y"), outcome)
        .group_by("x", "y", "outcome")
        .agg(pl.len().alias("queries"))
        .sort("queries", "x", "y", descending=[True, False, False])
    )


def score_scatter(
    changes: pl.DataFrame, view: str, *, base: str, tuned: str, family: str, figure_name: str, ground: Ground
) -> go.Figure:
    """Draw it.

    Args:
        changes: of ``query_changes``.
        view: ``old`` or ``new``.
        base: name of the first run, on the horizontal axis.
        tuned: name of the second, on the vertical axis.
        family: of the second, for its colour.
        figure_name: ``NDCG@10``.
        ground: the theme.
    """
    import plotly.graph_objects as go

    shades = colours(ground)
    # The grey of unknown families is too near to that of losses.
    paints = {
        "win": family_colour(family, ground) if family else shades.accent,
        "loss": shades.text,
        "tie": shades.muted,
    }
    words = {"win": f"{tuned} is better", "loss": f"{base} is better", "tie": "both the same"}
    points_ = gathered(changes, view)
    most = max(points_["queries"].max() or 1, 1)
    figure = go.Figure()
    lay_out(figure, shades, height=HEIGHT, left=52, right=12, top=52)
    figure.add_shape(
        type="line", x0=0, y0=0, x1=100, y1=100, line={"color": shades.muted, "width": 1, "dash": "dot"}, layer="below"
    )
    for outcome, paint in paints.items():
        here = points_.filter(pl.col("outcome") == outcome)
        sizes = [_SMALLEST + (_LARGEST - _SMALLEST) * math.sqrt(n / most) for n in here["queries"]]
        figure.add_scatter(
            x=here["x"].to_list(),
            y=here["y"].to_list(),
            mode="markers",
            marker={"size": sizes, "color": paint, "opacity": 0.6, "line": {"width": 0}},
            cliponaxis=False,
            hovertext=[
                f"{whole(n)} {'query' if n == 1 else 'queries'}: {x:.0f} → {y:.0f}, {escaped(words[outcome])}"
                for x, y, n in here.select("x", "y", "queries").iter_rows()
            ],
            hoverinfo="text",
        )
    counts = {outcome: int((changes[f"outcome_{view}"] == outcome).sum()) for outcome in paints}
    # Above the plot: inside it they would cover dots.
    for outcome, above in (("win", 24), ("loss", 4)):
        figure.add_annotation(
            x=0, y=1, xref="paper", yref="paper", xanchor="left", yanchor="bottom", yshift=above, showarrow=False,
            text=f"<b>{whole(counts[outcome])}</b> better with the {'second' if outcome == 'win' else 'first'} run",
            font={"color": paints[outcome], "size": 13},
        )  # fmt: skip
    for update, name in ((figure.update_xaxes, base), (figure.update_yaxes, tuned)):
        update(
            range=[-3, 103],
            tickvals=[0, 25, 50, 75, 100],
            title={
                "text": f"{escaped(shortened(name, 34))}, {figure_name}",
                "font": {"size": 13, "color": shades.faint},
            },
            **axis(shades),
        )
    return figure
