"""What a reviewer sees of one accepted combination: the need of each step, and the tools that are said to serve it.

Nothing of any run is on it: no rank, no score, no name of a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from pipeline.benchmark import Benchmark, Judgement
from pipeline.errors import BenchmarkError


@dataclass(frozen=True)
class ReviewStep:
    """One sub-query.

    Attributes:
        text: "" where the benchmark has none.
        truth: its tool in C*.
        candidate: the tool of the combination that was accepted for it; None where that is not known.
    """

    position: int
    text: str
    truth: str
    candidate: str | None


@dataclass(frozen=True)
class ReviewCard:
    """One item.

    Attributes:
        steps: by position.
        others: tools of the combination that serve no step, as far as is known.
        names: tool id → name, "" where it has none.
        documents: tool id → documentation; of C* and of the combination.
        rationale: the judge's words on the combination.
    """

    query_id: str
    text: str
    instruction: str
    domain: str
    steps: tuple[ReviewStep, ...]
    others: tuple[str, ...]
    names: Mapping[str, str]
    documents: Mapping[str, str]
    rationale: str


def review_card(benchmark: Benchmark, query_id: str, tool_ids: Sequence[str], rationale: str) -> ReviewCard:
    """Look one combination up.

    Args:
        benchmark: the expanded version.
        query_id: of the query.
        tool_ids: the combination.
        rationale: what the judge said of it.

    Raises:
        BenchmarkError: the version has no such query.
    """
    asked = benchmark.queries.filter(pl.col("query_id") == query_id)
    if asked.is_empty():
        raise BenchmarkError(f"the benchmark has no query {query_id!r}")
    query = asked.row(0, named=True)
    truth: list[str] = benchmark.ground_truth.filter(pl.col("query_id") == query_id)["tool_ids"][0].to_list()
    needs = _needs(benchmark, query_id, truth)
    serving = serving_tools(_accepted(benchmark, query_id, needs), tool_ids)
    steps = tuple(ReviewStep(position, text, tool, serving.get(position)) for position, text, tool in needs)
    shown = list(dict.fromkeys([*truth, *tool_ids]))
    tools = benchmark.tools.filter(pl.col("tool_id").is_in(shown)).select("tool_id", "name", "documentation").rows()
    return ReviewCard(
        query_id=query_id,
        text=query["text"] or "",
        instruction=query["instruction"] or "",
        domain=query["domain"] or "",
        steps=steps,
        others=tuple(tool for tool in tool_ids if tool not in set(serving.values())),
        names={tool: name or "" for tool, name, _ in tools},
        documents={tool: documentation or "" for tool, _, documentation in tools},
        rationale=rationale,
    )


def serving_tools(accepted: Mapping[int, Sequence[str]], tool_ids: Sequence[str]) -> dict[int, str]:
    """Which tool of a combination serves which step: as many steps as can be served by different tools.

    Args:
        accepted: position → tools that were accepted for it, the likeliest first.
        tool_ids: the combination.

    Returns:
        Position → tool. A step that no tool is left for gets one that serves another step too, where it was accepted
        for both; else it is left out.
    """
    members = set(tool_ids)
    choices = {position: [tool for tool in tools if tool in members] for position, tools in accepted.items()}
    step_of: dict[str, int] = {}

    def place(position: int, tried: set[str]) -> bool:
        for tool in choices[position]:
            if tool in tried:
                continue
            tried.add(tool)
            if tool not in step_of or place(step_of[tool], tried):
                step_of[tool] = position
                return True
        return False

    for position in choices:
        place(position, set())
    serving = {position: tool for tool, position in step_of.items()}
    return {position: serving.get(position) or tools[0] for position, tools in choices.items() if tools}


def _needs(benchmark: Benchmark, query_id: str, truth: Sequence[str]) -> list[tuple[int, str, str]]:
    """Position, text and ground-truth tool of each sub-query; without sub-queries one a tool of C*."""
    rows = benchmark.subqueries.filter(pl.col("query_id") == query_id).sort("position")
    if rows.is_empty():
        return [(position, "", tool) for position, tool in enumerate(truth)]
    return [(position, text or "", tool) for position, text, tool in rows.select("position", "text", "tool_id").rows()]


def _accepted(benchmark: Benchmark, query_id: str, needs: Sequence[tuple[int, str, str]]) -> dict[int, list[str]]:
    """The tools accepted for each sub-query, its ground truth first."""
    rows = benchmark.equivalents.filter((pl.col("query_id") == query_id) & (pl.col("verdict") == Judgement.VALID.value))
    found = {position: [tool] for position, _, tool in needs}
    for position, tool in rows.select("position", "tool_id").iter_rows():
        if position in found and tool not in found[position]:
            found[position].append(tool)
    return found
