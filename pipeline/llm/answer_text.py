"""From the text that a model wrote to the object that was asked for, or to words about what is wrong with it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match

from pipeline.errors import JudgeError
from pipeline.llm.records import Check, Question

#: A longer answer is none, in characters; 2,048 tokens are about 8,000.
LONGEST = 1 << 20
_FENCED = re.compile(r"```[a-zA-Z0-9_-]*[ \t]*\r?\n(.*?)```", re.DOTALL)
_THINKING = re.compile(r"^\s*<think>.*?</think>", re.DOTALL)


class InvalidAnswer(Exception):
    """The text holds no valid answer; the message says why, in words for a user."""


def parsed_answer(
    question: Question, text: str | None, finish_reason: str | None, check: Check | None
) -> dict[str, Any]:
    """The answer in the text.

    Raises:
        InvalidAnswer: it is cut off, too long, no single JSON object, no text in Unicode, not of the schema, or
            the check objects.
    """
    if finish_reason == "length":
        raise InvalidAnswer(f"the answer was cut off at {question.sampling.max_tokens} tokens")
    if finish_reason == "content_filter":
        raise InvalidAnswer("the provider's content filter withheld the answer")
    if not text or not text.strip():
        raise InvalidAnswer("the answer is empty")
    if len(text) > LONGEST:
        raise InvalidAnswer(f"the answer has {len(text):,} characters, more than {LONGEST:,}")
    value = extracted_object(text)
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        # It could neither be written to a file nor stored in a frame.
        raise InvalidAnswer("the answer holds half of a surrogate pair, which is no character") from None
    problem = schema_problem(question.schema, value)
    if problem is None:
        value = with_integers(question.schema, value)
    if problem is None and check is not None:
        problem = check(question, value)
    if problem is not None:
        raise InvalidAnswer(problem)
    return value


def extracted_object(text: str) -> dict[str, Any]:
    """The one JSON object of a text: all of it, or inside a code fence, or inside prose.

    Raises:
        InvalidAnswer: there is none, or there are several different ones.
    """
    text = _THINKING.sub("", text.removeprefix("\ufeff"), count=1).strip()
    whole = _loaded(text)
    if whole is not None:
        return whole
    found = [value for value in (_loaded(match[1].strip()) for match in _FENCED.finditer(text)) if value is not None]
    if not found:
        found = _objects_inside(text)
    if not found:
        raise InvalidAnswer("the answer holds no JSON object")
    if any(other != found[0] for other in found[1:]):
        raise InvalidAnswer(f"the answer holds {len(found)} different JSON objects instead of one")
    return found[0]


def schema_problem(schema: Mapping[str, Any], value: object) -> str | None:
    """What is wrong with the value, in words; None when it is of the schema."""
    try:
        error = best_match(_validator(json.dumps(schema, sort_keys=True)).iter_errors(value))
    except RecursionError:
        return "the answer is nested too deeply"
    if error is None:
        return None
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path).lstrip(".")
    said = error.message if len(error.message) <= 160 else f"{error.message[:157]}…"
    return f"the answer is not of the schema at {place or 'its root'}: {said}"


def with_integers(schema: Mapping[str, Any], value: Any) -> Any:
    """The value with its whole numbers as integers: a model may write 1.0, which JSON Schema takes for one.

    Args:
        schema: with properties and items only, as every schema of an answer here.
        value: of the schema.
    """
    if isinstance(value, dict):
        parts = schema.get("properties", {})
        return {name: with_integers(parts.get(name, {}), part) for name, part in value.items()}
    if isinstance(value, list):
        return [with_integers(schema.get("items", {}), part) for part in value]
    return int(value) if schema.get("type") == "integer" and isinstance(value, float) else value


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse a question that could never be answered.

    Raises:
        JudgeError: the schema is none, or its root is no object.
    """
    _validator(json.dumps(schema, sort_keys=True))


@lru_cache(maxsize=128)
def _validator(schema_json: str) -> Draft202012Validator:
    schema = json.loads(schema_json)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise JudgeError(f"the schema of the answer is no JSON schema: {error.message}") from None
    if schema.get("type") != "object":
        raise JudgeError('the schema of the answer must have "type": "object" at its root')
    return Draft202012Validator(schema)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _infinite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is too large")
    return value


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_infinite)


def _loaded(text: str) -> dict[str, Any] | None:
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _objects_inside(text: str) -> list[dict[str, Any]]:
    """Objects that begin at a brace of the text, the outermost each; few tries, so that no text takes long."""
    found: list[dict[str, Any]] = []
    position, tries = text.find("{"), 0
    while position >= 0 and tries < 100:
        tries += 1
        try:
            value, end = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            end = position + 1
        else:
            if value:  # an empty pair of braces in prose is not an answer
                found.append(value)
        position = text.find("{", end)
    return found
