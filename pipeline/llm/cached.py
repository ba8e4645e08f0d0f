"""Questions answered from what is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from pipeline.llm.answer_text import with_integers
from pipeline.llm.records import Answer, Check, Failure, Outcome, Question
from pipeline.llm.stores import AnswerStore, StoredOutcome

#: Questions looked up at a time.
AT_ONCE = 1_000


def stored_outcome(
    question: Question, stored: StoredOutcome | None, check: Check | None, *, retry_failed: bool
) -> Outcome | None:
    """What is stored as an outcome; None when the question is to be asked.

    A failure counts unless failed questions are asked again; an answer counts unless the check objects to it (a
    stored answer has passed the schema, which is part of its key, but perhaps another check).
    """
    if stored is None:
        return None
    if stored.value is None:
        return None if retry_failed else Failure(stored.key, stored.reason, stored.attempts, stored.usage)
    # Kept as the model wrote it, perhaps by an earlier program.
    value = with_integers(question.schema, stored.value)
    if check is not None and check(question, value) is not None:
        return None
    return Answer(stored.key, value, stored.model, stored.prompt, stored.usage, attempts=0, cached=True)


def look_up(
    store: AnswerStore, questions: Iterable[Question], check: Check | None, *, retry_failed: bool
) -> Iterator[tuple[Question, Outcome | None]]:
    """Every question with its stored outcome, in order, in bulk reads of ``AT_ONCE``."""
    rest = iter(questions)
    while chunk := list(islice(rest, AT_ONCE)):
        known = store.outcomes([question.key for question in chunk])
        for question in chunk:
            yield question, stored_outcome(question, known.get(question.key), check, retry_failed=retry_failed)


def distinct(questions: Iterable[Question]) -> dict[str, Question]:
    """Questions by key, equal ones once, in the order of their first."""
    found: dict[str, Question] = {}
    for question in questions:
        found.setdefault(question.key, question)
    return found


def in_order(questions: Iterable[Question], outcomes: Mapping[str, Outcome]) -> list[Outcome]:
    """One outcome a question."""
    return [outcomes[question.key] for question in questions]
