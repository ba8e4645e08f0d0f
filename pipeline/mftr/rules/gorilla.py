"""Model cards as Gorilla's APIBench records them.

``functionality`` and ``domain`` say what the model is for and belong to the description; the code example is no wish
of a user, and neither result nor accuracy is a response. ``api_arguments`` holds lists of names, maps of values and
free text: names are kept, a value without blanks is the example, one with blanks the description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pipeline.mftr.rules import record
from pipeline.mftr.rules.intents import read_examples
from pipeline.mftr.rules.parameters import Draft, named_text, read_parameters, settle, text_draft
from pipeline.mftr.rules.references import References
from pipeline.mftr.rules.values import joined, name_of, stored, tidy
from pipeline.mftr.schema import StandardizedTool


def matches(document: Mapping[str, Any]) -> bool:
    """A call and one of the keys that only these records have."""
    return "api_call" in document and any(key in document for key in ("api_arguments", "functionality", "framework"))


def read(tool_id: str, document: Mapping[str, Any]) -> StandardizedTool:
    """One record of APIBench."""
    purpose = (tidy(document.get(key)) for key in ("functionality", "domain"))
    return StandardizedTool(
        tool_id,
        joined(record.description(document), *purpose),
        settle(_arguments(document.get("api_arguments"))),
        record.response({key: value for key, value in document.items() if key != "performance"}, References(document)),
        read_examples({key: value for key, value in document.items() if key != "example"}, record.name(document)),
    )


def _arguments(value: object) -> list[Draft]:
    if isinstance(value, str):
        drafts = [named_text(part) for part in value[:4_000].split(",")]
        return [draft for found in drafts for draft in found] if all(drafts) else []
    if isinstance(value, Mapping):
        return [_argument(name, member) for key, member in value.items() if (name := name_of(key))]
    if isinstance(value, list):
        drafts = []
        for member in value:
            drafts.append(
                _arguments(member)
                if isinstance(member, Mapping) and "name" not in member
                else read_parameters([member])
            )
        return [draft for found in drafts for draft in found]
    return []


def _argument(name: str, value: object) -> Draft:
    if isinstance(value, Mapping):
        return next(iter(read_parameters({name: value})), Draft(name))
    text = tidy(value)
    draft = text_draft(name, text)
    if draft.type or " " in text or (not text and not isinstance(value, int | float | list)):
        return draft
    return replace(Draft(name), example=stored(value))
