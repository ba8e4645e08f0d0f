"""Read a batch's answers file: every answer goes through the same validation as a live one."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from pipeline.errors import JudgeError
from pipeline.llm.answer_text import LONGEST, InvalidAnswer, parsed_answer
from pipeline.llm.cached import distinct, in_order, look_up
from pipeline.llm.prices import Price, price_of
from pipeline.llm.providers import redacted
from pipeline.llm.records import Answer, Check, Failure, Outcome, Pending, Question, Tell, Usage
from pipeline.llm.stores import AnswerStore, Budget, CallState, EndedCall, PlannedCall, StoredOutcome
from pipeline.llm.tokens import believable

#: A longer line holds no answer that would be accepted.
_LONGEST_LINE = 4 * LONGEST
_WRITES_AT_ONCE = 500


@dataclass(frozen=True)
class LineProblem:
    """What is wrong with a line of the answers file.

    Attributes:
        line: from 1.
        kind: ``malformed``, ``duplicate``, ``error`` (the provider's), ``invalid`` (no valid answer) or ``unknown``
            (nothing asked for it).
    """

    line: int
    kind: str
    message: str


@dataclass(frozen=True)
class ImportReport:
    """What became of a batch's answers.

    Attributes:
        lines: of the file, blank ones left out.
        accepted: answers that are new in the cache.
        known: lines whose question was answered before: importing a file twice changes nothing.
        missing: questions that neither the cache nor the file answers.
        problems: in the order of the lines.
    """

    lines: int
    accepted: int
    known: int
    missing: int
    problems: tuple[LineProblem, ...]

    @property
    def counts(self) -> Mapping[str, int]:
        """Problems by kind."""
        return Counter(problem.kind for problem in self.problems)


class BatchAnswers:
    """An ``Asker`` that answers from the cache and from a batch's answers file.

    Do the same work with it that was exported: what the file answers goes into the cache, what it does not is
    ``Pending``. A line with an error or without a valid answer makes its question failed; another file with a good
    answer, or asking for it live, puts that right. Lines are read when their question comes up, so memory holds an
    index only.

    Args:
        store: the answer cache with the ledger of calls.
        path: the answers file, as the provider returns it; several can follow one another in one file.
        budget: its scope is what the calls are counted under; limits do not stop an import.
        prices: registered prices; see ``AskingConfig.prices``.

    Raises:
        JudgeError: the file cannot be read.
    """

    def __init__(
        self, store: AnswerStore, path: Path, budget: Budget, prices: Mapping[str, Price] | None = None
    ) -> None:
        """Read the file once for its index."""
        self._store, self._path, self._budget = store, path, budget
        self._prices = prices or {}
        self._problems: list[LineProblem] = []
        self._asked: set[str] = set()
        self._missing: set[str] = set()
        #: Further lines of a key that has several, and the line that counts where it is not the first.
        self._others: dict[str, list[tuple[int, int]]] = {}
        self._counts: dict[str, int] = {}
        self._accepted = self._known = self._lines = 0
        try:
            self._index = self._indexed()
            self._file = path.open("rb")
        except OSError as error:
            raise JudgeError(f"the answers file {path} cannot be read: {error.strerror}") from None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def ask(
        self, questions: Sequence[Question], *, check: Check | None = None, tell: Tell | None = None
    ) -> list[Outcome]:
        """See ``Asker``: never asks anybody."""
        unique = distinct(questions)
        outcomes: dict[str, Outcome] = {}
        calls: list[tuple[PlannedCall, EndedCall]] = []
        kept: list[StoredOutcome] = []
        for question, known in look_up(self._store, unique.values(), check, retry_failed=False):
            key = question.key
            first = key not in self._asked
            self._asked.add(key)
            place = self._index.get(key)
            if place is not None and not isinstance(known, Answer):
                outcomes[key] = self._imported(question, place, check, calls, kept, told=not first)
            elif known is not None:
                self._known += place is not None and first
                outcomes[key] = known
            else:
                self._missing.add(key)
                outcomes[key] = Pending(key)
            if len(kept) >= _WRITES_AT_ONCE:
                self._store.record_batch(calls, kept, self._budget)
                calls, kept = [], []
        if kept:
            self._store.record_batch(calls, kept, self._budget)
        return in_order(questions, outcomes)

    def report(self) -> ImportReport:
        """What became of the lines, once all the work was done with this asker."""
        unknown = [
            LineProblem(line, "unknown", f"nothing here asks the question {key[:12]}…; it was left out")
            for key, (_, line) in self._index.items()
            if key not in self._asked
        ]
        again = [
            LineProblem(line, "duplicate", f"{_shown(key)} was answered on line {counts}, which counts")
            for key, others in self._others.items()
            for counts in (self._counts.get(key, self._index[key][1]),)
            for _, line in (self._index[key], *others)
            if line != counts
        ]
        problems = sorted([*self._problems, *unknown, *again], key=lambda problem: problem.line)
        return ImportReport(self._lines, self._accepted, self._known, len(self._missing), tuple(problems))

    def _indexed(self) -> dict[str, tuple[int, int]]:
        """Offset and number of each key's first line."""
        index: dict[str, tuple[int, int]] = {}
        with self._path.open("rb") as file:
            offset, number = 0, 0
            while line := file.readline(_LONGEST_LINE + 1):
                start, number = offset, number + 1
                offset += len(line)
                if len(line) > _LONGEST_LINE:
                    self._problem(number, "malformed", f"the line has more than {_LONGEST_LINE:,} bytes")
                    while line and not line.endswith(b"\n"):
                        line = file.readline(_LONGEST_LINE)
                        offset += len(line)
                    self._lines += 1
                    continue
                if not line.strip():
                    continue
                self._lines += 1
                found = _object(line)
                key = found.get("custom_id")
                if not isinstance(key, str):
                    self._problem(number, "malformed", "the line is no JSON object with a custom_id")
                elif not found.get("error") and not isinstance(found.get("response"), dict):
                    self._problem(number, "malformed", f"the line of {_shown(key)} has neither a response nor an error")
                elif key in index:
                    self._others.setdefault(key, []).append((start, number))
                else:
                    index[key] = (start, number)
        return index

    def _imported(
        self,
        question: Question,
        place: tuple[int, int],
        check: Check | None,
        calls: list[tuple[PlannedCall, EndedCall]],
        kept: list[StoredOutcome],
        *,
        told: bool,
    ) -> Outcome:
        key = question.key
        read = self._read(question, place, check)
        for other in self._others.get(key, ()):
            # An answer counts wherever it stands; without one, the first line does.
            if read.value is not None:
                break
            again = self._read(question, other, check)
            if again.value is not None:
                read, self._counts[key] = again, other[1]
        value, reason, raw = read.value, read.reason, read.raw
        if reason and not told:
            self._problem(place[1], read.kind, reason)
        usage = self._usage(question, _object(raw))
        # The same line is the same call, however often the file is read.
        call_id = "batch-" + hashlib.sha256(self._budget.scope.encode() + b"\n" + raw).hexdigest()[:32]
        planned = PlannedCall(call_id, key, question.purpose, question.model, 1, None)
        ended = EndedCall(
            planned.id, CallState.BATCH, usage.prompt_tokens, usage.completion_tokens, usage.cost, usage.seconds
        )
        calls.append((planned, ended))
        kept.append(StoredOutcome(key, value, reason, question.model, question.prompt, question.purpose, 1, usage))
        if value is None:
            return Failure(key, reason, 1, usage)
        self._accepted += 1
        return Answer(key, value, question.model, question.prompt, usage, attempts=1)

    def _read(self, question: Question, place: tuple[int, int], check: Check | None) -> _Line:
        self._file.seek(place[0])
        raw = self._file.readline(_LONGEST_LINE).strip()
        try:
            text, finish = _completion(_object(raw))
        except _ProviderError as error:
            return _Line(raw, None, redacted(str(error)), "error")
        try:
            return _Line(raw, parsed_answer(question, text, finish, check))
        except InvalidAnswer as problem:
            return _Line(raw, None, redacted(f"no valid answer: {problem}"), "invalid")

    def _usage(self, question: Question, line: Mapping[str, Any]) -> Usage:
        told = _part(_part(_part(line, "response"), "body"), "usage")
        prompt, completion = (told.get(name) for name in ("prompt_tokens", "completion_tokens"))
        price = price_of(question.model, self._prices)
        answered = _part(line, "response").get("status_code") == 200
        if (
            not _is_count(prompt)
            or not _is_count(completion)
            or (answered and not believable(question, prompt, completion, "an answer"))
        ):
            # An error costs nothing; an answer without counts has an unknown price.
            return Usage(1, 0, 0, None if answered else 0.0, 0.0)
        cost = None if price is None else price.cost(prompt, completion, batch=True)
        return Usage(1, prompt, completion, cost, 0.0)

    def _problem(self, line: int, kind: str, message: str) -> None:
        self._problems.append(LineProblem(line, kind, message))


@dataclass(frozen=True)
class _Line:
    """A line with its valid answer, or what is wrong with it and of which kind that is."""

    raw: bytes
    value: dict[str, Any] | None
    reason: str = ""
    kind: str = ""


class _ProviderError(Exception):
    """The provider did not answer this request."""


def _completion(line: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Text and finish reason of an answer's line."""
    error, response = line.get("error"), _part(line, "response")
    if error:
        raise _ProviderError(f"the provider says: {_part(line, 'error').get('message') or error}")
    status, body = response.get("status_code"), _part(response, "body")
    if status != 200:
        said = _part(body, "error").get("message") or "nothing more"
        raise _ProviderError(f"the provider answered with status {status!r}: {said}")
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    text, finish = _part(choice, "message").get("content"), choice.get("finish_reason")
    return (text if isinstance(text, str) else None), (finish if isinstance(finish, str) else None)


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _part(mapping: Mapping[str, Any], name: str) -> dict[str, Any]:
    part = mapping.get(name)
    return part if isinstance(part, dict) else {}


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31


def _shown(key: str) -> str:
    return redacted(key, longest=24)
