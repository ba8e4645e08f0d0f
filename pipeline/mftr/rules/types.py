"""A type as documents write it, in one short text, with what else is written into it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.mftr.rules.values import tidy

_OPTIONAL = re.compile(r"\s*[,;]?\s*\boptional\b\s*(?![\[\w])", re.IGNORECASE)
_WRAPPED = re.compile(r"(?:typing\.)?Optional\[(.*)\]")
_REQUIRED = re.compile(r"\s*[,;]?\s*\brequired\b\s*", re.IGNORECASE)
_DEFAULT = re.compile(r"\s*[,;]?\s*\bdefaults?\b\s*(?:=|:|\s+to\s+|\s)\s*(.+)$", re.IGNORECASE)
_LONGEST = 200
_DEPTH = 4


@dataclass(frozen=True)
class TypeText:
    """What a type says.

    Attributes:
        name: the type as the document writes it; "" when it writes none.
        required: what the type says about leaving the parameter out; None when nothing.
        default: a default value that is written into the type; "" when none is.
    """

    name: str = ""
    required: bool | None = None
    default: str = ""


def read_type(text: object) -> TypeText:
    """Read ``str, optional, default='x'``, ``Optional[int]``, ``STRING`` and plain types."""
    line = tidy(text)[:_LONGEST]
    if not line:
        return TypeText()
    required: bool | None = None
    default = ""
    if found := _DEFAULT.search(line):
        default = found[1].strip().strip("'\"")
        line = line[: found.start()]
    if wrapped := _WRAPPED.fullmatch(line):
        line, required = wrapped[1], False
    if _OPTIONAL.search(line):
        line, required = _OPTIONAL.sub("", line, count=1), False
    elif _REQUIRED.search(line):
        line, required = _REQUIRED.sub("", line, count=1), True
    line = line.strip(" ,;")
    if line.startswith("(") and line.endswith(")"):
        line = line[1:-1].strip()
    return TypeText(line.lower() if line.isupper() else line, required, default)


def schema_type(schema: Mapping[str, Any], depth: int = _DEPTH) -> str:
    """The type of a JSON schema: ``string``, ``array of number``, ``string or integer``; "" when it names none."""
    kind = schema.get("type")
    if isinstance(kind, list):
        names = [tidy(name) for name in kind[:8] if name != "null"]
        return " or ".join(filter(None, names))[:_LONGEST]
    name = read_type(kind).name
    if name.lower() in ("array", "list") and depth and isinstance(items := schema.get("items"), Mapping):
        inner = schema_type(items, depth - 1)
        return f"{name} of {inner}"[:_LONGEST] if inner else name
    if name:
        return name
    for key in ("anyOf", "oneOf", "allOf"):
        choices = schema.get(key)
        if isinstance(choices, list) and depth:
            names = [schema_type(choice, depth - 1) for choice in choices[:8] if isinstance(choice, Mapping)]
            if found := " or ".join(dict.fromkeys(name for name in names if name and name != "null")):
                return found[:_LONGEST]
    if isinstance(schema.get("properties"), Mapping):
        return "object"
    return ""
