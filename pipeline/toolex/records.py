"""What the stages hand on: sub-queries, candidates, verdicts and audited combinations, each with its provenance."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from enum import StrEnum

from pipeline.benchmark import Origin
from pipeline.llm.asking import usage_of
from pipeline.llm.records import Answer, Failure, Question, Usage
from pipeline.toolex.settings import Stage

#: Characters of a sentence that are kept.
_LONGEST = 2_000
#: Letters and symbols that are drawn as nothing: Hangul fillers and the empty Braille cell.
_FILLERS = "\u115f\u1160\u3164\uffa0\u2800"


class State(StrEnum):
    """How far a query is in a stage; ``failed`` is final unless failed questions are asked again."""

    DONE = "done"
    PENDING = "pending"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Provenance:
    """Who said something, and what asking took.

    Attributes:
        key: of the question, also its ``custom_id`` in a batch.
        prompt: ``name@version``.
        draw: number of the draw, from 0.
        attempts: calls that the answer took, also when it comes from the cache now.
        cached: whether it came from the cache now.
        failure: why there is no valid answer; "" when there is one.
    """

    stage: Stage
    judge: str
    prompt: str
    key: str
    draw: int
    attempts: int
    cached: bool
    usage: Usage
    failure: str = ""


def provenance_of(stage: Stage, question: Question, outcome: Answer | Failure) -> Provenance:
    """The provenance of an outcome."""
    usage = usage_of(outcome)
    return Provenance(
        stage,
        question.model,
        question.prompt,
        question.key,
        question.sampling.draw,
        max(outcome.attempts, usage.calls),
        isinstance(outcome, Answer) and outcome.cached,
        usage,
        outcome.reason if isinstance(outcome, Failure) else "",
    )


@dataclass(frozen=True, slots=True)
class Task:
    """One query to expand.

    Attributes:
        truth: the tools of C*, distinct, in label order.
    """

    query_id: str
    text: str
    instruction: str
    domain: str
    truth: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Subquery:
    """One step of a query; its ``position`` is its place in the order of execution, from 0."""

    query_id: str
    position: int
    text: str
    tool_id: str


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Stage 1 of one query.

    Attributes:
        subqueries: one a tool of C*, in execution order; empty unless ``state`` is done.
        draws: every draw that was made, in order.
        reason: what was wrong with the last draw; "" when nothing is.
    """

    query_id: str
    state: State
    subqueries: tuple[Subquery, ...]
    draws: tuple[Provenance, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A tool to verify for a sub-query.

    Attributes:
        rank: from 1, by reciprocal rank fusion over the pool (its place in the list of a single retriever); None for
            a ground-truth tool that nothing retrieved.
        ranks: its rank with each member of the pool; None where that did not retrieve it.
    """

    tool_id: str
    rank: int | None
    ranks: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Stage 2 on one candidate.

    Attributes:
        same_operation, inputs_available: the judge's answers; None where it gave none.
        accepted: by the rule of the settings; the ground-truth tool always.
        provenance: None for the ground-truth tool, which is accepted without a call.
    """

    subquery: Subquery
    candidate: Candidate
    origin: Origin
    same_operation: bool | None
    inputs_available: bool | None
    accepted: bool
    reason: str
    provenance: Provenance | None


@dataclass(frozen=True, slots=True)
class Combination:
    """A set of tools, one a sub-query.

    Attributes:
        tool_ids: by position; a tool that serves two sub-queries stands at the first.
        score: Σ 1 / (60 + rank) over the sub-queries; None for C* of a query without sub-queries.
    """

    tool_ids: tuple[str, ...]
    score: float | None


@dataclass(frozen=True, slots=True)
class AuditedCombination:
    """Stage 3 on one combination.

    Attributes:
        coverage, dependency_consistent: the judge's answers; None where it gave none.
        provenance: None for C*, which is exempt.
    """

    query_id: str
    combination: Combination
    is_truth: bool
    coverage: bool | None
    dependency_consistent: bool | None
    accepted: bool
    reason: str
    provenance: Provenance | None


def plain_text(text: str) -> str:
    """A sub-query as it can be kept: what a model wrote, which may hold values with spaces and lines of their own."""
    valid = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(sign if sign in "\n\t" or unicodedata.category(sign) != "Cc" else " " for sign in valid).strip()


def is_blank(text: str) -> bool:
    """Whether nothing of a text is seen: spaces, control and format characters, marks without a letter, fillers."""
    return all(unicodedata.category(sign)[0] in "CZM" or sign in _FILLERS for sign in text)


def plain_sentence(text: str) -> str:
    """A judge's sentence as it can be kept: one line of valid text without control characters, not endless."""
    valid = text[: 4 * _LONGEST].encode("utf-8", "replace").decode("utf-8")
    shown = "".join(" " if unicodedata.category(sign) == "Cc" else sign for sign in valid)
    return " ".join(shown.split())[:_LONGEST]
