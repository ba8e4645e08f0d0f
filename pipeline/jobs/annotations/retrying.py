"""Asking once more what got no valid answer: the record of those failures is taken away, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.jobs.annotations.working import Chunk, Work, expand_chunk
from pipeline.jobs.llm_answers import StoredAnswers
from pipeline.llm.cached import distinct, in_order, look_up
from pipeline.llm.records import Check, Failure, Outcome, Pending, Question, Tell
from pipeline.llm.stores import AnswerStore
from pipeline.toolex.records import State
from pipeline.toolex.settings import Stage
from store.access import llm


class KnownAnswers:
    """An ``Asker`` that says what is recorded and asks nobody.

    Args:
        store: the answer cache.
    """

    def __init__(self, store: AnswerStore) -> None:
        """Nothing is read yet."""
        self._store = store
        #: Stage → questions that came up and are recorded as failed.
        self.failed: dict[str, set[str]] = {stage.value: set() for stage in Stage}

    def ask(
        self, questions: Sequence[Question], *, check: Check | None = None, tell: Tell | None = None
    ) -> list[Outcome]:
        """See ``Asker``; ``Pending`` for what nobody answered yet."""
        outcomes: dict[str, Outcome] = {}
        for question, known in look_up(self._store, distinct(questions).values(), check, retry_failed=False):
            outcomes[question.key] = known or Pending(question.key)
            if isinstance(known, Failure):
                self.failed[question.purpose].add(question.key)
        return in_order(questions, outcomes)


def forget_failures(work: Work, chunk: Chunk) -> int:
    """Have a chunk's failures asked again when it is done next; returns how many there are.

    A draw of a decomposition that failed counts only where no later draw made up for it: else the query would get
    other sub-queries, and every question about the old ones was asked for nothing.
    """
    asker = KnownAnswers(StoredAnswers(work.site.database))
    expansion = expand_chunk(work, chunk, asker)
    decompositions = {
        draw.key
        for query in expansion.queries
        if query.decomposition.state is not State.DONE
        for draw in query.decomposition.draws
        if draw.failure
    }
    keys = decompositions | asker.failed[Stage.VERIFY] | asker.failed[Stage.AUDIT]
    with work.site.database.session() as session:
        return llm.forget_failures(session, keys=keys)
