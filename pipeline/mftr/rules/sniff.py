"""Which format a document has, from the document itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pipeline.mftr.rules import gorilla, json_function, mcp, openapi, python_function, rapidapi, record, skill
from pipeline.mftr.rules.values import parse_json


class Format(StrEnum):
    """The formats that the rules read."""

    OPENAPI = "OpenAPI"
    MCP = "MCP tool"
    FUNCTION = "JSON-schema function"
    RAPIDAPI = "RapidAPI endpoint"
    GORILLA = "Gorilla record"
    PYTHON = "Python function"
    RECORD = "JSON record"
    SKILL = "SKILL.md"
    MARKDOWN = "Markdown"
    TEXT = "text"
    EMPTY = "empty"


@dataclass(frozen=True)
class Sniffed:
    """What a document is.

    Attributes:
        value: the JSON value that the document holds, unwrapped from a list of one; None for text.
        text: what to read when it is no JSON.
    """

    format: Format
    value: Any = None
    text: str = ""


_JSON_FORMATS = (
    (Format.MCP, mcp.matches),
    (Format.FUNCTION, json_function.matches),
    (Format.RAPIDAPI, rapidapi.matches),
    (Format.GORILLA, gorilla.matches),
    (Format.PYTHON, python_function.matches),
    (Format.OPENAPI, openapi.matches),
)


def sniff(documentation: str) -> Sniffed:
    """The format of a document; never fails."""
    documentation = documentation.removeprefix("\ufeff")
    if not documentation.strip():
        return Sniffed(Format.EMPTY)
    value = parse_json(documentation)
    if value is None:
        return Sniffed(_text_format(documentation), text=documentation)
    value = _unwrapped(value)
    if not isinstance(value, Mapping):
        return Sniffed(Format.TEXT, value)
    if isinstance(skill_md := value.get("skill_md"), str) and skill.matches_text(skill_md):
        return Sniffed(Format.SKILL, text=skill_md)
    for found, matches in _JSON_FORMATS:
        if matches(value):
            return Sniffed(found, value)
    return Sniffed(Format.RECORD if record.KNOWN_KEYS & value.keys() else Format.TEXT, value)


def _text_format(text: str) -> Format:
    if skill.matches_text(text):
        return Format.SKILL
    if skill.matches_markdown(text):
        return Format.MARKDOWN
    return Format.PYTHON if python_function.matches_text(text) else Format.TEXT


def _unwrapped(value: Any) -> Any:
    """The one tool of a list of one, also of ``{"tools": [tool]}``."""
    if isinstance(value, Mapping) and isinstance(value.get("tools"), list) and not record.KNOWN_KEYS & value.keys():
        value = value["tools"]
    return value[0] if isinstance(value, list) and len(value) == 1 else value
