"""One query under several runs: how many equivalents each has found by every rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from dashboard.charts.layout import chart_config, escaped, kept_apart, lay_out, shortened, told_apart
from dashboard.charts.palette import Ground, colours, family_colour

if TYPE_CHECKING:
    import plotly.graph_objects as go

CONFIG = chart_config("equivalents-by-rank")
HEIGHT = 290
#: The axis ends at the first of these that holds everything found; with a figure every so many ranks.
_ENDS = {20: 5, 50: 10, 100: 20}
#: Lines of one colour differ in their dashes, which their names repeat.
_DASHES = {"solid": "━", "dash": "╍", "dot": "┈", "dashdot": "┅"}


@dataclass(frozen=True, eq=False)
class Steps:
    """What one run finds.

    Attributes:
        steps: columns rank, role (``ground_truth`` or ``equivalent``), equivalents, name; ascending ranks.
        depth: length of the run's list.
    """

    name: str
    family: str
    steps: pl.DataFrame
    depth: int


def found_steps(runs: Sequence[Steps], k: int, ground: Ground, *, narrow: bool = False) -> go.Figure:
    """Draw a step line a run; diamonds are where it ranks a ground-truth tool.

    Args:
        runs: at least one.
        k: the cutoff that a dotted line marks.
        ground: the theme.
        narrow: shorter names.
    """
    import plotly.graph_objects as go

    shades = colours(ground)
    deepest = max([int(run.steps["rank"].max() or 0) for run in runs] + [k])  # type: ignore[arg-type]
    last = next((end for end in _ENDS if deepest <= end), max(_ENDS))
    said = told_apart([run.name for run in runs], 13 if narrow else 24)
    most = max([int(run.steps["equivalents"].max() or 0) for run in runs] + [1])  # type: ignore[arg-type]
    figure = go.Figure()
    figure.add_vline(x=k, line={"color": shades.muted, "width": 1, "dash": "dot"}, layer="below")
    figure.add_annotation(
        x=k, y=1.0, yref="paper", text=f"top {k}", showarrow=False, xanchor="right", yanchor="top", xshift=-4,
        font={"size": 13, "color": shades.faint},
    )  # fmt: skip
    seen: dict[str, int] = {}
    ends = []
    for run, name in zip(runs, said, strict=True):
        paint = family_colour(run.family, ground)
        dash = list(_DASHES)[seen.setdefault(paint, 0) % len(_DASHES)]
        seen[paint] += 1
        steps = run.steps.filter(pl.col("rank") <= last)
        found = steps.filter(pl.col("role") == "equivalent")
        end = int(found["equivalents"].max() or 0)  # type: ignore[arg-type]
        figure.add_scatter(
            x=[1 - 0.03 * last, *found["rank"], min(last, max(run.depth, 1))],
            y=[0, *found["equivalents"], end],
            mode="lines",
            line={"shape": "hv", "color": paint, "width": 2.5, "dash": dash},
            hoverinfo="skip",
        )
        for role, symbol, words in (
            ("equivalent", "circle", "equivalent"),
            ("ground_truth", "diamond-open", "ground truth"),
        ):
            rows = steps.filter(pl.col("role") == role)
            figure.add_scatter(
                x=rows["rank"].to_list(),
                y=rows["equivalents"].to_list(),
                mode="markers",
                marker={
                    "symbol": symbol, "color": paint, "size": 6 if role == "equivalent" else 12, "line": {"width": 2},
                },
                hovertext=[
                    f"{escaped(run.name)}, rank {rank}: {words} {escaped(shortened(tool or '', 60))}"
                    for rank, tool in rows.select("rank", "name").iter_rows()
                ],
                hoverinfo="text",
                cliponaxis=False,
            )  # fmt: skip
        ends.append((float(end), f"{_DASHES[dash]} {name} {end}", paint))
    spots = kept_apart([end for end, _, _ in ends], 1.15 * most * 20 / (HEIGHT - 70), 0.0, 1.1 * most)
    for spot, (_, words, paint) in zip(spots, ends, strict=True):
        figure.add_annotation(
            x=1.0, xref="paper", y=spot, text=escaped(words), showarrow=False, xanchor="left", xshift=6,
            font={"size": 13, "color": paint},
        )  # fmt: skip
    longest = max(len(words) for _, words, _ in ends)
    lay_out(figure, shades, height=HEIGHT, left=44, right=min(16 + 7 * longest, 210))
    figure.update_xaxes(
        # Room for a mark at the first rank beside the other axis's figures.
        range=[1 - 0.03 * last, last + 0.2],
        tickvals=sorted({1, k, *range(_ENDS[last], last + 1, _ENDS[last])}),
        title={"text": "rank", "font": {"size": 13, "color": shades.faint}},
    )
    step = max(1, -(-most // 6))
    figure.update_yaxes(
        range=[-0.06 * most, 1.15 * most],
        tickvals=list(range(0, most + 1, step)),
        title={"text": "equivalents found", "font": {"size": 13, "color": shades.faint}},
    )
    return figure
