"""Parameters out of everything that documents hold them in: JSON schemas, maps, lists, signatures.

What is stored of a parameter is what its document states, in this order: ``type``, ``description``, ``required``,
``default``, ``enum``, ``properties`` (names and descriptions of an object's members), ``example``. ``required``
is always there: True unless the document says that the parameter may be left out, be it in so many words, by a flag,
by a Python default, or by marking others as required and not this one. A blank or null value counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeline.mftr.rules.optional import flag, named_optional, says_required
from pipeline.mftr.rules.references import References
from pipeline.mftr.rules.types import read_type, schema_type
from pipeline.mftr.rules.values import name_of, parse_json, stored, tidy
from pipeline.mftr.schema import Json, Parameter

_DESCRIPTION_KEYS = ("description", "desc", "detail", "help", "summary", "title", "meaning", "explanation")
_EXAMPLE_KEYS = ("example", "examples", "x-example", "sample", "example_value")
_NAME_KEYS = ("name", "param_name", "parameter", "parameter_name", "arg", "argument", "key", "field", "id")
_TYPE_KEYS = ("type", "param_type", "data_type", "datatype", "dtype", "format", "filetype")
#: Names of members of an object parameter that are stored.
_MEMBERS = 100


@dataclass(frozen=True)
class Draft:
    """A parameter as one place of a document states it.

    Attributes:
        marked: what a flag, a list or the syntax says about leaving it out; None when they say nothing.
    """

    name: str
    type: str = ""
    description: str = ""
    marked: bool | None = None
    default: Json = None
    enum: Json = None
    members: Mapping[str, str] | None = None
    example: Json = None

    def parameter(self, required: bool) -> Parameter:
        """The parameter with what it states, in the order of the published data."""
        values: dict[str, Json] = {
            "type": self.type,
            "description": self.description,
            "required": required,
            "default": self.default,
            "enum": self.enum,
            "properties": dict(self.members or {}),
            "example": self.example,
        }
        return Parameter(self.name, {key: value for key, value in values.items() if not _blank(value)})


def _blank(value: Json) -> bool:
    return value is None or value in ([], {}) or (isinstance(value, str) and not value.strip())


def settle(drafts: Iterable[Draft], description: str = "") -> tuple[Parameter, ...]:
    """Parameters of distinct names, each required or optional.

    Of two drafts with one name the first stands, with what only the second states. Marks go before words; where the
    document marks any parameter as required, the unmarked ones are optional, else required unless they say otherwise.

    Args:
        drafts: in document order.
        description: the tool's description, which may name parameters as optional.
    """
    merged: dict[str, Draft] = {}
    for draft in drafts:
        if draft.name:
            merged[draft.name] = _merged(merged[draft.name], draft) if draft.name in merged else draft
    unmarked = not any(draft.marked for draft in merged.values())
    optional = named_optional(description)
    parameters = []
    for draft in merged.values():
        said = draft.marked if draft.marked is not None else says_required(draft.description)
        if said is None and draft.name in optional:
            said = False
        parameters.append(draft.parameter(unmarked if said is None else said))
    return tuple(parameters)


def _merged(first: Draft, second: Draft) -> Draft:
    missing = {
        key: value
        for key in ("type", "description", "marked", "default", "enum", "members", "example")
        if not (held := getattr(first, key)) and held is not False and (value := getattr(second, key)) is not None
    }
    return replace(first, **missing)


def read_parameters(value: object, references: References | None = None) -> list[Draft]:
    """Drafts from a schema, a map, a list or the JSON text of one; empty for anything else."""
    references = references or References({})
    if isinstance(value, str):
        value = parse_json(value)
    value = references.resolve(value)
    if isinstance(value, Mapping):
        if isinstance(references.resolve(value.get("properties")), Mapping) or _combined(value):
            return schema_drafts(value, references)
        return _map_drafts(value, references)
    if isinstance(value, list):
        return _list_drafts(value, references)
    return []


def _combined(value: Mapping[str, Any]) -> bool:
    return any(isinstance(value.get(key), list) for key in ("allOf", "anyOf", "oneOf"))


def schema_drafts(schema: Mapping[str, Any], references: References, depth: int = 4) -> list[Draft]:
    """The properties of an object schema, with those of the schemas it is combined from."""
    drafts = []
    properties = references.resolve(schema.get("properties"))
    if isinstance(properties, Mapping):
        required = _names(schema.get("required"))
        optional = _names(schema.get("optional")) or frozenset()
        for key, value in properties.items():
            if not (name := name_of(key)):
                continue
            draft = _schema_draft(name, value, references)
            if name in optional:
                draft = replace(draft, marked=False)
            elif required is not None:
                draft = replace(draft, marked=name in required)
            drafts.append(draft)
    for key in ("allOf", "anyOf", "oneOf"):
        parts = schema.get(key)
        if depth and isinstance(parts, list):
            for part in parts[:20]:
                if isinstance(resolved := references.resolve(part), Mapping):
                    found = schema_drafts(resolved, references, depth - 1)
                    drafts += found if key == "allOf" else [replace(draft, marked=False) for draft in found]
    return drafts


def _names(value: object) -> frozenset[str] | None:
    """A list of names; None when there is no list."""
    return frozenset(name for name in value if isinstance(name, str)) if isinstance(value, list) else None


def _schema_draft(name: str, value: object, references: References) -> Draft:
    schema = references.resolve(value)
    if isinstance(schema, Mapping):
        return _record_draft(name, schema, references)
    return Draft(name, description=tidy(schema))


def _record_draft(name: str, record: Mapping[str, Any], references: References) -> Draft:
    """A parameter that is an object with ``type``, ``description`` and what else documents write there."""
    nested = references.resolve(record.get("schema"))
    schema: Mapping[str, Any] = {**nested, **record} if isinstance(nested, Mapping) else record
    written = next((found for key in _TYPE_KEYS if (found := read_type(schema.get(key))).name), read_type(""))
    marked = flag(record.get("required"))
    if marked is None and (optional := flag(record.get("optional"))) is not None:
        marked = not optional
    return Draft(
        name,
        type=schema_type(schema) or written.name,
        description=next((text for key in _DESCRIPTION_KEYS if (text := tidy(schema.get(key)))), ""),
        marked=written.required if marked is None else marked,
        default=_kept_default(schema.get("default"), written.default),
        enum=stored(schema["enum"]) if isinstance(schema.get("enum"), list) else None,
        members=_members(schema, references),
        example=_example(schema),
    )


def _kept_default(value: object, written: str) -> Json:
    kept = stored(value)
    return written if _blank(kept) and written else kept


def _example(record: Mapping[str, Any]) -> Json:
    for key in _EXAMPLE_KEYS:
        value = record.get(key)
        if key == "examples":
            value = _first(value)
        if isinstance(value, Mapping) and "value" in value:
            value = value["value"]
        if not _blank(kept := stored(value)):
            return kept
    return None


def _first(value: object) -> object:
    """The first of several examples, be they listed or named."""
    members = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return next(iter(members), None)


def _members(schema: Mapping[str, Any], references: References) -> dict[str, str] | None:
    """Names and descriptions of an object's members, also of the objects in an array."""
    items = references.resolve(schema.get("items"))
    for holder in (schema, items):
        properties = references.resolve(holder.get("properties")) if isinstance(holder, Mapping) else None
        if isinstance(properties, Mapping) and properties:
            members = {}
            for key, value in list(properties.items())[:_MEMBERS]:
                resolved = references.resolve(value)
                said = tidy(resolved.get("description")) if isinstance(resolved, Mapping) else tidy(resolved)
                members[name_of(key)] = said
            return members
    return None


