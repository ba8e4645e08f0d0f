"""A question as a chat completion: the same body live and in a batch file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from enum import IntEnum
from typing import Any

from pipeline.llm.providers import TAKES_TOP_K, provider_of
from pipeline.llm.records import Question


class AnswerFormat(IntEnum):
    """How the schema is told, from the strictest way on; a server that refuses one is asked in the next."""

    JSON_SCHEMA = 0
    JSON_OBJECT = 1


def chat_body(
    question: Question, answer_format: AnswerFormat = AnswerFormat.JSON_SCHEMA, without: Set[str] = frozenset()
) -> dict[str, Any]:
    """Arguments of the completion apart from the model.

    At temperature 0 the draw is greedy, so ``top_p`` 1 adds nothing and is not sent: some providers refuse both.

    Args:
        question: what is asked.
        answer_format: how the schema is told.
        without: names of arguments that the model refused.
    """
    sampling = question.sampling
    messages = [{"role": message.role, "content": message.content} for message in question.messages]
    body: dict[str, Any] = {"temperature": sampling.temperature, "max_tokens": sampling.max_tokens}
    if sampling.top_p != 1.0:
        body["top_p"] = sampling.top_p
    if sampling.top_k is not None and provider_of(question.model) in TAKES_TOP_K and "top_k" not in without:
        body["top_k"] = sampling.top_k
    if answer_format is AnswerFormat.JSON_SCHEMA:
        described = {
            "name": question.schema_name,
            "schema": question.schema,
            "strict": takes_strict(question.schema),
        }
        body["response_format"] = {"type": "json_schema", "json_schema": described}
    else:
        body["response_format"] = {"type": "json_object", "schema": question.schema}
        # Servers that take this form may not read the schema, and OpenAI's insists on the word JSON.
        told = json.dumps(question.schema, ensure_ascii=False)
        messages.append({"role": "user", "content": f"Answer with one JSON object of this JSON schema:\n{told}"})
    return {"messages": messages} | {name: value for name, value in body.items() if name not in without}


def takes_strict(schema: Mapping[str, Any]) -> bool:
    """Whether OpenAI's strict mode takes the schema: every object closed, every property required."""
    for part in _parts(schema):
        if part.get("type") == "object" or "properties" in part:
            properties = part.get("properties")
            if not isinstance(properties, Mapping) or part.get("additionalProperties") is not False:
                return False
            if set(part.get("required", ())) != set(properties):
                return False
    return True


def _parts(schema: object) -> list[Mapping[str, Any]]:
    """The schema and the schemas inside it."""
    if isinstance(schema, list):
        return [part for item in schema for part in _parts(item)]
    if not isinstance(schema, Mapping):
        return []
    inner: list[Mapping[str, Any]] = [schema]
    for name, value in schema.items():
        if name in {"properties", "$defs", "definitions"} and isinstance(value, Mapping):
            inner += [part for item in value.values() for part in _parts(item)]
        elif name not in {"enum", "const", "examples", "default"}:
            inner += _parts(value)
    return inner
