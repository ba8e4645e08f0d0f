"""What a tool returns, in one text made of the document's own words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.mftr.rules.references import References
from pipeline.mftr.rules.types import schema_type
from pipeline.mftr.rules.values import name_of, parse_json, tidy

_DEPTH = 3
#: Members of an object that are named at each level, and characters of the whole text.
_MEMBERS = 60
_LONGEST = 4_000
_NOTES = ("_list_length", "$schema", "additionalProperties")


def response_text(value: object, references: References | None = None) -> str:
    """A text, a JSON schema, a map of fields or a template of an answer as ``name (type): description; …``."""
    return _text(value, references or References({}), _DEPTH)[:_LONGEST].rstrip("; ")


def _text(value: object, references: References, depth: int) -> str:
    if isinstance(value, str):
        parsed = parse_json(value)
        return tidy(value) if parsed is None else _text(parsed, references, depth)
    value = references.resolve(value)
    if isinstance(value, list):
        return _list_text(value, references, depth)
    if not isinstance(value, Mapping) or not depth:
        return ""
    properties = references.resolve(value.get("properties"))
    if isinstance(properties, Mapping):
        fields = _fields(properties, references, depth)
        said = tidy(value.get("description"))
        return f"{said}: {fields}" if said and fields else said or fields
    if schema_type(value).lower().startswith(("array", "list")) and "items" in value:
        inner = _text(value["items"], references, depth - 1) or schema_type(value)
        said = tidy(value.get("description"))
        return ": ".join(filter(None, (said, f"a list of {inner}" if inner else "")))
    if _is_leaf(value):
        return _leaf(value)
    return _fields(value, references, depth)


def _list_text(value: list[Any], references: References, depth: int) -> str:
    if not value or not depth:
        return ""
    if all(isinstance(member, str) for member in value):
        return ", ".join(filter(None, (tidy(member) for member in value[:_MEMBERS])))
    if all(isinstance(member, Mapping) and name_of(member.get("name")) for member in value):
        named = {name_of(member["name"]): member for member in value[:_MEMBERS]}
        return _fields(named, references, depth)
    parts = dict.fromkeys(filter(None, (_text(member, references, depth - 1) for member in value[:_MEMBERS])))
    return "; ".join(parts)


def _is_leaf(value: Mapping[str, Any]) -> bool:
    """A schema without members: has a type or description that is a text, and holds no fields of its own."""
    leaf_keys = ("type", "description", "desc", "title", "format", "example", "default", "enum", "items", "name")
    return isinstance(value.get("type", value.get("description", value.get("desc"))), str) and all(
        key in leaf_keys for key in value
    )


def _leaf(value: Mapping[str, Any]) -> str:
    said = next((text for key in ("description", "desc", "title") if (text := tidy(value.get(key)))), "")
    return said or schema_type(value)


def _fields(fields: Mapping[str, Any], references: References, depth: int) -> str:
    texts = []
    for key, value in list(fields.items())[:_MEMBERS]:
        name = name_of(key)
        if not name or name in _NOTES:
            continue
        texts.append(_field(name, references.resolve(value), references, depth))
    return "; ".join([*(text.rstrip(".") for text in texts[:-1]), *texts[-1:]])


def _field(name: str, value: object, references: References, depth: int) -> str:
    if isinstance(value, str):
        said = tidy(value)
        return (
            f"{name} ({said})" if said and len(said) <= 40 and " " not in said else f"{name}: {said}" if said else name
        )
    if isinstance(value, Mapping):
        kind = schema_type(value) if isinstance(value.get("type"), str | list) else ""
        said = tidy(value.get("description")) or tidy(value.get("desc"))
        inside = "" if said and _is_leaf(value) else _inside(value, references, depth)
        head = f"{name} ({kind})" if kind and len(kind) <= 60 else name
        return ": ".join(filter(None, (head, said))) + (
            f" {{{inside}}}" if inside and inside not in (said, kind) else ""
        )
    if isinstance(value, list):
        inside = _list_text(value, references, depth - 1)
        return f"{name} {{{inside}}}" if inside else name
    return name


def _inside(value: Mapping[str, Any], references: References, depth: int) -> str:
    inner: object = value
    if isinstance(value.get("properties"), Mapping):
        inner = {"properties": value["properties"]}
    elif isinstance(value.get("items"), Mapping):
        inner = value["items"]
    elif _is_leaf(value):
        return ""
    return _text(inner, references, depth - 1)


def openapi_response(responses: object, references: References) -> str:
    """The answer to a request that succeeds, of an OpenAPI ``responses`` object."""
    if not isinstance(responses, Mapping):
        return response_text(responses, references)
    codes = [str(code) for code in responses]
    good = [code for code in codes if code.startswith("2")] or [code for code in codes if code == "default"]
    if not good and codes and all(code.isdigit() or code.lower() in ("1xx", "3xx", "4xx", "5xx") for code in codes):
        return ""
    if not good:
        return response_text(responses, references)
    chosen = references.resolve(next(value for code, value in responses.items() if str(code) == good[0]))
    if not isinstance(chosen, Mapping):
        return tidy(chosen)
    said = tidy(chosen.get("description"))
    fields = response_text(content_schema(chosen, references), references)
    return ": ".join(filter(None, (said.rstrip(".") if fields else said, fields)))


def content_schema(holder: Mapping[str, Any], references: References) -> object:
    """The schema of a request body or a response: that of its first content type, or OpenAPI 2's ``schema``."""
    content = holder.get("content")
    if isinstance(content, Mapping):
        for body in content.values():
            if isinstance(body, Mapping) and "schema" in body:
                return references.resolve(body["schema"])
    return references.resolve(holder.get("schema"))
