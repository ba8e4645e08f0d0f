"""Queries rewritten into tool needs and arguments by a language model (MFTR paper, §3.3; the prompt is ours).

One question a query. The model is shown how the library speaks: BM25 searches the standardized descriptions with the
query, the twenty best are shown, and the first tool in all four fields. How many needs there are is the model's to
say; an answer without any is invalid, is tried again, and then recorded as a failure. "Original query", the variant
without a language model, is ``pipeline.mftr.schema.original_query``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.llm.asking import ask_all, pending_count, total_usage, usage_of
from pipeline.llm.prompts import load_prompt
from pipeline.llm.records import Answer, Asker, Failure, Question, Usage
from pipeline.mftr.files import RewrittenQueries, standardized_to_json
from pipeline.mftr.schema import Argument, RewrittenQuery, StandardizedTool, ToolNeed
from pipeline.retrieval.bm25 import Bm25Index
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback

PURPOSE = "rewrite"
PROMPT = "rewrite_query"
#: Descriptions shown (MFTR §4.4).
SHOWN = 20
#: Characters of the query, of each description and of the first tool's documentation that are shown.
QUERY_CHARACTERS = 8_000
DESCRIPTION_CHARACTERS = 600
DOCUMENT_CHARACTERS = 8_000
NO_TEXT = "the query has no text"
_NOTHING = "(none)"

_TEXT = {"type": "string"}


def _list_of(*names: str) -> dict[str, Any]:
    item = {"type": "object", "properties": dict.fromkeys(names, _TEXT), "required": list(names)}
    return {"type": "array", "items": item | {"additionalProperties": False}}


_NEED_KEYS = ("user_intent", "tool_description", "expected_response")
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"tool_needs": _list_of(*_NEED_KEYS), "extracted_arguments": _list_of("name", "description")},
    "required": ["tool_needs", "extracted_arguments"],
    "additionalProperties": False,
}


@dataclass(frozen=True, eq=False)
class ModelRewritten:
    """Queries in needs and arguments.

    Attributes:
        queries: those with a valid answer, in the order given.
        failures: query id → why there is none.
        pending: distinct questions that wait for a batch's answers; the queries are final only when it is 0.
        questions: how many were asked.
        usage: of the answers and the failures; what came from the cache counts as it was paid.
    """

    queries: tuple[RewrittenQuery, ...]
    failures: Mapping[str, str]
    pending: int
    questions: int
    usage: Usage

    @property
    def rewritten(self) -> RewrittenQueries:
        """The queries and their failures as a file holds them."""
        return RewrittenQueries(self.queries, self.failures)


def prompt_references() -> tuple[str, ...]:
    """``name@version`` of the prompt, part of the identity of what it made."""
    return (load_prompt(PROMPT).reference,)


class Feedback:
    """The standardized descriptions, searched for what to show with a query.

    Args:
        tools: the corpus in any order; tools without a description are never shown.
        shown: how many descriptions a query gets at most.
    """

    def __init__(self, tools: Sequence[StandardizedTool], shown: int = SHOWN) -> None:
        # Byte order of the ids: BM25 breaks ties by it, so the question depends on no other order.
        self._tools = sorted(tools, key=lambda tool: tool.tool_id.encode("utf-8", "surrogatepass"))
        self._shown = shown
        self._index = Bm25Index([tool.description for tool in self._tools])

    def tools(self, queries: Sequence[str]) -> list[list[StandardizedTool]]:
        """The tools whose descriptions match each query best, best first; fewer where fewer share a word with it."""
        if not self._tools or not queries:
            return [[] for _ in queries]
        found = self._index.search(queries, self._shown)
        return [
            [self._tools[place] for place in places[:count].tolist()]
            for places, count in zip(found.tools, found.counts.tolist(), strict=True)
        ]


def rewrite_by_model(
    queries: Sequence[tuple[str, str]],
    tools: Sequence[StandardizedTool],
    asker: Asker,
    llm: str,
    *,
    shown: int = SHOWN,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> ModelRewritten:
    """Rewrite every query.

    Args:
        queries: (id, text); a blank text is asked nothing and fails.
        tools: the standardized corpus that the queries are for.
        asker: who answers: a live model, or a batch's writer or reader.
        llm: the language model, ``provider/model``.
        shown: descriptions shown with a query.
        progress: stage ``rewriting``, in queries.
        cancelled: see ``ask_all``.

    Raises:
        BudgetExceeded: before a call that could exceed the budget; what was answered is in the cache.
        Cancelled: on request.
        JudgeError: the model cannot be asked at all.
    """
    asked = [(query_id, text) for query_id, text in queries if text.strip()]
    feedback = Feedback(tools, shown).tools([text for _, text in asked])
    questions = [_question(text, found, llm) for (_, text), found in zip(asked, feedback, strict=True)]
    outcomes = ask_all(asker, questions, stage="rewriting", check=check_answer, progress=progress, cancelled=cancelled)
    failures = {query_id: NO_TEXT for query_id, text in queries if not text.strip()}
    rewritten = []
    for (query_id, _), outcome in zip(asked, outcomes, strict=True):
        if isinstance(outcome, Answer):
            rewritten.append(_rewritten(query_id, outcome.value))
        elif isinstance(outcome, Failure):
            failures[query_id] = outcome.reason
    return ModelRewritten(
        tuple(rewritten),
        failures,
        pending_count(outcomes),
        len(questions),
        total_usage(usage_of(outcome) for outcome in outcomes),
    )


def _question(text: str, found: Sequence[StandardizedTool], llm: str) -> Question:
    prompt = load_prompt(PROMPT)
    listed = [f"{place}. {tool.description[:DESCRIPTION_CHARACTERS]}" for place, tool in enumerate(found, start=1)]
    first = json.dumps(standardized_to_json(found[0]), ensure_ascii=False, indent=1) if found else _NOTHING
    messages = prompt.messages(
        request=text[:QUERY_CHARACTERS],
        descriptions="\n".join(listed) or _NOTHING,
        documentation_of_the_first=first[:DOCUMENT_CHARACTERS],
    )
    return Question(llm, prompt.reference, messages, SCHEMA, PROMPT, PURPOSE)


def check_answer(question: Question, value: Mapping[str, Any]) -> str | None:
    """At least one need, and no text that says nothing."""
    if not value["tool_needs"]:
        return "tool_needs is empty; every request needs at least one tool"
    for need in value["tool_needs"]:
        if blank := [key for key in _NEED_KEYS if not need[key].strip()]:
            return f"a need has a blank {blank[0]}"
    if any(not argument["name"].strip() for argument in value["extracted_arguments"]):
        return "an argument has no name"
    return None


def _rewritten(query_id: str, value: Mapping[str, Any]) -> RewrittenQuery:
    """An argument that is named twice is one, with what is said first."""
    arguments: dict[str, str] = {}
    for argument in value["extracted_arguments"]:
        arguments.setdefault(argument["name"].strip(), argument["description"].strip())
    return RewrittenQuery(
        query_id,
        tuple(ToolNeed(**{key: need[key].strip() for key in _NEED_KEYS}) for need in value["tool_needs"]),
        tuple(Argument(name, description) for name, description in arguments.items()),
    )
