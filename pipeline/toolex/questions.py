"""Questions that are made when they are asked: a stage may have hundreds of thousands, each with whole documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

from pipeline.llm.prompts import fence, load_prompt
from pipeline.llm.records import Asker, Check, Outcome, Question, Sampling
from pipeline.retrieval import progress as progress_of
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.toolex.records import is_blank
from pipeline.toolex.settings import Stage, ToolexSettings

#: Questions and characters handed over at once: the end of a part waits for its slowest answer, so parts are long, but
#: long documents must not fill the memory.
PART = 1_024
PART_CHARACTERS = 1 << 25

BOOLEAN = {"type": "boolean"}
TEXT = {"type": "string"}


class LazyQuestions(Sequence[Question]):
    """Questions by number, made each time they are read.

    Args:
        size: how many there are.
        make: the question of a number.
    """

    def __init__(self, size: int, make: Callable[[int], Question]) -> None:
        """Nothing is made yet."""
        self._size, self._make = size, make

    def __len__(self) -> int:
        """How many there are."""
        return self._size

    @overload
    def __getitem__(self, place: int) -> Question: ...
    @overload
    def __getitem__(self, place: slice) -> list[Question]: ...
    def __getitem__(self, place: int | slice) -> Question | list[Question]:
        """The question, or the questions of a slice."""
        numbers = range(self._size)[place]
        return [self._make(number) for number in numbers] if isinstance(numbers, range) else self._make(numbers)


def ask_each(
    asker: Asker,
    questions: Sequence[Question],
    *,
    stage: str,
    check: Check | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Iterator[tuple[Question, Outcome]]:
    """Every question with its outcome, asked in parts; ``ask_all`` without keeping what is past.

    Raises:
        BudgetExceeded: before a call that could exceed the budget; what was answered is kept by the asker.
        Cancelled: on request; calls in flight end first and are kept.
        JudgeError: the model cannot be asked at all.
    """
    counter = progress_of.Stage(stage, len(questions), progress, cancelled)
    for part in _parts(questions):
        yield from zip(part, asker.ask(part, check=check, tell=counter.look), strict=True)
        counter.advance(len(part))


def _parts(questions: Sequence[Question]) -> Iterator[list[Question]]:
    part: list[Question] = []
    characters = 0
    for place in range(len(questions)):
        question = questions[place]
        part.append(question)
        characters += sum(len(message.content) for message in question.messages)
        if len(part) >= PART or characters >= PART_CHARACTERS:
            yield part
            part, characters = [], 0
    if part:
        yield part


def strict_object(properties: Mapping[str, Any]) -> dict[str, Any]:
    """A schema as strict endpoints want it: every key required, no other allowed."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def numbered(documents: Sequence[str], label: str) -> str:
    """Documents one after another, each between marks of its own that carry its number from 1."""
    return "\n\n".join(fence(document, f"{label} {number}") for number, document in enumerate(documents, start=1))


def verdict_question(
    judge: str, prompt_name: str, schema: Mapping[str, Any], stage: Stage, settings: ToolexSettings, **fields: str
) -> Question:
    """A question for a verdict, within the settings' bound on its tokens.

    Args:
        judge: the language model, ``provider/model``.
        prompt_name: the prompt; its name is the schema's too.
        schema: of the answer.
        stage: which stage asks.
        settings: bounds.
        fields: what the prompt is filled with.
    """
    prompt = load_prompt(prompt_name)
    return Question(
        model=judge,
        prompt=prompt.reference,
        messages=prompt.messages(**fields),
        schema=schema,
        schema_name=prompt_name,
        purpose=stage,
        sampling=Sampling(max_tokens=settings.verdict_tokens),
    )


def check_reason(question: Question, value: Mapping[str, Any]) -> str | None:
    """A verdict without a sentence is none."""
    return "the reason is blank" if is_blank(value["reason"]) else None
