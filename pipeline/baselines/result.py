"""What a baseline hands back: a run, or how many questions it waits for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pipeline.llm.records import Usage
from pipeline.retrieval.retrieve import Retrieval


@dataclass(frozen=True)
class Failed:
    """Something a language model gave no valid answer for, and what was done instead.

    Attributes:
        subject: id of the tool or the query.
        what: the step that failed, such as ``condensing``.
        reason: the asker's words.
        instead: what stands in its place, in words.
    """

    subject: str
    what: str
    reason: str
    instead: str


@dataclass(frozen=True, eq=False)
class BaselineResult:
    """A baseline's outcome.

    Attributes:
        retrieval: the finished run; None as long as questions wait for a batch's answers.
        pending: how many distinct questions wait; import the batch's answers and call again.
        failures: what failed, in the order of the ids.
        usage: of every answer that was used, cached ones as when they were first given.
    """

    retrieval: Retrieval | None
    pending: int = 0
    failures: tuple[Failed, ...] = ()
    usage: Usage = field(default_factory=Usage)


def method_hash(contract: str, method: str, settings: Any, prompts: Sequence[str] = (), model: str = "") -> str:
    """sha256 hex of all that decides a run beyond the retriever's contract.

    Args:
        contract: the retriever's contract hash.
        method: name of the method.
        settings: a dataclass.
        prompts: ``name@version`` of every prompt.
        model: the language model.
    """
    content = json.dumps([contract, method, asdict(settings), list(prompts), model], sort_keys=True, default=str)
    return hashlib.sha256(f"equirank baseline 1\n{content}".encode()).hexdigest()
