"""Who decided which tools or skills are equivalents, in words: judges, people, a rule, or several of them."""

from __future__ import annotations

import polars as pl

from dashboard.components.untrusted import plain
from pipeline.benchmark import Origin

_WHO = {Origin.JUDGED: "judges", Origin.HUMAN: "people", Origin.EXECUTED: "test calls"}
#: Rules that are named; more would only be a list.
_MOST_RULES = 2


def deciders(equivalents: pl.DataFrame) -> str:
    """``judges and people``, ``a rule (identical api_call)``; empty where nothing but labels is there.

    Args:
        equivalents: ``origin`` and ``judge`` of each verdict.

    Returns:
        Our Markdown; those with the most verdicts first.
    """
    made = equivalents.filter(pl.col("origin") != Origin.GROUND_TRUTH.value)
    counts = made.group_by("origin", maintain_order=True).len().sort("len", descending=True, maintain_order=True)
    who = []
    for origin in counts["origin"]:
        if origin == Origin.RULE:
            who.append(_rules(made.filter(pl.col("origin") == origin)["judge"]))
        else:
            who.append(_WHO.get(origin, plain(origin)))
    return " and ".join(part for part in (", ".join(who[:-1]), *who[-1:]) if part)


def _rules(names: pl.Series) -> str:
    named = [name for name in names.drop_nulls().unique(maintain_order=True) if name and name != Origin.RULE]
    if not named:
        return "a rule"
    said = f" ({plain(', '.join(named))})" if len(named) <= _MOST_RULES else ""
    return ("a rule" if len(named) == 1 else "rules") + said
