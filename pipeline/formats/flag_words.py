"""Flags of runs in words."""

from __future__ import annotations

from collections.abc import Sequence

_FLAG_WORDS = {
    "ties": "ties",
    "shallow": "short lists",
    "partial": "partial, not ranked",
    "half_precision": "half precision",
    "oracle_like": "oracle-like",
    "identical": "same ranking as another run",
    "truncated": "cut at the depth limit",
}


def flag_words(flags: Sequence[str]) -> list[str]:
    """The flags of a run in words; ``missing:4`` is ``4 missing``."""
    said = []
    for flag in flags:
        name, _, value = flag.partition(":")
        if name == "missing":
            said.append(f"{value} missing")
        else:
            words = _FLAG_WORDS.get(name, name.replace("_", " "))
            said.append(f"{words} ({value})" if value and value.isdigit() else words)
    return said
