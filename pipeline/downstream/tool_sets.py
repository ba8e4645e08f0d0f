"""The tools that an agent is given for each task: the annotated set, a run's best, or an equivalent combination."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from pipeline.benchmark import Benchmark, Judgement
from pipeline.errors import BenchmarkError, UsageError
from pipeline.formats.messages import listing, plural
from pipeline.scoring.discounts import DEEPEST, gains, ideal


class Setting(StrEnum):
    """How the tools of a task are found; the values are what the paper compares."""

    ORACLE = "oracle"
    RETRIEVER = "retriever"
    EXPANDED = "expanded"


class Choice(StrEnum):
    """Which valid combination stands for a task: the one with the highest RRF score, or the one a run ranks best."""

    SCORE = "score"
    RUN = "run"


@dataclass(frozen=True)
class ToolSets:
    """The tools of every task of one setting.

    Attributes:
        setting: its name in task files and results.
        tools: query id → tools, in the benchmark's order of queries; a list may be empty.
        notes: what a reader of the results must know, in words.
    """

    setting: str
    tools: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...] = ()


def annotated_sets(benchmark: Benchmark, name: str = Setting.ORACLE) -> ToolSets:
    """The one label of each query."""
    return ToolSets(name, _truths(benchmark))


def retrieved_sets(benchmark: Benchmark, ranking: pl.DataFrame, k: int, name: str = Setting.RETRIEVER) -> ToolSets:
    """The first K results of a run; a query that the run does not answer has no tools.

    Args:
        benchmark: whose queries are the tasks.
        ranking: columns of ``pipeline.formats.ranking.RANKING``.
        k: 1 to 1,000.
        name: of the setting.

    Raises:
        UsageError: K is out of range.
    """
    _check_depth(k)
    lists = _lists(ranking, k)
    tools = {query: tuple(lists.get(query, ())) for query in benchmark.queries["query_id"]}
    empty = [query for query, found in tools.items() if not found]
    notes = []
    if empty:
        notes.append(
            f"the run has no results for {plural(len(empty), 'task')}, which get no tools: {listing(empty, 5)}"
        )
    return ToolSets(name, tools, tuple(notes))


def expanded_sets(
    benchmark: Benchmark,
    *,
    choose: Choice = Choice.SCORE,
    ranking: pl.DataFrame | None = None,
    k: int = 10,
    keep_label: bool = False,
    name: str = Setting.EXPANDED,
) -> ToolSets:
    """One valid combination a query, other than the label where there is another.

    Under ``score`` the highest RRF score decides; combinations without a score come last. Under ``run`` the highest
    NDCG@K of the run decides, then the score. What is still equal goes by the tools' ids.

    Args:
        benchmark: an expanded version.
        choose: see above.
        ranking: of the run, in the columns of ``pipeline.formats.ranking.RANKING``.
        k: cutoff of NDCG.
        keep_label: whether the label competes; else it stays only where nothing else is valid.
        name: of the setting.

    Raises:
        BenchmarkError: the benchmark has no combinations.
        UsageError: ``run`` without a ranking, or K is out of range.
    """
    _check_depth(k)
    if not benchmark.has_combinations:
        raise BenchmarkError(
            f"{benchmark.info.slug}@{benchmark.info.version} has one label a query and no other valid combination: "
            "expand it first, or name an expanded version"
        )
    if choose is Choice.RUN and ranking is None:
        raise UsageError("the combination that a run ranks best needs a run")
    truths = _truths(benchmark)
    lists = {} if choose is Choice.SCORE or ranking is None else _lists(ranking, k)
    offered = _offered(benchmark)
    chosen: dict[str, tuple[str, ...]] = {}
    for query, truth in truths.items():
        best = _best(offered.get(query, []), truth, lists.get(query, []), k, keep_label)
        chosen[query] = best or truth
    same = sum(set(tools) == set(truths[query]) for query, tools in chosen.items())
    replaced = len(chosen) - same
    notes = [f"{plural(replaced, 'task gets', 'tasks get')} another set than the label, {same:,} the label itself"]
    if choose is Choice.RUN and (unanswered := sum(not lists.get(query) for query in truths)):
        notes.append(f"the run has no results for {plural(unanswered, 'task')}; there the score decides")
    return ToolSets(name, chosen, tuple(notes))


def _check_depth(k: int) -> None:
    if not 1 <= k <= DEEPEST:
        raise UsageError(f"K is {k}: choose 1 to {DEEPEST:,}")


def _truths(benchmark: Benchmark) -> dict[str, tuple[str, ...]]:
    truths = dict(benchmark.ground_truth.select("query_id", "tool_ids").iter_rows())
    return {query: tuple(dict.fromkeys(truths.get(query) or ())) for query in benchmark.queries["query_id"]}


def _lists(ranking: pl.DataFrame, k: int) -> dict[str, list[str]]:
    """Query → its first K tools, best first."""
    kept = ranking.filter(pl.col("rank") <= k).sort("query_id", "rank")
    return dict(kept.group_by("query_id", maintain_order=True).agg("tool_id").iter_rows())


def _offered(benchmark: Benchmark) -> dict[str, list[tuple[tuple[str, ...], float]]]:
    """Query → its valid sets with their scores, the label's among them."""
    valid = benchmark.combinations.filter(pl.col("verdict") == Judgement.VALID.value)
    offered: dict[str, list[tuple[tuple[str, ...], float]]] = {}
    for query, tools, score in valid.select("query_id", "tool_ids", "rrf_score").iter_rows():
        if tools:
            value = -math.inf if score is None or math.isnan(score) else score
            offered.setdefault(query, []).append((tuple(tools), value))
    return offered


def _best(
    sets: list[tuple[tuple[str, ...], float]], truth: tuple[str, ...], ranked: list[str], k: int, keep_label: bool
) -> tuple[str, ...] | None:
    if not keep_label:
        sets = [(tools, score) for tools, score in sets if set(tools) != set(truth)]
    rank_of = {tool: rank for rank, tool in enumerate(ranked)}
    order = sorted(sets, key=lambda item: (-_ndcg(item[0], rank_of, k), -item[1], sorted(map(str.encode, item[0]))))
    return order[0][0] if order else None


def _ndcg(tools: tuple[str, ...], rank_of: Mapping[str, int], k: int) -> float:
    """NDCG@K of a set, added up in rank order; 0 without a run."""
    distinct = set(tools)
    return sum(_gains(sorted(rank_of[tool] for tool in distinct if tool in rank_of))) / float(
        ideal()[min(len(distinct), k)]
    )


def _gains(ranks: list[int]) -> Iterator[float]:
    return (float(gains()[rank]) for rank in ranks)
