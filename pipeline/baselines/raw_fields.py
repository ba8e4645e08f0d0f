"""A raw document's own fields, sorted into MFTR's four without rewording: the documents of the "Weighting" variants.

The map, ``FIELD_KEYS``, is ours, since the paper does not give one. A document is a JSON object; each of its top-level
keys goes to the field that lists it, keys that none lists (names, categories, addresses, methods, frameworks,
requirements, performance) to no field. Several texts of one field are joined by a line break, in document order; in
``examples`` each stays on its own. A document that is no JSON object is its description.

OpenAPI documents (key ``paths``) have no such keys on top; the first operation's stand for them.
Parameters come as a list of objects with a ``name``, as a JSON schema with ``properties``, or as an object by name; a
parameter keeps what stands there for it. Anything else that stands in their place is one parameter with the key's name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.mftr.schema import Example, Field, Parameter, StandardizedTool

#: Top-level keys of raw documents by the field they belong to.
FIELD_KEYS: Mapping[Field, tuple[str, ...]] = {
    Field.DESCRIPTION: ("description", "api_description", "summary", "functionality", "expressions"),
    Field.PARAMETERS: (
        "parameters", "required_parameters", "optional_parameters", "required_params", "optional_params", "arguments",
        "api_arguments", "inputSchema", "input_schema", "input-type",
    ),
    Field.RESPONSE: (
        "responses", "response", "results", "returns", "return_schema", "template_response", "outputSchema",
        "output_schema", "output-type",
    ),
    Field.EXAMPLES: ("example_code", "examples", "example", "api_call", "func_signature"),
}  # fmt: skip
_FIELD_OF = {key: field for field, keys in FIELD_KEYS.items() for key in keys}
_OPTIONAL_KEYS = frozenset({"optional_parameters", "optional_params"})
_METHODS = ("get", "post", "put", "patch", "delete", "head", "options")


def raw_fields(tool_id: str, documentation: str) -> StandardizedTool:
    """The document's own fields."""
    document = json_object(documentation)
    if document is None:
        return StandardizedTool(tool_id, description=documentation.strip())
    texts: dict[Field, list[str]] = {field: [] for field in Field}
    parameters: dict[str, Parameter] = {}
    for key, value in operation(document).items():
        field = _FIELD_OF.get(key)
        if field is Field.PARAMETERS:
            for name, stored in _parameters(key, value):
                if key in _OPTIONAL_KEYS:
                    stored = {**stored, "required": False}
                parameters.setdefault(name, Parameter(name, stored))
        elif field is Field.EXAMPLES and isinstance(value, list):
            texts[field] += [text for item in value if (text := _text(item))]
        elif field is not None and (text := _text(value)):
            texts[field].append(text)
    return StandardizedTool(
        tool_id,
        "\n".join(texts[Field.DESCRIPTION]),
        tuple(parameters.values()),
        "\n".join(texts[Field.RESPONSE]),
        tuple(Example(text) for text in texts[Field.EXAMPLES]),
    )


def json_object(documentation: str) -> dict[str, Any] | None:
    """The document as a JSON object, None where it is none."""
    if not documentation.lstrip().startswith("{"):
        return None
    try:
        document = json.loads(documentation)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def operation(document: dict[str, Any]) -> dict[str, Any]:
    """The object whose keys are the fields: the document, or the first operation of an OpenAPI document."""
    paths = document.get("paths")
    for path in paths.values() if isinstance(paths, dict) else ():
        for method in _METHODS:
            operation = path.get(method) if isinstance(path, dict) else None
            if isinstance(operation, dict):
                return operation
    return document


def _parameters(key: str, value: Any) -> Iterable[tuple[str, Mapping[str, Any]]]:
    if isinstance(value, dict) and isinstance(value.get("properties"), dict):
        required = value.get("required")
        for name, stored in value["properties"].items():
            stated = {"required": name in required} if isinstance(required, list) else {}
            yield str(name), {**_stored(stored), **stated}
    elif isinstance(value, dict):
        for name, stored in value.items():
            yield str(name), _stored(stored)
    elif isinstance(value, list):
        for number, item in enumerate(value, start=1):
            if isinstance(item, dict) and isinstance(item.get("name"), str):
                yield item["name"], {name: part for name, part in item.items() if name != "name"}
            elif text := _text(item):
                yield (text if isinstance(item, str) else f"{key} {number}"), _stored(item)
    elif text := _text(value):
        yield key, {"description": text}


def _stored(value: Any) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return {str(name): part for name, part in value.items()}
    text = _text(value)
    return {"description": text} if text else {}


def _text(value: Any) -> str:
    """Text as it is, anything else as JSON; "" for nothing and for ``N/A``."""
    if value is None or value == [] or value == {}:
        return ""
    text = value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "" if text.upper() == "N/A" else text
