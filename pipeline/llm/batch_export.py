"""Write the questions that have no answer yet as a batch file in OpenAI's JSONL."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from pipeline.errors import JudgeError
from pipeline.llm.answer_text import check_schema
from pipeline.llm.cached import distinct, in_order, look_up
from pipeline.llm.records import Check, Outcome, Pending, Question, Tell
from pipeline.llm.request import AnswerFormat, chat_body
from pipeline.llm.stores import AnswerStore

#: OpenAI's bounds on one batch file: 50,000 requests, 200 MB, and one model.
MOST_LINES = 50_000
MOST_BYTES = 190_000_000
#: OpenAI's models that think first take no sampling arguments and count their thoughts as part of the answer.
_REASONING = re.compile(r"openai/(o[0-9]|gpt-5)")


def batch_line(question: Question, answer_format: AnswerFormat = AnswerFormat.JSON_SCHEMA) -> str:
    """One request; its ``custom_id`` is the question's key, its model goes without the provider."""
    model = question.model.split("/", 1)[-1]
    body = {"model": model} | chat_body(question, answer_format)
    if _REASONING.match(question.model):
        # Live, litellm makes this change.
        body["max_completion_tokens"] = body.pop("max_tokens")
        body = {name: value for name, value in body.items() if name not in {"temperature", "top_p"}}
    request = {"custom_id": question.key, "method": "POST", "url": "/v1/chat/completions", "body": body}
    return json.dumps(request, ensure_ascii=True, separators=(",", ":"))


@dataclass
class _Part:
    """A file that is being written."""

    path: Path
    file: IO[bytes]
    lines: int = 0
    bytes: int = 0


class BatchWriter:
    """An ``Asker`` that answers from the cache and writes every other question into a batch file.

    Use it in a ``with`` block around the work; parts beyond ``MOST_LINES`` or ``MOST_BYTES``, and those for another
    model, go to ``NAME.2.jsonl`` and so on. Nothing of the questions is kept in memory but their keys.

    Args:
        store: the answer cache.
        path: the batch file; replaced if it is there.
        answer_format: how the schema is told; JSON objects for servers that take no schemas.
        retry_failed: write questions again that are recorded as failed.
    """

    def __init__(
        self,
        store: AnswerStore,
        path: Path,
        *,
        answer_format: AnswerFormat = AnswerFormat.JSON_SCHEMA,
        retry_failed: bool = False,
    ) -> None:
        """Nothing is written yet."""
        self._store, self._path, self._format, self._retry_failed = store, path, answer_format, retry_failed
        self._written: set[str] = set()
        self._inside = False
        #: The part that each model's next question goes to; under "" the first, until a model takes it.
        self._open: dict[str, _Part] = {}
        #: The files that were written.
        self.parts: list[Path] = []

    def __enter__(self) -> BatchWriter:
        """Make the first file, so that there is one even when nothing is pending."""
        self._inside = True
        self._open[""] = self._next_part()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every file, which writes the rest of it.

        Raises:
            JudgeError: one cannot be written.
        """
        self._inside = False
        problems = []
        while self._open:
            try:
                _close(self._open.popitem()[1])
            except JudgeError as problem:
                problems.append(problem)
        if problems and error is None:  # else the first error tells more
            raise problems[0]

    @property
    def pending(self) -> int:
        """Questions written."""
        return len(self._written)

    def ask(
        self, questions: Sequence[Question], *, check: Check | None = None, tell: Tell | None = None
    ) -> list[Outcome]:
        """See ``Asker``: answers and failures of the cache, ``Pending`` for what was written.

        Raises:
            JudgeError: a schema cannot be used, or the file cannot be written.
        """
        unique = distinct(questions)
        outcomes: dict[str, Outcome] = {}
        for question, known in look_up(self._store, unique.values(), check, retry_failed=self._retry_failed):
            if known is None:
                self._write(question)
                known = Pending(question.key)
            outcomes[question.key] = known
        return in_order(questions, outcomes)

    def _write(self, question: Question) -> None:
        if question.key in self._written:
            return
        check_schema(question.schema)
        line = batch_line(question, self._format).encode("ascii") + b"\n"
        part = self._part_for(question.model, len(line))
        try:
            part.file.write(line)
        except OSError as error:
            raise JudgeError(f"{part.path} cannot be written: {error.strerror}") from None
        part.lines += 1
        part.bytes += len(line)
        self._written.add(question.key)

    def _part_for(self, model: str, size: int) -> _Part:
        """The part with room for a line of this size, which holds nothing for other models."""
        if not self._inside:
            raise RuntimeError("use BatchWriter in a with block")
        part = self._open.get(model) or self._open.pop("", None)
        if part is not None and part.lines and (part.lines >= MOST_LINES or part.bytes + size > MOST_BYTES):
            del self._open[model]
            _close(part)
            part = None
        self._open[model] = part or self._next_part()
        return self._open[model]

    def _next_part(self) -> _Part:
        number = len(self.parts) + 1
        path = self._path if number == 1 else self._path.with_name(f"{self._path.stem}.{number}{self._path.suffix}")
        try:
            part = _Part(path, path.open("wb"))
        except OSError as error:
            raise JudgeError(f"{path} cannot be written: {error.strerror}") from None
        self.parts.append(path)
        return part


def _close(part: _Part) -> None:
    """Close a file, which writes the rest of it."""
    try:
        part.file.close()
    except OSError as error:
        raise JudgeError(f"{part.path} cannot be written: {error.strerror}") from None
