"""PLUTo (Huang et al. 2024) as a retrieval baseline: Plan-and-Retrieve over tools from Edit-and-Ground.

A query is planned in up to three hops. Each hop draws five next actions at temperature 0.7; the plan ends when more
than half of them vote to stop, or when every action resembles one that was used (TF-IDF, 2-means). One of the others is
picked at random, five tools are retrieved for it by their descriptions and their use cases (each min-max scaled over
the corpus, then added), and the model keeps the relevant ones.

A query's list is its kept tools by hop, then score; then, under ``Fill.FULL_DOC``, the tools of the Full-Doc ranking
of the query that are not listed yet. Under ``Fill.NONE`` it ends with the kept tools, as in the MFTR paper, whose
PLUTo recall stays constant as K grows. Scores only say the place: the first of a list has the list's length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from pipeline.baselines.pluto_actions import MOST, fresh_actions, majority_stops, pick
from pipeline.baselines.pluto_grounding import GroundedTools, GroundingSettings
from pipeline.baselines.result import Failed
from pipeline.baselines.text_scores import FloatArray, TextScores, parts
from pipeline.errors import UsageError
from pipeline.llm.asking import ask_all, pending_count, total_usage, usage_of
from pipeline.llm.prompts import fence, load_prompt
from pipeline.llm.records import Answer, Asker, Failure, Outcome, Question, Sampling, Usage
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback, Stage
from pipeline.retrieval.rankings import Rankings
from pipeline.run import Run

PLAN_PROMPT = "pluto_plan"
SELECT_PROMPT = "pluto_select"

PLAN_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"stop": {"type": "boolean"}, "action": {"type": "string"}},
    "required": ["stop", "action"],
    "additionalProperties": False,
}


def select_schema(shown: int) -> Mapping[str, Any]:
    """The answer to which of so many tools are relevant, by number."""
    numbers = {"type": "integer", "enum": list(range(1, shown + 1))}
    return {
        "type": "object",
        "properties": {"relevant": {"type": "array", "items": numbers}},
        "required": ["relevant"],
        "additionalProperties": False,
    }


class Fill(StrEnum):
    """What follows the kept tools in a query's list."""

    FULL_DOC = "full-doc"
    NONE = "none"


@dataclass(frozen=True)
class PlutoSettings:
    """Settings of PLUTo.

    Attributes:
        hops: actions of a plan at most.
        draws: next actions drawn at each hop.
        temperature: of the draws.
        retrieved: tools retrieved for an action.
        document_characters: longer documents are cut there before they are shown.
        fill: see ``Fill``.
        seed: of the choice among actions.
        grounding: of Edit-and-Ground.
    """

    hops: int = 3
    draws: int = 5
    temperature: float = 0.7
    retrieved: int = 5
    document_characters: int = 2_000
    fill: Fill = Fill.FULL_DOC
    seed: int = 42
    grounding: GroundingSettings = field(default_factory=GroundingSettings)

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing.

        Raises:
            UsageError: a count is below 1, or more actions than can be told apart.
        """
        if min(self.hops, self.draws, self.retrieved) < 1:
            raise UsageError("Hops, draws and retrieved tools of PLUTo must each be at least 1.")
        if self.hops - 1 + self.draws > MOST:
            raise UsageError(
                f"{self.draws} draws over {self.hops} hops give more than {MOST} actions to tell apart; take fewer."
            )


@dataclass(frozen=True, eq=False)
class Plans:
    """What Plan-and-Retrieve found.

    Attributes:
        kept: tools of each query that the model kept, by hop, then score; positions.
        actions: of each query, in order.
        planned: queries with a valid answer to what comes first.
        failures: what the model gave no valid answer for.
        calls: of each query, with the draws of one prompt counted once, as the MFTR paper counts them.
        requests: of each query, every draw counted.
        seconds: what each query waited: the slowest draw of each hop, and the selection.
        pending: distinct questions that wait for a batch's answers; the rest is final only when it is 0.
        usage: of the answers.
    """

    kept: list[list[int]]
    actions: list[list[str]]
    planned: int
    failures: tuple[Failed, ...]
    calls: list[int]
    requests: list[int]
    seconds: list[float]
    pending: int
    usage: Usage


@dataclass(eq=False)
class _Plan:
    """A query's plan as far as it is."""

    name: str
    query: str
    steps: list[tuple[str, list[int]]] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    calls: int = 0
    requests: int = 0
    seconds: float = 0.0
    planned: bool = False
    ended: bool = False


