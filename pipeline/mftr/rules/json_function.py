"""Functions in the shape of function calling: a name, a description and a JSON schema of the arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.mftr.rules import record
from pipeline.mftr.rules.intents import read_examples
from pipeline.mftr.rules.parameters import settle
from pipeline.mftr.rules.references import References
from pipeline.mftr.schema import StandardizedTool

_SCHEMA_KEYS = ("parameters", "arguments", "input_schema", "inputs")


def matches(document: Mapping[str, Any]) -> bool:
    """``{"type": "function", "function": {…}}`` or a key that holds a schema with properties."""
    if isinstance(document.get("function"), Mapping):
        return True
    return any(
        isinstance(schema := document.get(key), Mapping) and isinstance(schema.get("properties"), Mapping)
        for key in _SCHEMA_KEYS
    )


def read(tool_id: str, document: Mapping[str, Any]) -> StandardizedTool:
    """OpenAI's and Anthropic's tools, and those of benchmarks with ``arguments`` and ``results``."""
    inner = document.get("function")
    function = inner if isinstance(inner, Mapping) else document
    references = References(function)
    return StandardizedTool(
        tool_id,
        record.description(function),
        settle(record.parameters(function, references)),
        record.response(function, references),
        read_examples(function, record.name(function)),
    )
