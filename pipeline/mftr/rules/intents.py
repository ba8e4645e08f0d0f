"""Wishes that a document gives as examples of what the tool is for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.mftr.rules.values import parse_json, stored, tidy
from pipeline.mftr.schema import Example, Json

#: Keys under which documents list wishes, in the order they are looked at.
EXAMPLE_KEYS = (
    "examples",
    "example_queries",
    "sample_queries",
    "user_queries",
    "example_prompts",
    "use_cases",
    "usecases",
    "usage_examples",
    "when_to_use",
    "scenario",
    "scenarios",
    "example",
)
_INTENT_KEYS = (
    "user_intent",
    "query",
    "user_query",
    "prompt",
    "instruction",
    "question",
    "intent",
    "utterance",
    "scenario",
)
_CALL_KEYS = ("tool_call", "call", "function_call", "action")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input")
_KEPT = 50


def read_examples(record: Mapping[str, Any], name: str = "") -> tuple[Example, ...]:
    """The wishes of a JSON document; an example without a wish (code alone, a value alone) is none."""
    return distinct(
        example for key in EXAMPLE_KEYS if key in record for example in _examples(record[key], name, key != "example")
    )


def distinct(examples: Iterable[Example]) -> tuple[Example, ...]:
    """The first example of each wish, at most fifty."""
    kept: dict[str, Example] = {}
    for example in examples:
        if example.user_intent and len(kept) < _KEPT:
            kept.setdefault(example.user_intent, example)
    return tuple(kept.values())


def _examples(value: object, name: str, texts: bool) -> Iterable[Example]:
    if isinstance(value, str) and (parsed := parse_json(value)) is not None:
        value = parsed
    if isinstance(value, str):
        if texts and _is_wish(value):
            yield Example(tidy(value))
    elif isinstance(value, list):
        for member in value[: 4 * _KEPT]:
            if isinstance(member, str) and _is_wish(member):
                yield Example(tidy(member))
            elif isinstance(member, Mapping):
                yield from _from_record(member, name)
    elif isinstance(value, Mapping):
        yield from _from_record(value, name)


def _is_wish(text: str) -> bool:
    """At least two words; a value or a path is no wish, and neither is a program of several lines."""
    return len(text.split()) >= 2 and parse_json(text) is None and not ("\n" in text.strip() and "import " in text)


def _from_record(record: Mapping[str, Any], name: str) -> Iterable[Example]:
    intent = next((text for key in _INTENT_KEYS if (text := tidy(record.get(key)))), "")
    if intent:
        yield Example(intent, _call(record, name))


def _call(record: Mapping[str, Any], name: str) -> dict[str, Json]:
    """The sample call beside a wish; empty when there is none."""
    for key in _CALL_KEYS:
        call = record.get(key)
        if isinstance(call, Mapping) and isinstance(kept := stored(call), dict):
            return kept
    for key in _ARGUMENT_KEYS:
        arguments = record.get(key)
        if isinstance(arguments, Mapping) and isinstance(kept := stored(arguments), dict):
            return {"name": tidy(record.get("name")) or name, "arguments": kept}
    return {}