def plan_and_retrieve(
    queries: Sequence[str],
    names: Sequence[str],
    tools: GroundedTools,
    tool_names: Sequence[str],
    descriptions: TextScores,
    use_cases: TextScores,
    asker: Asker,
    llm: str,
    settings: PlutoSettings,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Plans:
    """Plan all queries hop by hop, so that each hop's questions go out together.

    Args:
        queries: their texts.
        names: their ids, for the record of failures.
        tools: see ``ground``.
        tool_names: a short name of each tool, shown with the actions that found it.
        descriptions: retriever over ``tools.descriptions``.
        use_cases: retriever over all use cases, tool after tool.
        asker: who answers.
        llm: the language model, ``provider/model``.
        settings: see ``PlutoSettings``.
        progress: stage ``planning``, in queries times hops.
        cancelled: asked between parts.

    Raises:
        BudgetExceeded: before a call that could exceed the budget.
        Cancelled: on request.
        JudgeError: the model cannot be asked at all.
    """
    plans = [_Plan(name, query) for name, query in zip(names, queries, strict=True)]
    stage = Stage("planning", len(plans) * settings.hops, progress, cancelled)
    failures: list[Failed] = []
    outcomes: list[Outcome] = []
    for hop in range(settings.hops if tools.descriptions else 0):
        active = [plan for plan in plans if not plan.ended]
        votes = _ask_votes(active, tool_names, asker, llm, settings, cancelled)
        outcomes += [vote for drawn in votes for vote in drawn]
        if pending_count(outcomes):
            break
        chosen = [_next_action(plan, drawn, hop, settings, failures) for plan, drawn in zip(active, votes, strict=True)]
        going = [(plan, action) for plan, action in zip(active, chosen, strict=True) if action is not None]
        found = _retrieve(
            [action for _, action in going], tools, descriptions, use_cases, settings.retrieved, cancelled
        )
        asked = [
            _select_question(plan.query, action, [tools.descriptions[t] for t in five], llm, settings)
            for (plan, action), five in zip(going, found, strict=True)
        ]
        answers = ask_all(asker, asked, stage="selection", cancelled=cancelled)
        outcomes += answers
        if pending_count(answers):
            break
        for (plan, action), five, answer in zip(going, found, answers, strict=True):
            _take(plan, action, five, answer, failures)
        stage.advance(len(plans))
        if not going:
            break
    return Plans(
        [plan.kept for plan in plans],
        [[action for action, _ in plan.steps] for plan in plans],
        sum(plan.planned for plan in plans),
        tuple(failures),
        [plan.calls for plan in plans],
        [plan.requests for plan in plans],
        [plan.seconds for plan in plans],
        pending_count(outcomes),
        total_usage(usage_of(outcome) for outcome in outcomes),
    )


def _ask_votes(
    active: Sequence[_Plan],
    tool_names: Sequence[str],
    asker: Asker,
    llm: str,
    settings: PlutoSettings,
    cancelled: CancelledCallback | None,
) -> list[list[Outcome]]:
    """The drawn next actions of each plan."""
    asked = [_plan_question(plan, tool_names, llm, draw, settings) for plan in active for draw in range(settings.draws)]
    outcomes = ask_all(asker, asked, stage="actions", check=_check_action, cancelled=cancelled)
    width = settings.draws
    return [outcomes[start : start + width] for start in range(0, len(outcomes), width)]


def _next_action(
    plan: _Plan, drawn: Sequence[Outcome], hop: int, settings: PlutoSettings, failures: list[Failed]
) -> str | None:
    """The plan's next action; None when it ends."""
    plan.calls += 1
    plan.requests += len(drawn)
    plan.seconds += max(usage_of(outcome).seconds for outcome in drawn)
    values = [outcome.value for outcome in drawn if isinstance(outcome, Answer)]
    plan.planned = plan.planned or bool(values)
    if not values:
        reason = next(outcome.reason for outcome in drawn if isinstance(outcome, Failure))
        failures.append(Failed(plan.name, f"planning hop {hop + 1}", reason, "its plan ends there"))
    actions = [" ".join(str(value["action"]).split()) for value in values if not value["stop"]]
    left = fresh_actions([action for action, _ in plan.steps], actions)
    if majority_stops([bool(value["stop"]) for value in values]) or not left:
        plan.ended = True
        return None
    return pick(left, settings.seed, hop, plan.query)


def _take(plan: _Plan, action: str, five: Sequence[int], answer: Outcome, failures: list[Failed]) -> None:
    """Append the kept of the retrieved tools, best first, to the plan."""
    plan.calls += 1
    plan.requests += 1
    plan.seconds += usage_of(answer).seconds
    relevant = list(five)
    if isinstance(answer, Answer):
        numbers = set(answer.value["relevant"])
        relevant = [tool for number, tool in enumerate(five, start=1) if number in numbers]
    elif isinstance(answer, Failure):
        step = f"selecting tools at hop {len(plan.steps) + 1}"
        failures.append(Failed(plan.name, step, answer.reason, "all retrieved tools are kept"))
    plan.steps.append((action, relevant))
    plan.kept += [tool for tool in relevant if tool not in plan.kept]


def _retrieve(
    actions: Sequence[str],
    tools: GroundedTools,
    descriptions: TextScores,
    use_cases: TextScores,
    count: int,
    cancelled: CancelledCallback | None,
) -> list[list[int]]:
    """The best tools of each action by the ranking rule, over both scores."""
    distinct = list(dict.fromkeys(actions))
    owned = np.array([len(found) for found in tools.use_cases], dtype=np.int64)
    best: dict[str, list[int]] = {}
    stage = Stage("search", len(distinct), None, cancelled)
    for part in parts(len(distinct), len(descriptions) + len(use_cases)):
        batch = distinct[part]
        scores = min_max(descriptions.scores(batch)) + min_max(_by_tool(use_cases.scores(batch), owned))
        for action, row in zip(batch, scores, strict=True):
            # Ascending and stable, read backwards: score descending, then position descending.
            best[action] = np.argsort(row, kind="stable")[::-1][:count].tolist()
        stage.advance(len(batch))
    return [best[action] for action in actions]


def min_max(scores: FloatArray) -> FloatArray:
    """Each row scaled to 0…1; a row of equal scores becomes 0."""
    if not scores.shape[1]:
        return scores
    low = scores.min(axis=1, keepdims=True)
    width = scores.max(axis=1, keepdims=True) - low
    scaled: FloatArray = (scores - low) / np.where(width > 0, width, np.float32(1))
    return scaled


def _by_tool(scores: FloatArray, owned: np.ndarray[Any, np.dtype[np.int64]]) -> FloatArray:
    """The best score among each tool's use cases; the lowest of the row for tools without any."""
    out = np.zeros((len(scores), len(owned)), dtype=np.float32)
    if scores.shape[1]:
        out[:] = scores.min(axis=1, keepdims=True)
        have = np.flatnonzero(owned)
        starts = np.concatenate([[0], np.cumsum(owned[have])[:-1]])
        out[:, have] = np.maximum.reduceat(scores, starts, axis=1)
    return out


def ordered(kept: Sequence[Sequence[int]], full_doc: Run | None, depth: int) -> Rankings:
    """Kept tools first, then the Full-Doc ranking's others; see the module.

    Args:
        kept: of each query, by hop, then score.
        full_doc: a run of the same queries; None ends every list with its kept tools.
        depth: results of a query at most.
    """
    lists = []
    for row, tools in enumerate(kept):
        after = [] if full_doc is None else full_doc.tools[full_doc.offsets[row] : full_doc.offsets[row + 1]].tolist()
        lists.append(list(dict.fromkeys([*tools, *after]))[:depth])
    out = Rankings.empty(len(lists), max(map(len, lists), default=0))
    for row, tools in enumerate(lists):
        out.tools[row, : len(tools)] = tools
        out.scores[row, : len(tools)] = np.arange(len(tools), 0, -1)
        out.counts[row] = len(tools)
    return out


def _plan_question(plan: _Plan, tool_names: Sequence[str], llm: str, draw: int, settings: PlutoSettings) -> Question:
    lines = [
        f"{number}. {action} (tools: {', '.join(tool_names[tool] for tool in tools) or 'none found'})"
        for number, (action, tools) in enumerate(plan.steps, start=1)
    ]
    prompt = load_prompt(PLAN_PROMPT)
    messages = prompt.messages(task=plan.query, actions_so_far="\n".join(lines) or "(none)")
    sampling = Sampling(temperature=settings.temperature, top_k=None, draw=draw)
    return Question(llm, prompt.reference, messages, PLAN_SCHEMA, "pluto_plan", "pluto", sampling)


def _select_question(query: str, action: str, documents: Sequence[str], llm: str, settings: PlutoSettings) -> Question:
    prompt = load_prompt(SELECT_PROMPT)
    shown = [fence(text[: settings.document_characters], f"tool {n}") for n, text in enumerate(documents, start=1)]
    messages = prompt.messages(task=query, action=action, tools="\n\n".join(shown))
    return Question(llm, prompt.reference, messages, select_schema(len(shown)), "pluto_select", "pluto")


def _check_action(question: Question, value: Mapping[str, Any]) -> str | None:
    return None if value["stop"] or str(value["action"]).strip() else "neither an action nor a stop"
