"""Words for what is wrong in a file: quoted text with every invisible character spelt out, sizes, counts."""

from __future__ import annotations

import unicodedata

#: Characters of a quotation that are shown.
QUOTED = 80


def visible(text: str) -> str:
    """``text`` with every control, format, space (but U+0020) and private character written as ``U+XXXX``."""
    return "".join(
        c if c == " " or (c.isprintable() and unicodedata.category(c) not in ("Zs", "Cf", "Co")) else f"U+{ord(c):04X}"
        for c in text
    )


def quote(text: str | bytes) -> str:
    """A short quotation in double quotes, invisible characters as ``U+XXXX``, invalid UTF-8 as ``byte 0xXX``."""
    if isinstance(text, bytes):
        text = text[: 4 * QUOTED + 4].decode("utf-8", "backslashreplace")
    cut = text[:QUOTED]
    return f'"{visible(cut)}{"…" if len(text) > QUOTED else ""}"'


def character(value: int) -> str:
    """``U+00A0 (no-break space)``."""
    name = unicodedata.name(chr(value), "") or {0: "NUL", 9: "tab", 10: "line feed", 13: "carriage return"}.get(
        value, ""
    )
    return f"U+{value:04X}" + (f" ({name.lower() if value else name})" if name else "")


def size(count: int) -> str:
    """A number of bytes: ``512 MiB``, ``1.5 KiB``, ``17 bytes``."""
    for unit, name in ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB")):
        if count >= unit:
            return f"{count / unit:.4g} {name}"
    return plural(count, "byte")


def plural(count: int, noun: str, many: str | None = None) -> str:
    """``1 query``, ``1,200 queries``."""
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


def listing(items: list[str], shown: int = 10) -> str:
    """``"a", "b" and 3 more``."""
    more = f" and {len(items) - shown:,} more" if len(items) > shown else ""
    return ", ".join(quote(item) for item in items[:shown]) + more
