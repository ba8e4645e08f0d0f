"""A judge that answers from a benchmark's own labels, by reading what the prompts show it.

Its answers depend on the request's text alone: it is handed a chat body, as a server gets it, and finds queries,
sub-queries and tools again by the text between the marks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import polars as pl

from pipeline.benchmark import Benchmark, Judgement
from pipeline.formats.benchmark_validation import build_benchmark
from pipeline.llm.answer_text import parsed_answer
from pipeline.llm.records import Answer, Check, Outcome, Question, Usage

_FENCED = re.compile(r"<<<BEGIN (.+) ([0-9a-f]{8})>>>\n(.*?)\n<<<END \1 \2>>>", re.DOTALL)


def fenced(text: str) -> Iterator[tuple[str, str]]:
    """(label, text) of everything between marks."""
    return ((match[1], match[3]) for match in _FENCED.finditer(text))


def user_text(body: dict[str, Any]) -> str:
    return next(message["content"] for message in body["messages"] if message["role"] == "user")


class LabelJudge:
    """Answers for a benchmark whose labels it knows."""

    def __init__(self, benchmark: Benchmark) -> None:
        self._tools: dict[str, set[str]] = {}
        for tool_id, document in benchmark.tools.select("tool_id", "documentation").iter_rows():
            self._tools.setdefault(document, set()).add(tool_id)
        self._queries: dict[tuple[str, str], list[str]] = {}
        for query_id, text, about in benchmark.queries.select("query_id", "text", "instruction").iter_rows():
            self._queries.setdefault((text, about), []).append(query_id)
        self._truth = dict(benchmark.ground_truth.iter_rows())
        self._steps: dict[str, list[tuple[str, str]]] = {}
        self._places: dict[tuple[str, str], list[tuple[str, int]]] = {}
        for query_id, position, text, tool in benchmark.subqueries.sort("query_id", "position").iter_rows():
            self._steps.setdefault(query_id, []).append((text, tool))
            self._places.setdefault((text, tool), []).append((query_id, position))
        self._equivalents = {
            (row["query_id"], row["position"], row["tool_id"]): row
            for row in benchmark.equivalents.iter_rows(named=True)
        }
        self._combinations = {
            (row["query_id"], frozenset(row["tool_ids"])): row for row in benchmark.combinations.iter_rows(named=True)
        }

    def __call__(self, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to one chat completion."""
        text = user_text(body)
        shown = list(fenced(text))
        labels = dict(shown)
        if "subquery" in labels:
            return self._verdict(labels["subquery"], labels["reference"], labels["candidate"])
        queries = self._queries[labels["query"], labels["instruction"]]
        tools = [document for label, document in shown if re.fullmatch(r"tool \d+", label)]
        if "checklist" in labels:
            return self._audit(queries, labels["checklist"], tools)
        return self._decomposition(queries, tools)

    def _decomposition(self, queries: list[str], documents: list[str]) -> dict[str, Any]:
        numbers = {tool: n for n, document in enumerate(documents, start=1) for tool in self._tools[document]}
        query_id = next(query for query in queries if set(self._truth[query]) <= numbers.keys())
        return {"subqueries": [{"tool": numbers[tool], "text": text} for text, tool in self._steps[query_id]]}

    def _verdict(self, subquery: str, reference: str, candidate: str) -> dict[str, Any]:
        rows = [
            self._equivalents.get((query_id, position, tool_id))
            for truth in self._tools[reference]
            for query_id, position in self._places.get((subquery, truth), ())
            for tool_id in self._tools[candidate]
        ]
        known = [row for row in rows if row is not None]
        if not known:
            return {"same_operation": False, "inputs_available": False, "reason": "It does something else."}
        best = max(known, key=lambda row: row["verdict"] == Judgement.VALID)
        valid = best["verdict"] == Judgement.VALID
        return {
            "same_operation": valid or bool(best["same_operation"]),
            "inputs_available": valid or (bool(best["inputs_available"]) and best["verdict"] != Judgement.UNSURE),
            "reason": best["reason"] or "As labelled.",
        }

    def _audit(self, queries: list[str], checklist: str, documents: list[str]) -> dict[str, Any]:
        steps = {re.sub(r"^\d+\. ", "", line) for line in checklist.splitlines()}
        query_id = next(query for query in queries if {text for text, _ in self._steps[query]} == steps)
        members = frozenset(next(iter(self._tools[document])) for document in documents)
        row = self._combinations.get((query_id, members))
        if row is None:
            return {"coverage": False, "dependency_consistent": False, "reason": "Not among the labels."}
        return {
            "coverage": bool(row["coverage"]),
            "dependency_consistent": bool(row["dependency_consistent"]),
            "reason": row["reason"] or "As labelled.",
        }


class RecordedJudge:
    """An ``Asker`` whose answers are a function of the request: recorded verdicts, read as a server would."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer
        self.questions: list[Question] = []

    def ask(self, questions: Any, *, check: Check | None = None, tell: Any = None) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for question in questions:
            self.questions.append(question)
            body = {"messages": [{"role": m.role, "content": m.content} for m in question.messages]}
            value = self._answer(body)
            parsed = parsed_answer(question, json.dumps(value), "stop", check)
            outcomes.append(Answer(question.key, parsed, question.model, question.prompt, Usage(1), 1))
        return outcomes


def stripped(benchmark: Benchmark, query_ids: list[str] | None = None) -> Benchmark:
    """The benchmark without everything after ``ground_truth``."""
    frames = {"tools": benchmark.tools, "queries": benchmark.queries, "ground_truth": benchmark.ground_truth}
    if query_ids is not None:
        for name in ("queries", "ground_truth"):
            frames[name] = frames[name].filter(pl.col("query_id").is_in(query_ids))
    return build_benchmark(benchmark.info, frames)


def labels_of(benchmark: Benchmark) -> dict[str, set[Any]]:
    """What counts of a benchmark's labels: sub-queries, valid equivalents and valid combinations."""
    valid = pl.col("verdict") == Judgement.VALID.value
    return {
        "subqueries": set(benchmark.subqueries.iter_rows()),
        "equivalents": set(benchmark.equivalents.filter(valid).select("query_id", "position", "tool_id").iter_rows()),
        "combinations": {
            (query_id, frozenset(tools))
            for query_id, tools in benchmark.combinations.filter(valid).select("query_id", "tool_ids").iter_rows()
        },
    }
