"""Text that others wrote, made harmless where a widget would read it as Markdown.

Wherever it can be, such text goes into ``st.text`` or a table of strings, which read no markup at all; this is
for the few labels and sentences that mix it with our own words.
"""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import urlsplit

#: Where the browser's Markdown makes a link of bare text, escaped or not: mail addresses, ``http://…`` and ``www.…``.
_LINKED = re.compile(r"(?<=[-.\w+]@)(?=[-\w]+\.[-\w])|(?<=http)(?=s?://)|(?<=www)(?=\.)", re.IGNORECASE)
#: Takes no room and lets no line break in.
_JOINER = "\u2060"
_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~:$&^=@\"'/%])")


def plain(text: str) -> str:
    """``text`` with every character that Markdown, HTML or Streamlit's directives read as markup escaped.

    Line breaks become spaces and control characters go; what would become a link gets an unseen character.
    """
    one_line = " ".join(text.split())
    printable = "".join(c for c in one_line if unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
    return _SPECIAL.sub(r"\\\1", _LINKED.sub(_JOINER, printable))


def web_address(text: str) -> str | None:
    """``text`` if it is a plain http(s) address that may become a link, else None."""
    if not text or any(c.isspace() or ord(c) < 32 for c in text):
        return None
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc:
        return None
    return text if not set(text) & set("<>\"'`\\()[]") else None
