"""JSON documents by the names of their keys: what API-Bank-like records share with most others.

| field | keys, the first that says something (descriptions: all that add something) |
|---|---|
| description | summary, description, function_description, api_description, tool_description, … |
| parameters | parameters, arguments, inputs, input_schema, … and required/optional lists beside them |
| response | responses, response, returns, results, outputs, return_schema, … |
| examples | see ``intents`` |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.mftr.rules.intents import read_examples
from pipeline.mftr.rules.parameters import Draft, read_parameters, settle
from pipeline.mftr.rules.prose import read_prose
from pipeline.mftr.rules.references import References
from pipeline.mftr.rules.responses import openapi_response, response_text
from pipeline.mftr.rules.signature import argument_drafts
from pipeline.mftr.rules.values import first_text, joined, name_of, tidy
from pipeline.mftr.schema import StandardizedTool

DESCRIPTION_KEYS = ("description", "desc", "func_description", "function_description", "doc", "docstring", "purpose")
SUMMARY_KEYS = ("summary", "short_description", "title")
#: What the service behind the tool is, said beside the tool's own description.
CONTEXT_KEYS = ("api_description", "tool_description", "service_description")
PARAMETER_KEYS = (
    "parameters",
    "arguments",
    "inputs",
    "input",
    "input_parameters",
    "request_parameters",
    "params",
    "args",
    "input_schema",
    "inputSchema",
    "api_arguments",
)
RESPONSE_KEYS = (
    "responses",
    "response",
    "returns",
    "return",
    "results",
    "result",
    "outputs",
    "output",
    "output_schema",
    "outputSchema",
    "output_parameters",
    "return_schema",
    "return_data",
    "template_response",
    "response_schema",
)
_TYPES_IN = ("input-type", "input_type", "input-types", "input_types")
_TYPES_OUT = ("output-type", "output_type", "output-types", "output_types")
#: Any of these makes a JSON object a record of a tool.
KNOWN_KEYS = frozenset(
    (*DESCRIPTION_KEYS, *SUMMARY_KEYS, *CONTEXT_KEYS, *PARAMETER_KEYS, *RESPONSE_KEYS, *_TYPES_IN, *_TYPES_OUT)
)


def read(tool_id: str, document: Mapping[str, Any]) -> StandardizedTool:
    """A record with any of the known keys."""
    references = References(document)
    prose = read_prose(first_text(document, *DESCRIPTION_KEYS)) if _written_out(document) else None
    said = prose.description if prose else description(document)
    return StandardizedTool(
        tool_id,
        said,
        settle(parameters(document, references) or (prose.parameters if prose else []), said),
        response(document, references) or (prose.response if prose else ""),
        read_examples(document, name(document)) or (prose.examples if prose else ()),
    )


def _written_out(document: Mapping[str, Any]) -> bool:
    """Whether the description is the only key that says something of the tool."""
    return bool(first_text(document, *DESCRIPTION_KEYS)) and not any(
        document.get(key) for key in (*PARAMETER_KEYS, *RESPONSE_KEYS, *_TYPES_IN)
    )


def name(document: Mapping[str, Any]) -> str:
    """The tool's own name; it is no field, only part of a sample call."""
    return next(
        (found for key in ("name", "api_name", "func_name", "tool_name") if (found := name_of(document.get(key)))), ""
    )


def description(document: Mapping[str, Any]) -> str:
    """The texts that say what the tool does, each once."""
    own = dict.fromkeys(tidy(document.get(key)) for key in (*SUMMARY_KEYS, *DESCRIPTION_KEYS))
    return joined(*own, *(tidy(document.get(key)) for key in CONTEXT_KEYS))


def parameters(document: Mapping[str, Any], references: References) -> list[Draft]:
    """Drafts of the first key that gives any, or one a type of input."""
    for key in PARAMETER_KEYS:
        value = document.get(key)
        drafts = read_parameters(value, references)
        if not drafts and isinstance(value, str) and value.strip().startswith("("):
            drafts = list(argument_drafts(value.strip()[1:].rpartition(")")[0]))
        if drafts:
            return drafts
    for key in _TYPES_IN:
        kinds = document.get(key)
        if isinstance(kinds, list):
            return [Draft(kind, type=kind) for kind in map(name_of, kinds[:50]) if kind]
    return []


def response(document: Mapping[str, Any], references: References) -> str:
    """The text of the first key that says what comes back."""
    for key in RESPONSE_KEYS:
        read_value = openapi_response if key == "responses" else response_text
        if text := read_value(document.get(key), references):
            return text
    return next((text for key in _TYPES_OUT if (text := response_text(document.get(key)))), "")
