"""Small worked examples of the definitions, computed by the scoring code itself."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from dashboard.components.numbers import points
from pipeline.scoring.metrics import REFERENCE_METRICS, new_score

#: One query needs a map and a weather report; two map tools and three weather tools do the same.
TRUTH = frozenset({"maps.route", "weather.now"})
COMBINATIONS = (
    TRUTH,
    frozenset({"geo.directions", "weather.now"}),
    frozenset({"maps.route", "meteo.report"}),
    frozenset({"geo.directions", "meteo.report"}),
)
RANKED = ("geo.directions", "meteo.report", "maps.route", "news.today", "weather.now")


def example_lists() -> pl.DataFrame:
    """The ranked list with what each tool is."""
    kind = {
        "geo.directions": "as good as maps.route",
        "meteo.report": "as good as weather.now",
        "maps.route": "the label",
        "weather.now": "the label",
    }
    return pl.DataFrame(
        {
            "Rank": [str(rank) for rank in range(1, len(RANKED) + 1)],
            "Tool": list(RANKED),
            "What it is": [kind.get(tool, "does something else") for tool in RANKED],
        }
    )


def example_scores(ks: Sequence[int] = (2, 3, 5)) -> pl.DataFrame:
    """Old, new and lift of the list at some cutoffs, ×100."""
    rows = []
    for name, metric in REFERENCE_METRICS.items():
        for k in ks:
            old, new = metric(RANKED, TRUTH, k), new_score(metric, RANKED, COMBINATIONS, k)
            rows.append(
                {
                    "Metric": f"{name}@{k}",
                    "Old": points(old),
                    "New": points(new),
                    "Lift": points(new - old, signed=True),
                }
            )
    return pl.DataFrame(rows)


def example_averages() -> pl.DataFrame:
    """Macro and micro of three queries in two domains."""
    by_domain = {"code": (0.2,), "web": (0.8, 1.0)}
    means = [sum(values) / len(values) for values in by_domain.values()]
    everything = [value for values in by_domain.values() for value in values]
    return pl.DataFrame(
        {
            "Average": ["macro: mean of the domain means", "micro: mean over queries"],
            "Computed": ["(20.0 + 90.0) / 2", "(20.0 + 80.0 + 100.0) / 3"],
            "Figure": [points(sum(means) / len(means)), points(sum(everything) / len(everything))],
        }
    )
