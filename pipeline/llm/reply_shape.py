"""Chat completions that say a good answer in a shape that litellm cannot read, put into one that it can.

litellm refuses the whole reply then, and the question would be asked, and paid for, again and again.
"""

from __future__ import annotations

import json
from typing import Any

_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


def readable(body: bytes) -> bytes:
    """The body of a reply; the same bytes unless something in it has to change.

    Counts of tokens that are no whole numbers are left out with all of ``usage``, as by a server that does not count;
    a message in parts becomes the text of its parts.
    """
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        return body
    if not isinstance(reply, dict) or not isinstance(reply.get("choices"), list):
        return body
    changed = False
    if "usage" in reply and not _is_usage(reply["usage"]):
        del reply["usage"]
        changed = True
    for choice in reply["choices"]:
        message = choice.get("message") if isinstance(choice, dict) else None
        if isinstance(message, dict) and isinstance(message.get("content"), list):
            message["content"] = "".join(_text(part) for part in message["content"])
            changed = True
    try:
        return json.dumps(reply).encode() if changed else body
    except RecursionError:
        return body


def _is_usage(usage: Any) -> bool:
    return isinstance(usage, dict) and all(_is_whole(usage.get(name, 0)) for name in _COUNTS)


def _is_whole(count: Any) -> bool:
    """Whether it can be read as a whole number, as litellm reads one."""
    if isinstance(count, str):
        return len(count) < 20 and count.isascii() and count.isdigit()
    return isinstance(count, int) or (isinstance(count, float) and count.is_integer())


def _text(part: Any) -> str:
    if isinstance(part, str):
        return part
    text = part.get("text") if isinstance(part, dict) and part.get("type") in ("text", "output_text", None) else None
    return text if isinstance(text, str) else ""
