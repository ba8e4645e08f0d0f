"""What a run will ask and cost, stage by stage, before anything is asked.

Stage 1 is known exactly. Of stage 2 the number is known up to ground-truth tools among the candidates, but neither the
sub-queries' texts nor the candidates are: the query's text stands for the one, tools drawn from the library for the
other. Of stage 3 it is not known how much stage 2 accepts: the paper's mean of 4.3 combinations besides C* a query is
expected, the cap is the most.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from pipeline.benchmark import Benchmark
from pipeline.llm.config import AskingConfig
from pipeline.llm.estimate import EstimateLine, estimate
from pipeline.llm.prices import Price
from pipeline.llm.records import Question
from pipeline.llm.stores import AnswerStore
from pipeline.toolex.audit import audit_question
from pipeline.toolex.decompose import decompose_question
from pipeline.toolex.expand import documents_of, tasks_of
from pipeline.toolex.questions import LazyQuestions
from pipeline.toolex.records import Combination, Subquery, Task
from pipeline.toolex.settings import Stage, ToolexSettings
from pipeline.toolex.verify import verify_question

#: Table 1 of the paper: 5.3 combinations a query, C* among them.
EXPECTED_COMBINATIONS = 4.3
#: Expected length of an answer in tokens: two truth values and a sentence; of a decomposition, so many a sub-query.
VERDICT_TOKENS = 45.0
SUBQUERY_TOKENS = 45.0
#: How far one sub-query's stand-ins lie from the next one's in the shuffled library; a prime, so that they scatter.
_STEP = 7_919


@dataclass(frozen=True)
class StageEstimate:
    """One stage.

    Attributes:
        line: expected questions, calls, tokens and cost.
        most_questions: the most there can be, every draw of a decomposition counted.
        attempts: answers that one question may take, all but the last invalid.
    """

    stage: Stage
    line: EstimateLine
    most_questions: int
    attempts: int

    @property
    def most_calls(self) -> int:
        """The most answered calls; calls that break off or are turned away are not among them."""
        return self.most_questions * self.attempts


def estimate_run(
    benchmark: Benchmark,
    settings: ToolexSettings,
    *,
    store: AnswerStore | None = None,
    prices: Mapping[str, Price] | None = None,
    answer_tokens: Mapping[str, float] | None = None,
    combinations_per_query: float = EXPECTED_COMBINATIONS,
    attempts: int = AskingConfig.attempts,
) -> list[StageEstimate]:
    """The three stages of a whole run.

    Args:
        benchmark: what is to be expanded.
        settings: how.
        store: decompositions that are there need no call; later stages cannot be looked up before they are known.
        prices: registered prices; see ``AskingConfig.prices``.
        answer_tokens: mean length of answers by stage, see ``seen_answer_tokens``.
        combinations_per_query: expected combinations besides C* that are audited for a query with alternatives.
        attempts: see ``AskingConfig.attempts``.
    """
    tasks = tasks_of(benchmark)
    if not tasks:
        return []
    documents = documents_of(benchmark)
    tools = list(documents)
    steps = list(accumulate((len(task.truth) for task in tasks), initial=0))
    per_subquery = min(settings.depth * len(settings.pool), max(0, len(tools) - 1))
    expected = {
        Stage.DECOMPOSE: SUBQUERY_TOKENS * steps[-1] / len(tasks),
        Stage.VERIFY: VERDICT_TOKENS,
        Stage.AUDIT: VERDICT_TOKENS,
    }
    lengths: dict[str, float] = {stage.value: length for stage, length in expected.items()} | dict(answer_tokens or {})

    def decomposition(number: int) -> Question:
        return decompose_question(tasks[number], documents, settings)

    shuffled = random.Random(0).sample(tools, len(tools))

    def drawn(number: int) -> str:
        return shuffled[number % len(shuffled)]

    owners = [row for row, task in enumerate(tasks) for _ in task.truth]

    def verdict(number: int) -> Question:
        place, slot = divmod(number, per_subquery)
        task = tasks[owners[place]]
        subquery = Subquery(task.query_id, 0, task.text, task.truth[place - steps[owners[place]]])
        return verify_question(subquery, drawn(place * _STEP + slot), documents, settings)

    def audited(number: int) -> Question:
        draw, row = divmod(number, len(tasks))
        task = tasks[row]
        first = row * _STEP + draw * len(task.truth)
        chosen = tuple(dict.fromkeys(drawn(first + place) for place in range(len(task.truth))))
        return audit_question(task, _steps_of(task), Combination(chosen, None), documents, settings)

    audits = round(combinations_per_query * len(tasks))
    stages: list[tuple[Stage, Sequence[Question], int, int]] = [
        (Stage.DECOMPOSE, LazyQuestions(len(tasks), decomposition), len(tasks), settings.decompose_retries + 1),
        (Stage.VERIFY, LazyQuestions(steps[-1] * per_subquery, verdict), steps[-1] * per_subquery, 1),
        (Stage.AUDIT, LazyQuestions(audits, audited), settings.cap * len(tasks), 1),
    ]
    found = []
    for stage, questions, most, draws in stages:
        lines = estimate(
            questions,
            store=store if stage is Stage.DECOMPOSE else None,
            prices=prices,
            answer_tokens=lengths,
        )
        found += [StageEstimate(stage, line, most * draws, attempts) for line in lines]
    return found


def _steps_of(task: Task) -> list[Subquery]:
    """Stand-ins for sub-queries: the query's text each time, which is rather too long than too short."""
    return [Subquery(task.query_id, position, task.text, tool) for position, tool in enumerate(task.truth)]
