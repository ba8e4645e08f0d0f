"""Parameters, results and examples that are written as text: docstrings, prose about an API, plain paragraphs.

Read are Google sections (``Args:``), numpydoc sections (underlined), Sphinx fields (``:param x:``), sections on one
line (``Parameters: x (int): …. Returns: …``), Markdown headings and lists, and "the 'x' parameter is …".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from pipeline.mftr.rules.intents import distinct
from pipeline.mftr.rules.optional import says_required
from pipeline.mftr.rules.parameters import Draft
from pipeline.mftr.rules.types import read_type
from pipeline.mftr.rules.values import LONGEST, tidy
from pipeline.mftr.schema import Example


class Part(StrEnum):
    """The parts that a text can have."""

    DESCRIPTION = "description"
    PARAMETERS = "parameters"
    RESPONSE = "response"
    EXAMPLES = "examples"
    OTHER = "other"


_HEADS = {
    Part.PARAMETERS: r"(?:input\s+|required\s+|optional\s+)?parameters?|arguments?|args|inputs?|keyword\s+arguments",
    Part.RESPONSE: r"returns?|responses?|outputs?|results?|yields?|return\s+values?|output\s+format",
    Part.EXAMPLES: r"(?:example|sample)\s+(?:queries|requests|prompts|interactions)|use\s+cases|when\s+to\s+use",
    Part.OTHER: r"raises?|notes?|warnings?|see\s+also|references|attributes|errors|examples?",
}
_PART_OF = "|".join(f"(?P<{part.value}>{words})" for part, words in _HEADS.items())
_LINE_HEAD = re.compile(rf"^[#*_ ]*(?:{_PART_OF})[*_]*:?[*_]*$", re.IGNORECASE)
_HEAD_WITH_TEXT = re.compile(rf"^[#*_ ]*(?:{_PART_OF})[*_]*:[*_ ]+(?P<text>\S.*)$", re.IGNORECASE)
_INLINE_HEAD = re.compile(
    r"(?:(?<=[.!?:;)\]])|^)\s*\b(Parameters?|Args|Arguments|Inputs?|Returns?|Raises|Examples?):\s"
)
_FIELD = re.compile(r"^[ \t]*:(param|type|returns?|rtype|raises?)\b([^:\n]{0,200}):[ \t]*(.*)$")
_UNDERLINE = re.compile(r"^[ \t]*[-=~]{3,}[ \t]*$")
_BULLET = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+")
_ITEM = re.compile(
    r"""^[ \t]*[*_`'"]{0,3}(?P<name>\*{0,2}[^\W\d][\w.\-\[\]]{0,80})[*_`'"]{0,3}
        [ \t]*(?:[(\[](?P<type>[^()\[\]]*(?:[(\[][^()\[\]]*[)\]][^()\[\]]*){0,8})[)\]])?
        [*_]{0,2}[ \t]*(?:(?::|\s[-–—])[*_]{0,2}(?:[ \t]|$)[ \t]*(?P<text>.*))?$""",
    re.VERBOSE,
)
_SPOKEN = re.compile(
    r"""['"`](?P<name>[^\W\d]\w{0,60})['"`]\s+parameter\s+(?:is\s+used\s+to|refers\s+to|specifies|represents|is|indicates|
        determines|should\s+be|identifies)\s+(?P<text>[^.;]{0,400}?)(?=\s*(?:[.;]|,?\s+and\s+the\s+['"`]|,\s+the\s+['"`]|$))""",
    re.IGNORECASE | re.VERBOSE,
)
_LINES = 2_000
#: Longer texts after numpydoc's `` : `` are no types.
_TYPE_LENGTH = 60


@dataclass
class Prose:
    """What a text says, part by part."""

    description: str = ""
    parameters: list[Draft] = field(default_factory=list)
    response: str = ""
    examples: tuple[Example, ...] = ()


def read_prose(text: str, names: Sequence[str] = ()) -> Prose:
    """Read a docstring or a description.

    Args:
        text: the text; its first 20,000 characters are read.
        names: names of the parameters where a signature gives them; they are looked for first.
    """
    parts: dict[Part, list[str]] = {part: [] for part in Part}
    fields: list[tuple[str, str, str]] = []
    part = Part.DESCRIPTION
    lines = text[:LONGEST].splitlines()[:_LINES]
    for number, line in enumerate(lines):
        if _UNDERLINE.match(line):
            continue
        if found := _FIELD.match(line):
            fields.append((found[1], found[2].strip(), found[3]))
            part = Part.OTHER
            continue
        # Single blanks only: patterns with several optional blanks would take time in the square of a long run.
        plain = " ".join(line.split())
        headed = _LINE_HEAD.match(plain)
        underlined = number + 1 < len(lines) and _UNDERLINE.match(lines[number + 1]) is not None
        if headed and (":" in line or underlined or line.lstrip().startswith(("#", "*", "_"))):
            part = _part(headed)
            continue
        if found := _HEAD_WITH_TEXT.match(plain):
            part, line = _part(found), found["text"]
        elif line.lstrip().startswith("#") and part is not Part.DESCRIPTION:
            part = Part.OTHER
        for piece_part, piece in _inline(line, part):
            part = piece_part
            parts[part].append(piece)
    prose = Prose(tidy("\n".join(parts[Part.DESCRIPTION])))
    prose.parameters = list(read_items(parts[Part.PARAMETERS], names))
    prose.response = tidy(" ".join(line.strip() for line in parts[Part.RESPONSE]))
    prose.examples = distinct(Example(tidy(_BULLET.sub("", line))) for line in parts[Part.EXAMPLES] if line.strip())
    _add_fields(prose, fields)
    if not prose.parameters:
        prose.parameters = [
            Draft(found["name"], description=tidy(found["text"])) for found in _SPOKEN.finditer(text[:LONGEST])
        ]
    return prose


def _part(found: re.Match[str]) -> Part:
    return next(part for part in _HEADS if found[part.value])


def _inline(line: str, part: Part) -> Iterator[tuple[Part, str]]:
    """A line cut at ``Parameters:`` and ``Returns:`` inside it."""
    position = 0
    for found in _INLINE_HEAD.finditer(line):
        if before := line[position : found.start()].strip():
            yield part, before
        head = _LINE_HEAD.match(found[1] + ":")
        part, position = (_part(head) if head else Part.OTHER), found.end()
    yield part, line[position:]


def read_items(lines: Sequence[str], names: Sequence[str] = ()) -> Iterator[Draft]:
    """One draft an item: a line ``name (type): text``, more indented lines continuing it, or all on one line."""
    text = " ".join(line.strip() for line in lines)
    if len([line for line in lines if line.strip()]) == 1 or (names and not _starts_items(lines)):
        yield from _items_of_line(text, names)
        return
    indent, draft = None, None
    filled = [line for line in lines if line.strip()]
    for raw, following in zip(filled, [*filled[1:], ""], strict=False):
        line = " ".join(_BULLET.sub("", raw).split())
        depth = _depth(raw)
        found = _ITEM.match(line) if indent is None or depth <= indent else None
        if found and (found["text"] is not None or found["type"] or _BULLET.match(raw) or found["name"] in names):
            indent = depth if indent is None else indent
            if draft:
                yield draft
            kind, text = found["type"] or "", found["text"] or ""
            if not kind and len(text) <= _TYPE_LENGTH and " : " in line and _depth(following) > depth:
                kind, text = text, ""
            draft = _draft(found["name"], kind, text)
        elif draft:
            draft = replace(draft, description=tidy(f"{draft.description} {line.strip()}"))
    if draft:
        yield draft


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _starts_items(lines: Sequence[str]) -> bool:
    return any(
        (found := _ITEM.match(" ".join(_BULLET.sub("", line).split()))) and found["text"] is not None for line in lines
    )


def _items_of_line(text: str, names: Sequence[str]) -> Iterator[Draft]:
    """Items of one line such as ``x (int): one thing. y (str): another``."""
    known = "|".join(re.escape(name) for name in names[:300] if name) or r"[^\W\d]\w{0,60}"
    typed = r"\((?P<type>[^()]*(?:\([^()]*\)[^()]*){0,8})\)"
    pattern = (
        rf"(?<![\w.'\"(])[`'\"]?(?P<name>{known})[`'\"]?\s*(?:{typed}\s*(?::|-(?=\s))|:(?=\s))"
        if names
        else (rf"(?:^|(?<=[.;,\s]))[`'\"]?(?P<name>{known})[`'\"]?\s*(?:{typed}\s*(?::|-(?=\s))|:(?=\s))")
    )
    found = list(re.finditer(pattern, text))
    for place, match in enumerate(found):
        end = found[place + 1].start() if place + 1 < len(found) else len(text)
        yield _draft(match["name"], match["type"] or "", text[match.end() : end].strip(" ;,-"))


def _draft(name: str, kind: str, text: str) -> Draft:
    """An item whose brackets hold a type, or ``str, required``."""
    written = read_type(kind.strip("`* "))
    marked = written.required
    description = tidy(text)
    if marked is None and written.name.lower() in ("required", "optional"):
        marked = says_required(written.name)
        written = read_type("")
    return Draft(name.lstrip("*"), written.name, description, marked, default=written.default or None)


def _add_fields(prose: Prose, fields: Sequence[tuple[str, str, str]]) -> None:
    """Sphinx fields: ``:param int x: text``, ``:type x: int``, ``:returns: text``."""
    types = {name: text for kind, name, text in fields if kind == "type"}
    for kind, head, text in fields:
        if kind == "param" and head:
            *kinds, name = head.split()
            prose.parameters.append(_draft(name, types.get(name, " ".join(kinds)), text))
        elif kind in ("return", "returns") and not prose.response:
            prose.response = tidy(text)
    kinds = [text for kind, _, text in fields if kind == "rtype"]
    if kinds and not prose.response:
        prose.response = tidy(kinds[0])
