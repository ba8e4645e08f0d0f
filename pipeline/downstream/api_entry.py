"""A tool of a benchmark as ToolBench's task files describe one: names, a description, two lists of parameters.

ToolBench's runner finds an API by category, tool and API name, and reads of each parameter its name, type, description
and default; all four are always written. What a JSON document says is taken from its own keys; any other document is
the description as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pipeline.baselines.raw_fields import json_object, operation, raw_fields
from pipeline.mftr.schema import Json, Parameter

#: ``api_description`` is the whole provider's in some sources, so it comes second.
_DESCRIPTIONS = ("description", "api_description", "summary", "functionality")
_RESPONSES = ("template_response", "return_schema")
#: Words for a type → ToolBench's; a type that none of them names stays as it is written.
_TYPES = {
    **dict.fromkeys(("string", "str", "text"), "STRING"),
    **dict.fromkeys(("number", "integer", "int", "float", "double"), "NUMBER"),
    **dict.fromkeys(("boolean", "bool"), "BOOLEAN"),
}
#: Some documents say more in the type: ``int, optional, default=100``.
_TYPE_AND_MORE = re.compile(r"(\w+)\s*,(.*)")


def api_entry(tool: Mapping[str, str | None]) -> dict[str, Json]:
    """The entry of one tool.

    Args:
        tool: a row of the benchmark's table ``tools``.

    Returns:
        ``category_name``, ``tool_name``, ``api_name``, ``api_description``, ``required_parameters``,
        ``optional_parameters``, where the document says so ``method`` and ``template_response``, and ``tool_id``, a
        key of ours.
    """
    tool_id, documentation = tool["tool_id"] or "", tool["documentation"] or ""
    document = json_object(documentation) or {}
    action = operation(document)
    info = document.get("info")
    title = info.get("title") if isinstance(info, dict) else None
    api_name = _first_text(
        document.get("api_name"), action.get("operationId"), document.get("name"), tool.get("name"), tool_id
    )
    required, optional = _parameters(raw_fields(tool_id, documentation).parameters)
    entry: dict[str, Json] = {
        "category_name": _first_text(
            document.get("category_name"), document.get("category"), tool.get("domain"), tool.get("source")
        ),
        "tool_name": _first_text(document.get("tool_name"), title, document.get("api"), tool.get("provider"), api_name),
        "api_name": api_name,
        "api_description": _first_text(*(action.get(key) for key in _DESCRIPTIONS), documentation),
        "required_parameters": required,
        "optional_parameters": optional,
    }
    if method := _first_text(document.get("method")):
        entry["method"] = method.upper()
    response = next((document[key] for key in _RESPONSES if isinstance(document.get(key), dict)), None)
    if response is not None:
        entry["template_response"] = response
    entry["tool_id"] = tool_id
    return entry


def _first_text(*values: Any) -> str:
    return next((value.strip() for value in values if isinstance(value, str) and value.strip()), "")


def _parameters(parameters: tuple[Parameter, ...]) -> tuple[list[Json], list[Json]]:
    """The required ones and the others."""
    required: list[Json] = []
    optional: list[Json] = []
    for parameter in parameters:
        inner = parameter.stored.get("schema")
        stored = {**(inner if isinstance(inner, dict) else {}), **parameter.stored}
        said = _first_text(stored.get("type"))
        apart = _TYPE_AND_MORE.fullmatch(said)
        kind, more = (apart[1], apart[2]) if apart else (said, "")
        is_optional = "optional" in (word.strip().lower() for word in more.split(","))
        default = stored.get("default")
        entry: dict[str, Json] = {
            "name": parameter.name,
            "type": _TYPES.get(kind.lower(), kind),
            "description": _first_text(stored.get("description")),
            "default": "" if default is None else default,
        }
        (required if parameter.required and not is_optional else optional).append(entry)
    return required, optional
