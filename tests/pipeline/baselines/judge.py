"""A language model's part in the tests: answers from what the prompt says, over loopback or in memory."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from pipeline.llm.records import Answer, Check, Failure, Outcome, Pending, Question, Tell, Usage

LLM = "openai/gpt-4o-mini"
_FENCE = re.compile(
    r"<<<BEGIN (?P<label>.+?) (?P<code>[0-9a-f]{8})>>>\n(?P<text>.*?)\n<<<END (?P=label) (?P=code)>>>", re.S
)
_STOP = frozenset({"and", "are", "for", "from", "how", "that", "the", "this", "what", "with", "you"})


def fenced(text: str) -> dict[str, str]:
    """Label → text of every fenced part."""
    return {found["label"]: found["text"] for found in _FENCE.finditer(text)}


def words(text: str) -> set[str]:
    return {word for word in re.findall(r"[a-z]{3,}", text.lower()) if word not in _STOP}


def described(document: str) -> str:
    """What a document says of its purpose."""
    found = re.findall(r'"(?:description|api_description|summary)": "((?:[^"\\]|\\.)+)"', document)
    return json.loads(f'"{found[0]}"') if found else document[:200]


def sensible(name: str, user: str) -> dict[str, Any]:
    """The answer to one prompt, by the name of its schema."""
    parts = fenced(user)
    if name == "easytool_overview":
        return {"purpose": described(parts["documentation"]), "functions": ["Does what its description says."]}
    if name == "easytool_guide":
        return {
            "parameters": [{"name": "input", "description": "what to work on"}],
            "scenario": "",
            "example": "call()",
        }
    if name == "pluto_use_cases":
        return {"use_cases": [described(parts["documentation"])]}
    if name == "pluto_edit":
        return {"description": f"{described(parts['documentation'])} {parts['requests']}"}
    if name == "pluto_plan":
        done = parts["actions_so_far"] != "(none)"
        return {"stop": done, "action": "" if done else parts["task"]}
    if name == "pluto_select":
        tools = [text for label, text in parts.items() if label.startswith("tool ")]
        wanted = words(parts["action"])
        return {"relevant": [n for n, text in enumerate(tools, start=1) if len(wanted & words(text)) >= 2]}
    raise AssertionError(f"unexpected schema {name}")


def loopback(body: dict[str, Any]) -> dict[str, Any]:
    """``sensible`` for a request of a chat completion."""
    return sensible(body["response_format"]["json_schema"]["name"], body["messages"][-1]["content"])


class Recorded:
    """An ``Asker`` in memory.

    Args:
        answer: a question's value; None fails it, ``...`` leaves it pending.
    """

    def __init__(self, answer: Callable[[Question], Any] | None = None) -> None:
        self.answer = answer or (lambda question: sensible(question.schema_name, question.messages[-1].content))
        self.batches: list[list[Question]] = []

    @property
    def asked(self) -> list[Question]:
        return [question for batch in self.batches for question in batch]

    def ask(
        self, questions: Sequence[Question], *, check: Check | None = None, tell: Tell | None = None
    ) -> list[Outcome]:
        self.batches.append(list(questions))
        return [self._outcome(question, check) for question in questions]

    def _outcome(self, question: Question, check: Check | None) -> Outcome:
        value = self.answer(question)
        if value is ...:
            return Pending(question.key)
        wrong = "no answer" if value is None else check(question, value) if check else None
        if value is None or wrong:
            return Failure(question.key, str(wrong), 4, Usage(4, 40, 0, 0.004, 4.0))
        return Answer(question.key, value, question.model, question.prompt, Usage(1, 10, 5, 0.001, 2.0), 1)
