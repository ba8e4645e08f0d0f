"""What is asked of a language model and what comes back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias


@dataclass(frozen=True)
class Message:
    """One turn: ``system``, ``user`` or ``assistant``."""

    role: str
    content: str


@dataclass(frozen=True)
class Sampling:
    """How an answer is drawn; the defaults are those of the MFTR paper (greedy, 2,048 tokens).

    Attributes:
        draw: number of the draw when the same question is asked several times at a temperature above 0; part of
            the key, so that every draw has an answer of its own.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int | None = 1
    max_tokens: int = 2048
    draw: int = 0


@dataclass(frozen=True)
class Question:
    """One request with everything that decides its answer.

    Attributes:
        model: litellm's name, ``provider/model``.
        prompt: name and version hash of the prompt file, for provenance.
        schema: JSON schema of the answer, an object at its root.
        schema_name: short name of the schema, ``[a-z_]+``.
        purpose: what the meter counts it under, such as ``standardize`` or ``verify``.
    """

    model: str
    prompt: str
    messages: tuple[Message, ...]
    schema: Mapping[str, Any]
    schema_name: str
    purpose: str
    sampling: Sampling = Sampling()

    @cached_property
    def key(self) -> str:
        """Content address, sha256 hex over model, messages, schema and sampling; also ``custom_id`` in a batch."""
        content = {
            "model": self.model,
            "messages": [[message.role, message.content] for message in self.messages],
            "schema": self.schema,
            "sampling": [
                self.sampling.temperature,
                self.sampling.top_p,
                self.sampling.top_k,
                self.sampling.max_tokens,
                self.sampling.draw,
            ],
        }
        text = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Usage:
    """What one or several calls used.

    Attributes:
        cost: US dollars; None when any call's price is unknown, which is not 0.
        seconds: wall time of the calls.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class Answer:
    """A valid answer.

    Attributes:
        value: the parsed object, valid against the question's schema.
        usage: of the calls that made it, also when it came from the cache (the meter counts them once).
        attempts: how many calls it took; 0 when it came from the cache.
    """

    key: str
    value: Mapping[str, Any]
    model: str
    prompt: str
    usage: Usage
    attempts: int
    cached: bool = False


@dataclass(frozen=True)
class Failure:
    """A question that got no valid answer; recorded, and asked again only on request."""

    key: str
    reason: str
    attempts: int
    usage: Usage = Usage()


@dataclass(frozen=True)
class Pending:
    """A question that waits for a batch's answers file."""

    key: str


Outcome: TypeAlias = Answer | Failure | Pending

#: Extra check of a parsed answer beyond its schema; returns what is wrong in words, or None.
Check: TypeAlias = Callable[[Question, Mapping[str, Any]], str | None]


#: Told, several times a second and on the thread that asks, how many of the distinct questions are done.
Tell: TypeAlias = Callable[[int], None]


class Asker(Protocol):
    """Whoever answers questions: a live model, the answer cache, a batch being written, a test's recorded judge."""

    def ask(
        self, questions: Sequence[Question], *, check: Check | None = None, tell: Tell | None = None
    ) -> list[Outcome]:
        """One outcome a question, in the order asked; equal questions are asked once.

        Args:
            questions: what to ask.
            check: what else an answer must meet.
            tell: told how far it is while answers are waited for. What it raises ends the asking: calls in flight
                end first and are kept.

        Raises:
            BudgetExceeded: before a call that could exceed the budget; finished answers are in the cache.
            JudgeError: the model cannot be asked at all.
        """
        ...
