"""From a document to the four fields by rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pipeline.mftr.rules import (
    gorilla,
    json_function,
    mcp,
    openapi,
    plain_text,
    python_function,
    rapidapi,
    record,
    skill,
)
from pipeline.mftr.rules.sniff import Format, Sniffed, sniff
from pipeline.mftr.schema import StandardizedTool

#: Part of the identity of every row that the rules standardized; raised whenever a rule changes what is written.
RULES_VERSION = "1"

_JSON_READERS: dict[Format, Callable[[str, Mapping[str, Any]], StandardizedTool]] = {
    Format.OPENAPI: openapi.read,
    Format.MCP: mcp.read,
    Format.FUNCTION: json_function.read,
    Format.RAPIDAPI: rapidapi.read,
    Format.GORILLA: gorilla.read,
    Format.PYTHON: python_function.read,
    Format.RECORD: record.read,
}


def standardize(tool_id: str, documentation: str, name: str = "") -> StandardizedTool:
    """Fill the four fields with what the document states; what it does not say stays empty.

    Never fails: a document that is not what it seems is read as text.

    Args:
        tool_id: the tool's id, kept as it is.
        documentation: the document as the benchmark holds it.
        name: the tool's name in the benchmark. It is no field (MFTR §3.1) and is not read.
    """
    return standardize_sniffed(tool_id, sniff(documentation))


def standardize_sniffed(tool_id: str, document: Sniffed) -> StandardizedTool:
    """The same for a document whose format is known."""
    if document.format is Format.EMPTY:
        return StandardizedTool(tool_id)
    if document.format in (Format.SKILL, Format.MARKDOWN):
        return skill.read(tool_id, document.text)
    if document.value is None:
        read_text = python_function.read_source if document.format is Format.PYTHON else plain_text.read
        return read_text(tool_id, document.text)
    if document.format is Format.TEXT:
        return plain_text.read_json(tool_id, document.value)
    return _JSON_READERS[document.format](tool_id, document.value)
