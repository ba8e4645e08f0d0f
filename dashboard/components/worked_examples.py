"""Small worked examples of the definitions.

Metrics, averages and gains are computed by the scoring code itself. MFTR's sum is written out here, since its kernels
take a second to load; a test holds it against them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from dashboard.components.numbers import MINUS, points
from pipeline.scoring.illusion import GainSplit, split_gain
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


def example_combinations(k: int = 3) -> pl.DataFrame:
    """Every valid combination against the first K of the list, and the best of them, ×100."""
    rows = []
    for combination in COMBINATIONS:
        scores = {f"{name}@{k}": points(metric(RANKED, combination, k)) for name, metric in REFERENCE_METRICS.items()}
        label = " (the label)" if combination == TRUTH else ""
        rows.append({"Combination": " + ".join(sorted(combination)) + label, **scores})
    best = {
        f"{name}@{k}": points(new_score(metric, RANKED, COMBINATIONS, k)) for name, metric in REFERENCE_METRICS.items()
    }
    return pl.DataFrame([*rows, {"Combination": "new: the best of each column", **best}])


def example_pooled(k: int = 10) -> pl.DataFrame:
    """What pooling all valid tools into one set would say of a list that found a complete answer, ×100."""
    ranked = ("maps.route", "weather.now")
    combinations = [frozenset({tool, "weather.now"}) for tool in ("maps.route", "geo.directions", "way.find")]
    pooled = frozenset().union(*combinations)
    return pl.DataFrame(
        [
            {
                "Metric": f"{name}@{k}",
                "Best combination": points(new_score(metric, ranked, combinations, k)),
                "One pool of all tools": points(metric(ranked, pooled, k)),
            }
            for name, metric in REFERENCE_METRICS.items()
        ]
    )


#: Three queries with two equally good tools each; the first of each pair carries the label.
ILLUSION_LABELS = {"q1": ("sms.send", "text.send"), "q2": ("fx.rate", "money.convert"), "q3": ("pdf.merge", "doc.join")}
#: A base retriever, and one fine-tuned to put the labelled twin first; only in q3 does it find something new.
ILLUSION_LISTS: dict[str, dict[str, tuple[str, ...]]] = {
    "base": {
        "q1": ("text.send", "mail.send", "sms.send"),
        "q2": ("money.convert", "fx.rate", "stock.quote"),
        "q3": ("pdf.split", "pdf.rotate", "doc.join"),
    },
    "fine-tuned": {
        "q1": ("sms.send", "text.send", "mail.send"),
        "q2": ("fx.rate", "money.convert", "stock.quote"),
        "q3": ("pdf.split", "pdf.merge", "doc.join"),
    },
}


def illusion_means(k: int = 3) -> dict[str, tuple[float, float]]:
    """Mean old and new NDCG@K of both retrievers of the example."""
    ndcg = REFERENCE_METRICS["NDCG"]
    means = {}
    for name, lists in ILLUSION_LISTS.items():
        old = [ndcg(ranked, frozenset({ILLUSION_LABELS[query][0]}), k) for query, ranked in lists.items()]
        new = [
            new_score(ndcg, ranked, [frozenset({tool}) for tool in ILLUSION_LABELS[query]], k)
            for query, ranked in lists.items()
        ]
        means[name] = (sum(old) / len(old), sum(new) / len(new))
    return means


def example_split(k: int = 3) -> GainSplit:
    """The gain of the fine-tuned retriever of the example, split."""
    means = illusion_means(k)
    base, tuned = means["base"], means["fine-tuned"]
    return split_gain(base[0], base[1], tuned[0], tuned[1])


def example_illusion(k: int = 3) -> pl.DataFrame:
    """Both retrievers, old and new, and the gain, ×100."""
    rows = [
        {"Retriever": name, f"NDCG@{k} old": points(old), f"NDCG@{k} new": points(new)}
        for name, (old, new) in illusion_means(k).items()
    ]
    split = example_split(k)
    gains = {f"NDCG@{k} old": points(split.gain_old, signed=True), f"NDCG@{k} new": points(split.gain_new, signed=True)}
    return pl.DataFrame([*rows, {"Retriever": "gain", **gains}])


@dataclass(frozen=True)
class ExampleTool:
    """A tool of the MFTR example.

    Attributes:
        fields: S_f of description, response and examples.
        parameters: name → (s_p, whether it is required).
    """

    name: str
    fields: Mapping[str, float]
    parameters: Mapping[str, tuple[float, bool]]

    @property
    def scores(self) -> dict[str, float]:
        """S_f of all four fields, in the order of the weights: S_parameters is the mean of s_p."""
        found = [score for score, _ in self.parameters.values()]
        mean = math.fsum(found) / len(found)
        return {
            "description": self.fields["description"],
            "parameters": mean,
            "response": self.fields["response"],
            "examples": self.fields["examples"],
        }


#: "How warm is it in Oslo?": one argument, the city; the second tool also wants the id of a station.
MFTR_TOOLS = (
    ExampleTool(
        "weather.now",
        {"description": 0.62, "response": 0.55, "examples": 0.70},
        {"city": (0.80, True), "units": (0.05, False)},
    ),
    ExampleTool(
        "station.report",
        {"description": 0.66, "response": 0.58, "examples": 0.66},
        {"city": (0.80, True), "station_id": (0.10, True)},
    ),
)
MFTR_WEIGHTS = {"description": 0.25, "parameters": 0.20, "response": 0.20, "examples": 0.35}
#: τ, α, and the charges of a missing required and of a missing optional parameter.
MFTR_TAU, MFTR_ALPHA, MFTR_REQUIRED, MFTR_OPTIONAL = 0.3, 15.0, 0.2, 0.1


def parameter_penalty(score: float, *, required: bool) -> float:
    """L(p) = σ(α(τ − s_p)) times the charge."""
    missing = 1 / (1 + math.exp(-MFTR_ALPHA * (MFTR_TAU - score)))
    return missing * (MFTR_REQUIRED if required else MFTR_OPTIONAL)


def mftr_parts(tool: ExampleTool) -> tuple[float, float]:
    """Σ w_f S_f and the penalty P."""
    weighted = math.fsum(MFTR_WEIGHTS[field] * score for field, score in tool.scores.items())
    charges = (parameter_penalty(score, required=required) for score, required in tool.parameters.values())
    return weighted, math.fsum(charges)


def example_fields() -> pl.DataFrame:
    """Field scores of both tools, their weighted sum, the penalty and the score."""
    rows: list[dict[str, str]] = [
        {"Part": field, "Weight": f"{weight:.2f}"} | {tool.name: f"{tool.scores[field]:.3f}" for tool in MFTR_TOOLS}
        for field, weight in MFTR_WEIGHTS.items()
    ]
    parts = {tool.name: mftr_parts(tool) for tool in MFTR_TOOLS}
    for words, figures in (
        ("weighted sum", {name: f"{weighted:.3f}" for name, (weighted, _) in parts.items()}),
        ("penalty", {name: f"{MINUS}{penalty:.3f}" for name, (_, penalty) in parts.items()}),
        ("score", {name: f"{weighted - penalty:.3f}" for name, (weighted, penalty) in parts.items()}),
    ):
        rows.append({"Part": words, "Weight": ""} | figures)
    return pl.DataFrame(rows)


def example_penalties() -> pl.DataFrame:
    """Every parameter of both tools and what it is charged."""
    return pl.DataFrame(
        [
            {
                "Parameter": f"{tool.name}: {name}",
                "Asked for": "required" if required else "optional",
                "Best argument": f"{score:.2f}",
                "Charged": f"{parameter_penalty(score, required=required):.3f}",
            }
            for tool in MFTR_TOOLS
            for name, (score, required) in tool.parameters.items()
        ]
    )
