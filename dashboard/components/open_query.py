"""A query that is being looked at: its card, the runs beside it, and what its items and runs are called here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dashboard.charts.layout import told_apart
from dashboard.components.numbers import NONE
from dashboard.query_reading import ReadRun
from pipeline.scoring.query_card import QueryCard

_HEAD = 24


@dataclass(frozen=True, eq=False)
class OpenQuery:
    """A query that is being looked at.

    Attributes:
        kind: what is retrieved: ``tool`` or ``skill``.
        names: tool id → what it is called here: its name, with the id where two share one.
        heads: run id → its name as the head of a column, short enough to leave room for the figures.
        ranks: run id → tool id → rank, for the tools of the labels.
    """

    card: QueryCard
    kind: str
    runs: tuple[ReadRun, ...]
    names: Mapping[str, str]
    ranks: Mapping[str, Mapping[str, int]]
    heads: Mapping[str, str]

    def rank(self, run: ReadRun, tool: str) -> str:
        """The rank as text."""
        found = self.ranks.get(run.id, {}).get(tool)
        return NONE if found is None else str(found)

    def listed(self, tools: Sequence[str]) -> str:
        """The names of a combination's tools."""
        return " + ".join(self.names.get(tool, tool) for tool in tools)

    def short_names(self, tools: Sequence[str], longest: int) -> list[str]:
        """Names for a column of limited width: cut, but no two of different tools alike."""
        names = [self.names.get(tool, tool) for tool in tools]
        cut = told_apart(names, longest)
        alike = Counter(dict(zip(tools, cut, strict=True)).values())
        return [short if alike[short] == 1 else name for short, name in zip(cut, names, strict=True)]


def opened(card: QueryCard, kind: str, runs: Sequence[ReadRun]) -> OpenQuery:
    """Names and ranks looked up once.

    Args:
        card: of the query.
        kind: of the benchmark.
        runs: those that the card has ranks of.
    """
    pairs = card.tools.select("tool_id", "name").rows()
    counts = Counter(name for _, name in pairs)
    names = {tool: tool if not name else name if counts[name] == 1 else f"{name} ({tool})" for tool, name in pairs}
    ranks: dict[str, dict[str, int]] = {run.id: {} for run in runs}
    for run_id, tool, rank in card.ranks.drop_nulls("rank").select("run", "tool_id", "rank").iter_rows():
        ranks[run_id][tool] = rank
    return OpenQuery(card, kind, tuple(runs), names, ranks, column_heads(runs))


def column_heads(runs: Sequence[ReadRun]) -> dict[str, str]:
    """Run id → its name cut to the width of a column; no two are equal, or one column would take another's place."""
    heads = told_apart([run.name for run in runs], _HEAD)
    if len(set(heads)) < len(heads):
        heads = [f"{place}: {head}" for place, head in enumerate(heads, start=1)]
    return dict(zip((run.id for run in runs), heads, strict=True))