def _map_drafts(value: Mapping[str, Any], references: References) -> list[Draft]:
    """``{name: {…}}``, ``{name: "text"}``; a text may begin with "Required." and the type."""
    drafts = []
    for key, member in value.items():
        if not (name := name_of(key)) or name.startswith("$"):
            continue
        resolved = references.resolve(member)
        if isinstance(resolved, Mapping):
            drafts.append(_record_draft(name, resolved, references))
        elif isinstance(resolved, str):
            drafts.append(text_draft(name, resolved))
        else:
            drafts.append(Draft(name))
    return drafts


_TYPE_WORDS = frozenset(
    (
        "string", "str", "text", "integer", "int", "number", "float", "double", "boolean", "bool", "array", "list",
        "object", "dict", "map", "tuple", "set", "date", "datetime", "file", "bytes", "image", "audio", "video", "any",
        "of", "or",
    )
)  # fmt: skip


def text_draft(name: str, text: str) -> Draft:
    """A parameter whose value is one text: ``Required. string. What it is``, a type alone, or a description."""
    rest = tidy(text)
    marked: bool | None = None
    for word, said in (("required", True), ("optional", False)):
        if rest.lower().startswith((f"{word}.", f"{word},", f"{word}:", f"{word} ")) or rest.lower() == word:
            marked, rest = said, rest[len(word) :].lstrip(" .,:")
            break
    head, _, tail = rest.partition(".")
    words = head.replace("[", " ").replace("]", " ").replace("(", " ").replace(")", " ").lower().split()
    if words and all(word.strip(",") in _TYPE_WORDS for word in words):
        return Draft(name, read_type(head).name, tail.strip(), marked)
    return Draft(name, description=rest, marked=marked)


def _list_drafts(value: Sequence[object], references: References) -> list[Draft]:
    """``[{"name": …}]`` and ``["name"]``; a map without a name gives its members."""
    drafts: list[Draft] = []
    for member in value:
        resolved = references.resolve(member)
        if isinstance(resolved, Mapping):
            name = next((name for key in _NAME_KEYS if (name := name_of(resolved.get(key)))), "")
            if name:
                drafts.append(_record_draft(name, resolved, references))
            elif resolved and not any(key in resolved for key in (*_DESCRIPTION_KEYS, *_TYPE_KEYS)):
                drafts += _map_drafts(resolved, references)
        elif isinstance(resolved, str):
            drafts += named_text(resolved)
    return drafts


def named_text(text: str) -> list[Draft]:
    """``name`` or ``name: description``; nothing when the text begins with no name."""
    head, colon, tail = tidy(text).partition(":")
    name = head.strip(" `'\"*")
    if name and len(name) <= 60 and (name.isidentifier() or name.replace("-", "_").replace(".", "_").isidentifier()):
        return [Draft(name, description=tail.strip() if colon and not tail.startswith("//") else "")]
    return []
