"""Stage 2: which candidates of a sub-query could take the place of its ground-truth tool.

Each (sub-query, candidate) is a request of its own, with the candidate's documentation verbatim between marks that it
cannot close: what one document says reaches no other verdict. No valid answer means no.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pipeline.benchmark import Origin
from pipeline.llm.records import Answer, Asker, Outcome, Pending, Question
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.toolex.questions import (
    BOOLEAN,
    TEXT,
    LazyQuestions,
    ask_each,
    check_reason,
    strict_object,
    verdict_question,
)
from pipeline.toolex.records import Candidate, Subquery, Verdict, plain_sentence, provenance_of
from pipeline.toolex.settings import VERIFY_PROMPT, Stage, ToolexSettings, VerifyRule

SCHEMA = strict_object({"same_operation": BOOLEAN, "inputs_available": BOOLEAN, "reason": TEXT})
#: The reason of a verdict that no judge gave; what went wrong is in its provenance.
NO_ANSWER = "The judge gave no valid answer."
TRUTH_REASON = "The labelled tool."


def verify_question(
    subquery: Subquery, tool_id: str, documents: Mapping[str, str], settings: ToolexSettings
) -> Question:
    """The question whether a tool could serve a sub-query."""
    return verdict_question(
        settings.verify_judge,
        VERIFY_PROMPT,
        SCHEMA,
        Stage.VERIFY,
        settings,
        subquery=subquery.text,
        reference=documents[subquery.tool_id],
        candidate=documents[tool_id],
    )


def verify(
    subqueries: Sequence[Subquery],
    candidates: Sequence[Sequence[Candidate]],
    documents: Mapping[str, str],
    settings: ToolexSettings,
    asker: Asker,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Iterator[tuple[Subquery, tuple[Verdict, ...] | None]]:
    """The verdicts on each sub-query's candidates, in their order; None while one waits for a batch's answers.

    Args:
        subqueries: what to serve.
        candidates: of each sub-query; the ground-truth tool among them is accepted without a call.
        documents: documentation by tool id.
        settings: judge and rule.
        asker: who answers.
        progress: stage ``verify``, in questions.
        cancelled: see ``ask_each``.

    Raises:
        BudgetExceeded: before a call that could exceed the budget.
        Cancelled: on request.
        JudgeError: the model cannot be asked at all.
    """
    pairs = [
        (row, place)
        for row, (subquery, found) in enumerate(zip(subqueries, candidates, strict=True))
        for place, candidate in enumerate(found)
        if candidate.tool_id != subquery.tool_id
    ]

    def question(number: int) -> Question:
        row, place = pairs[number]
        return verify_question(subqueries[row], candidates[row][place].tool_id, documents, settings)

    asked = ask_each(
        asker,
        LazyQuestions(len(pairs), question),
        stage=Stage.VERIFY,
        check=check_reason,
        progress=progress,
        cancelled=cancelled,
    )
    for subquery, found in zip(subqueries, candidates, strict=True):
        verdicts: list[Verdict] = []
        pending = False
        for candidate in found:
            if candidate.tool_id == subquery.tool_id:
                verdicts.append(_truth(subquery, candidate))
                continue
            made, outcome = next(asked)
            if isinstance(outcome, Pending):
                pending = True
            else:
                verdicts.append(_verdict(subquery, candidate, made, outcome, settings.verify))
        yield subquery, None if pending else tuple(verdicts)
    # The last part's progress and a late request to stop are still to be heard.
    next(asked, None)


def _truth(subquery: Subquery, candidate: Candidate) -> Verdict:
    return Verdict(subquery, candidate, Origin.GROUND_TRUTH, True, True, True, TRUTH_REASON, None)


def _verdict(
    subquery: Subquery, candidate: Candidate, question: Question, outcome: Outcome, rule: VerifyRule
) -> Verdict:
    if isinstance(outcome, Pending):
        raise AssertionError("a pending outcome is no verdict")
    provenance = provenance_of(Stage.VERIFY, question, outcome)
    if not isinstance(outcome, Answer):
        return Verdict(subquery, candidate, Origin.JUDGED, None, None, False, NO_ANSWER, provenance)
    same, inputs = outcome.value["same_operation"], outcome.value["inputs_available"]
    accepted = same and (inputs or rule is VerifyRule.FUNCTION_ONLY)
    reason = plain_sentence(outcome.value["reason"])
    return Verdict(subquery, candidate, Origin.JUDGED, same, inputs, accepted, reason, provenance)
