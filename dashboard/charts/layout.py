"""What all charts share: transparent ground, quiet axes, a name for their files, labels kept apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dashboard.charts.palette import Colours

if TYPE_CHECKING:
    import plotly.graph_objects as go

FONT = "Source Sans, sans-serif"


def chart_config(file_name: str) -> dict[str, Any]:
    """Plotly's settings: none of its bar, and the name under which ``components.figure`` saves the drawing."""
    return {
        "displayModeBar": False,
        "toImageButtonOptions": {"filename": f"equirank-{file_name}"},
        "scrollZoom": False,
    }


def lay_out(figure: go.Figure, shades: Colours, *, height: int, left: int = 8, right: int = 8, top: int = 8) -> None:
    """Size, margins and colours of a chart without a legend."""
    figure.update_layout(
        height=height,
        margin={"l": left, "r": right, "t": top, "b": 48},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": FONT, "color": shades.text, "size": 13},
        showlegend=False,
        hoverlabel={"bgcolor": shades.ground, "font": {"color": shades.text}},
    )
    figure.update_xaxes(**axis(shades))
    figure.update_yaxes(**axis(shades))


def axis(shades: Colours) -> dict[str, Any]:
    """A quiet axis that cannot be dragged."""
    return {
        "gridcolor": shades.grid,
        "zeroline": False,
        "tickfont": {"color": shades.faint, "size": 13},
        "fixedrange": True,
    }


def escaped(text: str) -> str:
    """Plotly reads a few HTML tags in texts; names are shown as they are written."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def shortened(text: str, longest: int) -> str:
    """At most ``longest`` characters, the cut marked with an ellipsis."""
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def told_apart(names: Sequence[str], longest: int) -> list[str]:
    """Names of at most ``longest`` characters: those that would begin alike keep the place where they differ.

    ``Qwen3-Embedding-0.6B`` and ``Qwen3-Embedding-4B`` must not both become ``Qwen3-Embed…``.
    """
    cut = {name: shortened(name, longest) for name in names}
    head = (longest - 1) // 2
    for short, count in Counter(cut.values()).items():
        if count == 1:
            continue
        alike = [name for name in cut if cut[name] == short]
        differs = next(
            (i for i, letters in enumerate(zip(*alike, strict=False)) if len(set(letters)) > 1), min(map(len, alike))
        )
        for name in alike:
            if len(name) > longest:
                # The end, where what differs is in it; else from there on.
                start = max(min(differs, len(name) - (longest - head - 1)), head)
                cut[name] = f"{name[:head].rstrip()}…{name[start : start + longest - head - 1].strip()}"
    return [cut[name] for name in names]


def kept_apart(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places for labels: in the given order of size, at least ``gap`` apart, near their points, from low to high.

    Where there is not enough room between low and high, the gap shrinks.
    """
    count = len(places)
    if count > 1:
        gap = min(gap, (high - low) / (count - 1))
    order = sorted(range(count), key=lambda i: (places[i], i))
    found = [0.0] * count
    at = low
    for i in order:
        at = max(places[i], at)
        found[i] = at
        at += gap
    # What was pushed over the upper end goes back down, and pushes those below it.
    limit = high
    for i in reversed(order):
        found[i] = min(found[i], limit)
        limit = found[i] - gap
    return found
