"""Whether a document says that a parameter may be left out."""

from __future__ import annotations

import re

_OPTIONAL = re.compile(
    r"""
      ^\W*optional\b
    | [(\[,;]\s*optional\b
    | \boptional\b\W*$
    | \b(?:is|are)\s+(?:an?\s+)?optional\b
    | \boptional(?:ly)?\s+(?:parameter|argument|field|input|setting|flag)\b
    | \(if\s+any\)
    | \b(?:is|are)\s+not\s+(?:required|mandatory)\b
    | ^\W*not\s+required\b
    | \b(?:can|may)\s+be\s+(?:omitted|left\s+(?:out|blank|empty))\b
    | \bif\s+(?:(?:it|this)\s+is\s+)?(?:omitted|left\s+(?:out|blank|empty))\b
    | \bif\s+(?:(?:it|this)\s+is\s+)?not\s+(?:provided|given|specified|supplied|set)\b
    | (?:可选|选填|非必填|非必需)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_REQUIRED = re.compile(
    r"^\W*(?:required|mandatory)\b|[(\[,;]\s*(?:required|mandatory)\b|\b(?:not|never)\s+optional\b"
    r"|(?<!非)(?:必填|必需)",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"""\boptional\s+(?:parameters?|arguments?|inputs?|fields?)\b[^.'"`]{0,40}
        (?P<names>['"`]\w{1,60}['"`](?:\s*(?:,|and|or|&)?\s*(?:and\s+)?['"`]\w{1,60}['"`]){0,30})""",
    re.IGNORECASE | re.VERBOSE,
)
_NAME = re.compile(r"['\"`](\w{1,60})['\"`]")
#: Characters looked at: a parameter that may be left out says so early.
_LOOKED_AT = 2_000
_WORDS = {
    "true": True,
    "yes": True,
    "required": True,
    "mandatory": True,
    "1": True,
    "false": False,
    "no": False,
    "optional": False,
    "0": False,
}


def says_required(text: str) -> bool | None:
    """True for "required", False for "optional", None when the text says neither."""
    text = text[:_LOOKED_AT]
    if _REQUIRED.search(text):
        return True
    return False if _OPTIONAL.search(text) else None


def flag(value: object) -> bool | None:
    """A ``required`` key's value as it is met: a truth value, a word, 0 or 1; None for anything else."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str | int):
        return _WORDS.get(str(value)[:20].strip().lower())
    return None


def named_optional(text: str) -> frozenset[str]:
    """Names that a description lists as optional: ``two optional parameters - 'a' and 'b'``."""
    if "optional" not in text.lower():
        return frozenset()
    return frozenset(name for found in _NAMED.finditer(text[:_LOOKED_AT]) for name in _NAME.findall(found["names"]))
