"""Stage 1: a query becomes one sub-query for each tool of its ground truth.

An answer must be a bijection between sub-queries and tools. One that is not is drawn again, each draw a question of
its own, so that draws are kept apart in the cache, in batches and in the provenance; after the last the query keeps C*
only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.llm.prompts import load_prompt
from pipeline.llm.records import Asker, Failure, Pending, Question, Sampling
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.toolex.questions import TEXT, LazyQuestions, ask_each, numbered, strict_object
from pipeline.toolex.records import (
    Decomposition,
    Provenance,
    State,
    Subquery,
    Task,
    is_blank,
    plain_text,
    provenance_of,
)
from pipeline.toolex.settings import DECOMPOSE_PROMPT, Stage, ToolexSettings

SCHEMA = strict_object(
    {"subqueries": {"type": "array", "items": strict_object({"tool": {"type": "integer"}, "text": TEXT})}}
)


def decompose_question(task: Task, documents: Mapping[str, str], settings: ToolexSettings, draw: int = 0) -> Question:
    """The question for one query.

    Tools are told by number: ids are opaque, and a model that copies one wrongly would fail for nothing.

    Args:
        task: the query.
        documents: documentation by tool id.
        settings: judge and bounds.
        draw: 0 is greedy, the others are at ``settings.retry_temperature``.
    """
    prompt = load_prompt(DECOMPOSE_PROMPT)
    sampling = Sampling(max_tokens=settings.decompose_tokens)
    if draw:
        sampling = Sampling(settings.retry_temperature, 1.0, None, settings.decompose_tokens, draw)
    return Question(
        model=settings.decompose_judge,
        prompt=prompt.reference,
        messages=prompt.messages(
            query=task.text,
            instruction=task.instruction,
            count=str(len(task.truth)),
            tools=numbered([documents[tool] for tool in task.truth], "tool"),
        ),
        schema=SCHEMA,
        schema_name=DECOMPOSE_PROMPT,
        purpose=Stage.DECOMPOSE,
        sampling=sampling,
    )


def bijection_problem(answer: Mapping[str, Any], tools: int) -> str | None:
    """Why the answer is no bijection onto the tools 1 to ``tools``; None when it is one."""
    steps = answer["subqueries"]
    numbers = [step["tool"] for step in steps]
    if len(steps) != tools:
        return f"{len(steps)} sub-queries for {tools} tools"
    if sorted(numbers) != list(range(1, tools + 1)):
        return f"the sub-queries name the tools {', '.join(map(str, numbers))[:100]} instead of each from 1 to {tools}"
    if any(is_blank(step["text"]) for step in steps):
        return "a sub-query is blank"
    return None


def decompose(
    tasks: Sequence[Task],
    documents: Mapping[str, str],
    settings: ToolexSettings,
    asker: Asker,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> list[Decomposition]:
    """Stage 1 of every query, in their order.

    Args:
        tasks: the queries.
        documents: documentation by tool id.
        settings: judge and retries.
        asker: who answers; a query that waits for a batch's answers is pending.
        progress: stage ``decompose``, in questions of one draw.
        cancelled: see ``ask_each``.

    Raises:
        BudgetExceeded: before a call that could exceed the budget.
        Cancelled: on request.
        JudgeError: the model cannot be asked at all.
    """
    found: list[Decomposition | None] = [None] * len(tasks)
    draws: list[list[Provenance]] = [[] for _ in tasks]
    reasons = [""] * len(tasks)
    rest = list(range(len(tasks)))
    for draw in range(settings.decompose_retries + 1):
        questions = LazyQuestions(
            len(rest),
            lambda number, rest=rest, draw=draw: decompose_question(  # type: ignore[misc]
                tasks[rest[number]], documents, settings, draw
            ),
        )
        asked = ask_each(asker, questions, stage=Stage.DECOMPOSE, progress=progress, cancelled=cancelled)
        again: list[int] = []
        for place, (question, outcome) in zip(rest, asked, strict=True):
            task = tasks[place]
            if isinstance(outcome, Pending):
                found[place] = Decomposition(task.query_id, State.PENDING, (), tuple(draws[place]), reasons[place])
                continue
            draws[place].append(provenance_of(Stage.DECOMPOSE, question, outcome))
            if isinstance(outcome, Failure):
                problem: str | None = outcome.reason
            else:
                problem = bijection_problem(outcome.value, len(task.truth))
            if problem is not None:
                reasons[place] = problem
                again.append(place)
                continue
            subqueries = tuple(
                # Whoever answered may have written 1.0 for 1.
                Subquery(task.query_id, position, plain_text(step["text"]), task.truth[int(step["tool"]) - 1])
                for position, step in enumerate(outcome.value["subqueries"])  # type: ignore[union-attr]
            )
            found[place] = Decomposition(task.query_id, State.DONE, subqueries, tuple(draws[place]))
        rest = again
        if not rest:
            break
    return [
        Decomposition(task.query_id, State.FAILED, (), tuple(draws[place]), reasons[place]) if known is None else known
        for place, (task, known) in enumerate(zip(tasks, found, strict=True))
    ]
