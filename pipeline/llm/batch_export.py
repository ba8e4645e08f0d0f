"""Write the questions that have no answer yet as a batch file in OpenAI's JSONL."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from pipeline.errors import JudgeError
from pipeline.llm.answer_text import check_schema
from pipeline.llm.cached import distinct, in_order, look_up
from pipeline.llm.records import Check, Outcome, Pending, Question
from pipeline.llm.request import AnswerFormat, chat_body
from pipeline.llm.stores import AnswerStore

#: OpenAI's bounds on one batch file: 50,000 requests, 200 MB.
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


class BatchWriter:
    """An ``Asker`` that answers from the cache and writes every other question into a batch file.

    Use it in a ``with`` block around the work; parts beyond ``MOST_LINES`` or ``MOST_BYTES`` go to ``NAME.2.jsonl``
    and so on. Nothing of the questions is kept in memory but their keys.

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
        self._file: IO[bytes] | None = None
        self._lines = self._bytes = 0
        #: The files that were written.
        self.parts: list[Path] = []

    def __enter__(self) -> BatchWriter:
        """Make the first file, so that there is one even when nothing is pending."""
        self._next_part()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the last file."""
        try:
            self._close()
        except JudgeError:
            if error is None:  # else the first error tells more
                raise

    @property
    def pending(self) -> int:
        """Questions written."""
        return len(self._written)

    def ask(self, questions: Sequence[Question], *, check: Check | None = None) -> list[Outcome]:
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
        if self._lines and (self._lines >= MOST_LINES or self._bytes + len(line) > MOST_BYTES):
            self._next_part()
        if self._file is None:
            raise RuntimeError("use BatchWriter in a with block")
        try:
            self._file.write(line)
        except OSError as error:
            raise JudgeError(f"{self.parts[-1]} cannot be written: {error.strerror}") from None
        self._lines += 1
        self._bytes += len(line)
        self._written.add(question.key)

    def _next_part(self) -> None:
        self._close()
        number = len(self.parts) + 1
        path = self._path if number == 1 else self._path.with_name(f"{self._path.stem}.{number}{self._path.suffix}")
        try:
            self._file = path.open("wb")
        except OSError as error:
            raise JudgeError(f"{path} cannot be written: {error.strerror}") from None
        self.parts.append(path)
        self._lines = self._bytes = 0

    def _close(self) -> None:
        """Close the file, which writes the rest of it."""
        file, self._file = self._file, None
        if file is None:
            return
        try:
            file.close()
        except OSError as error:
            raise JudgeError(f"{self.parts[-1]} cannot be written: {error.strerror}") from None
