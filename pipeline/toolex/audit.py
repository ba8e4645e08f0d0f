"""Stage 3, second half: which combinations carry out the whole query.

Coverage and dependency consistency are two answers, stored apart; the setting says which must be true. C* is exempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pipeline.llm.records import Answer, Asker, Outcome, Pending, Question
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.toolex.combine import Combinations
from pipeline.toolex.questions import (
    BOOLEAN,
    TEXT,
    LazyQuestions,
    ask_each,
    check_reason,
    numbered,
    strict_object,
    verdict_question,
)
from pipeline.toolex.records import (
    AuditedCombination,
    Combination,
    Subquery,
    Task,
    plain_sentence,
    provenance_of,
)
from pipeline.toolex.settings import AUDIT_PROMPT, AuditRule, Stage, ToolexSettings
from pipeline.toolex.verify import NO_ANSWER

SCHEMA = strict_object({"coverage": BOOLEAN, "dependency_consistent": BOOLEAN, "reason": TEXT})
TRUTH_REASON = "The labelled combination."


def audit_question(
    task: Task,
    subqueries: Sequence[Subquery],
    combination: Combination,
    documents: Mapping[str, str],
    settings: ToolexSettings,
) -> Question:
    """The question whether a combination carries out a query.

    Args:
        task: the query.
        subqueries: its steps in execution order.
        combination: what to judge.
        documents: documentation by tool id.
        settings: judge and bounds.
    """
    checklist = "\n".join(f"{subquery.position + 1}. {subquery.text}" for subquery in subqueries)
    reference = [subquery.tool_id for subquery in subqueries]
    return verdict_question(
        settings.audit_judge,
        AUDIT_PROMPT,
        SCHEMA,
        Stage.AUDIT,
        settings,
        query=task.text,
        instruction=task.instruction,
        checklist=checklist,
        count=str(len(combination.tool_ids)),
        tools=numbered([documents[tool] for tool in combination.tool_ids], "tool"),
        reference_count=str(len(reference)),
        reference=numbered([documents[tool] for tool in reference], "reference tool"),
    )


def audit(
    tasks: Sequence[Task],
    subqueries: Sequence[Sequence[Subquery]],
    combinations: Sequence[Combinations],
    documents: Mapping[str, str],
    settings: ToolexSettings,
    asker: Asker,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Iterator[tuple[Task, tuple[AuditedCombination, ...] | None]]:
    """The audited combinations of each query, C* first; None while one waits for a batch's answers.

    Args:
        tasks: the queries.
        subqueries: of each query.
        combinations: of each query.
        documents: documentation by tool id.
        settings: judge and rule.
        asker: who answers.
        progress: stage ``audit``, in questions.
        cancelled: see ``ask_each``.

    Raises:
        BudgetExceeded: before a call that could exceed the budget.
        Cancelled: on request.
        JudgeError: the model cannot be asked at all.
    """
    pairs = [(row, place) for row, found in enumerate(combinations) for place in range(len(found.candidates))]

    def question(number: int) -> Question:
        row, place = pairs[number]
        return audit_question(tasks[row], subqueries[row], combinations[row].candidates[place], documents, settings)

    asked = ask_each(
        asker,
        LazyQuestions(len(pairs), question),
        stage=Stage.AUDIT,
        check=check_reason,
        progress=progress,
        cancelled=cancelled,
    )
    for task, found in zip(tasks, combinations, strict=True):
        audited = [truth_combination(task, found.truth)]
        pending = False
        for combination in found.candidates:
            made, outcome = next(asked)
            if isinstance(outcome, Pending):
                pending = True
            else:
                audited.append(_audited(task, combination, made, outcome, settings.audit))
        yield task, None if pending else tuple(audited)
    next(asked, None)


def truth_combination(task: Task, truth: Combination) -> AuditedCombination:
    """C*, which nobody is asked about."""
    return AuditedCombination(task.query_id, truth, True, True, True, True, TRUTH_REASON, None)


def _audited(
    task: Task, combination: Combination, question: Question, outcome: Outcome, rule: AuditRule
) -> AuditedCombination:
    if isinstance(outcome, Pending):
        raise AssertionError("a pending outcome is no audit")
    provenance = provenance_of(Stage.AUDIT, question, outcome)
    if not isinstance(outcome, Answer):
        return AuditedCombination(task.query_id, combination, False, None, None, False, NO_ANSWER, provenance)
    coverage, consistent = outcome.value["coverage"], outcome.value["dependency_consistent"]
    accepted = coverage and (consistent or rule is AuditRule.COVERAGE)
    reason = plain_sentence(outcome.value["reason"])
    return AuditedCombination(task.query_id, combination, False, coverage, consistent, accepted, reason, provenance)
