"""SKILL.md: front matter and a Markdown document about how to do a task.

The description is the front matter's. Lists under headings such as "When to use this skill" or "Example prompts" are
the examples, a section about the output is the response, one about inputs or arguments the parameters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from pipeline.formats.skill_document import split_skill_document
from pipeline.mftr.rules.intents import distinct
from pipeline.mftr.rules.parameters import Draft, read_parameters, settle
from pipeline.mftr.rules.prose import read_items
from pipeline.mftr.rules.values import tidy
from pipeline.mftr.schema import Example, StandardizedTool

_FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_FRONT_MATTER_BYTES = 64 * 1024
_BODY = 200_000
_TEXT_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_HEADING = re.compile(r"^(#{1,6})[ \t]+(\S.*)$")
_ITEM = re.compile(r"^[ \t]{0,4}(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(.+)$")
_EXAMPLES = re.compile(
    r"^(?:when (?:to|should i|should you) (?:use|apply|activate|invoke)|use (?:this skill )?(?:when|for)"
    r"|when this skill|(?:common |typical )?use cases|example (?:prompts|queries|requests|interactions|tasks|uses?)"
    r"|sample (?:prompts|queries|requests)|copy-paste prompts|trigger(?:s|ing)?\b.{0,20}|usage scenarios|activation)",
    re.IGNORECASE,
)
_RESPONSE = re.compile(
    r"^(?:expected )?(?:outputs?(?: format| artifacts?)?|deliverables?|deliver|returns?|results?)\b.{0,20}$",
    re.IGNORECASE,
)
_PARAMETERS = re.compile(
    r"^(?:required |optional |expected )?(?:inputs?|arguments|parameters)\b.{0,20}$", re.IGNORECASE
)
_NOT = re.compile(r"\b(?:not|never|don't|avoid|without)\b", re.IGNORECASE)
_WARNING = re.compile(r"\W*(?:do not|don't|don’t|not|never|avoid)\b", re.IGNORECASE)
_MARKS = re.compile(r"(\*{1,3}|`{1,3}|__)([^\s*`](?:[^*`\n]{0,200}[^\s*`])?)\1")
#: A parameter in a list: its name is code or a small-letter word; "**Context**: …" is a remark, no parameter.
_PARAMETER = re.compile(
    r"^[ \t]{0,4}(?:[-*+•]|\d{1,3}[.)])[ \t]+[*_]{0,2}(?:`[\w.<>\[\]-]{1,80}`|[a-z][a-z0-9_-]{0,60}\b)"
)
_RULER = re.compile(r"^[\s|:=-]+$")
_RESPONSE_LENGTH = 1_500


@dataclass
class _Sections:
    examples: list[str] = field(default_factory=list)
    response: list[str] = field(default_factory=list)
    parameters: list[str] = field(default_factory=list)
    opening: list[str] = field(default_factory=list)


def matches_text(text: str) -> bool:
    """Front matter at the beginning."""
    return text.lstrip("\ufeff").startswith("---") and _FRONT_MATTER.match(text[:_FRONT_MATTER_BYTES]) is not None


def matches_markdown(text: str) -> bool:
    """A Markdown document without front matter: a heading at the beginning."""
    return _HEADING.match(text[:400].lstrip("\ufeff \t\r\n").partition("\n")[0]) is not None


def read(tool_id: str, documentation: str) -> StandardizedTool:
    """One skill or Markdown document, also with the description that an import put before it."""
    description, skill_md = split_skill_document(documentation)
    front, body = _front_matter(skill_md)
    sections = _sections(body[:_BODY])
    return StandardizedTool(
        tool_id,
        tidy(description) or tidy(front.get("summary")) or _plain(" ".join(sections.opening)),
        settle([*_declared(front), *read_items(sections.parameters)]),
        _plain("\n".join(sections.response))[:_RESPONSE_LENGTH].rstrip(),
        distinct(Example(_plain(text).strip(" \"'“”")) for text in sections.examples),
    )


def _front_matter(text: str) -> tuple[Mapping[str, Any], str]:
    match = _FRONT_MATTER.match(text[:_FRONT_MATTER_BYTES])
    if match is None:
        return {}, text
    body = text[match.end() :]
    try:
        entries = yaml.load(match[1], Loader=_TEXT_LOADER)  # every scalar stays text
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}, body
    return (entries, body) if isinstance(entries, dict) else ({}, body)


def _declared(front: Mapping[str, Any]) -> list[Draft]:
    """``arguments`` or ``inputs``, else the words of ``argument-hint``: ``<file> [language]``."""
    for key in ("arguments", "inputs", "parameters"):
        if drafts := read_parameters(front.get(key)):
            return drafts
    hint = front.get("argument-hint")
    if isinstance(hint, list):
        hint = " ".join(f"[{name}]" for name in hint[:50] if isinstance(name, str))
    if not isinstance(hint, str) or not ("[" in hint or "<" in hint):
        return []
    found = re.finditer(r"\[<?([^\W\d][\w -]{0,60})>?\]|<([^\W\d][\w -]{0,60})>", hint[:2_000])
    return [Draft(match[1] or match[2], marked=match[1] is None) for match in found]


def _sections(body: str) -> _Sections:
    """Lines of the sections that say something for a field; code blocks belong to none."""
    sections, kept, level, fenced, opened = _Sections(), None, 0, False, False
    for line in body.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
            continue
        if fenced:
            continue
        if heading := _HEADING.match(line):
            depth = len(heading[1])
            if kept is None or depth <= level:
                kept, level = _kept(sections, heading[2][:200].rstrip(" \t#")), depth
            opened = opened or bool(sections.opening)
        elif kept is sections.examples:
            if (item := _ITEM.match(line)) and not _WARNING.match(item[1]):
                kept.append(item[1])
        elif kept is sections.parameters:
            if _PARAMETER.match(line):
                kept.append(line)
        elif kept is not None:
            if not _RULER.match(line):
                kept.append(line)
        elif not opened and line.strip():
            sections.opening.append(line)
        elif sections.opening:
            opened = True
    return sections


def _kept(sections: _Sections, heading: str) -> list[str] | None:
    title = _plain(heading).strip(" :")
    if _EXAMPLES.match(title) and not _NOT.search(title):
        return sections.examples
    if _RESPONSE.match(title):
        return sections.response
    return sections.parameters if _PARAMETERS.match(title) else None


def _plain(text: str) -> str:
    """Markdown without its marks of emphasis and code, on one line."""
    return tidy(_MARKS.sub(r"\2", text))
