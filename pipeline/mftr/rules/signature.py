"""Parameters of a Python signature, read by a scanner: nothing of the document is compiled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.mftr.rules.parameters import Draft
from pipeline.mftr.rules.types import read_type
from pipeline.mftr.rules.values import tidy

_DEF = re.compile(r"(?:^|\n)[ \t]*(?:async[ \t]+)?def[ \t]+(?P<name>[^\W\d]\w{0,200})[ \t]*\(")
_DOCSTRING = re.compile(r"\s*(?:->[^:\n]{0,400})?:[^\n]{0,400}\n?\s*[rRuU]?(\"\"\"|''')(.*?)\1", re.DOTALL)
_RETURNS = re.compile(r"\s*->\s*([^:\n]{1,200})")
_OPEN, _CLOSE = "([{", ")]}"
_LONGEST = 20_000


@dataclass(frozen=True)
class Signature:
    """A function's head.

    Attributes:
        returns: the return annotation; "" without one.
        docstring: the text under the head; "" without one.
    """

    name: str
    parameters: tuple[Draft, ...]
    returns: str = ""
    docstring: str = ""


def find_signature(text: str) -> Signature | None:
    """The first function that a Python source defines; None when it defines none."""
    found = _DEF.search(text[: 4 * _LONGEST])
    if found is None:
        return None
    inside, end = _bracketed(text, found.end())
    returns = _RETURNS.match(text, end)
    docstring = _DOCSTRING.match(text, end)
    return Signature(
        found["name"],
        tuple(argument_drafts(inside)),
        tidy(returns[1]) if returns else "",
        docstring[2] if docstring else "",
    )


def _bracketed(text: str, start: int) -> tuple[str, int]:
    """The text up to the bracket that closes, and the place after it; all that is there when none does."""
    depth = 1
    limit = min(len(text), start + _LONGEST)
    for place in range(start, limit):
        character = text[place]
        if character in _OPEN:
            depth += 1
        elif character in _CLOSE:
            depth -= 1
            if not depth:
                return text[start:place], place + 1
    return text[start:limit], limit


def argument_drafts(inside: str) -> Iterator[Draft]:
    """Arguments of ``a, b: int = 3``; one with a default may be left out, ``self`` and ``**more`` nobody gives."""
    for argument in _split(inside[:_LONGEST], ","):
        argument = argument.strip()
        if not argument or argument.startswith("*") or argument in ("/", "self", "cls"):
            continue
        head, *default = _split(argument, "=")
        name, *annotation = _split(head, ":")
        if not name.strip().isidentifier():
            continue
        kind = read_type(":".join(annotation))
        if default:
            shown = "=".join(default).strip()
            value = None if shown in ("None", "...") else shown.strip("'\"")
            yield Draft(name.strip(), kind.name, marked=False, default=value or None)
        else:
            yield Draft(name.strip(), kind.name, marked=kind.required)


def _split(text: str, separator: str) -> list[str]:
    """Parts between separators that no bracket or quote encloses."""
    parts, depth, start, quote = [], 0, 0, ""
    for place, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in _OPEN:
            depth += 1
        elif character in _CLOSE:
            depth -= 1
        elif character == separator and depth <= 0:
            parts.append(text[start:place])
            start = place + 1
    parts.append(text[start:])
    return parts
