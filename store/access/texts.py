"""What a stranger may write about a run: short lines of visible characters, so that every list can show them."""

from __future__ import annotations

import unicodedata

from store.errors import InvalidRecord

#: Longest text of each field, in characters.
LONGEST = {"method": 100, "contract": 200, "link": 500, "licence": 100, "contact": 200}

#: Control, format and half characters, line and paragraph separators.
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def has_unseen(text: str) -> bool:
    """Whether a text holds characters that are not seen, or that change how their neighbours are shown."""
    return any(unicodedata.category(sign) in _UNSEEN for sign in text)


def check_texts(**fields: str | None) -> None:
    """Refuse what cannot be shown in one line; the fields are those of ``LONGEST``, None is not looked at.

    Raises:
        InvalidRecord: a text is too long or has control or invisible characters.
    """
    for name, text in fields.items():
        if text is not None and (len(text) > LONGEST[name] or has_unseen(text)):
            raise InvalidRecord(
                f"the {name} is at most {LONGEST[name]} characters, without line ends, control or invisible characters"
            )
