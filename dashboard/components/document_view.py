"""Two documents side by side, what differs marked; their text is never read as markup.

The documents were written by strangers. They reach the browser as data, and a script of ours puts every stretch
into the page as a text node, so there is no markup to escape from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import streamlit as st

from pipeline.scoring.document_differences import Segment, document_differences

#: Characters of one document that are shown; the benchmark's download has all of it.
MOST_SHOWN = 60_000

KEY = "documents"
_INDENTATION = re.compile(r"(^\s+|\s*\n\s*|\s+$)")

_CSS = """
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1.5rem; font-family: var(--st-font); }
@media (max-width: 640px) { .pair { grid-template-columns: 1fr; } }
.side { min-width: 0; }
.name { font-weight: 650; overflow-wrap: anywhere; color: var(--st-text-color); }
.role { font-size: 0.875rem; opacity: 0.75; margin-bottom: 0.4rem; overflow-wrap: anywhere;
  color: var(--st-text-color); }
pre { margin: 0; padding: 0.6rem 0 0; border-top: 1px solid var(--st-border-color); max-height: 26rem; overflow: auto;
  white-space: pre-wrap; overflow-wrap: anywhere; font-family: var(--st-code-font); font-size: 0.8125rem;
  line-height: 1.5; color: var(--st-text-color); }
mark { color: inherit; border-radius: 2px; background: color-mix(in srgb, var(--st-primary-color) 20%, transparent);
  box-decoration-break: clone; -webkit-box-decoration-break: clone; }
"""

_SCRIPT = """
export default function ({ data, parentElement }) {
  const make = (tag, name, text) => {
    const made = document.createElement(tag);
    if (name) made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const pair = make("div", "pair");
  for (const side of data.sides) {
    const box = make("section", "side");
    box.setAttribute("aria-label", side.role);
    box.append(make("div", "name", side.name), make("div", "role", side.role));
    const text = make("pre");
    text.tabIndex = 0;
    for (const [stretch, differs] of side.segments)
      text.append(differs ? make("mark", "", stretch) : document.createTextNode(stretch));
    box.append(text);
    pair.append(box);
  }
  const before = parentElement.querySelector(".pair");
  if (before) before.replaceWith(pair); else parentElement.append(pair);
}
"""


def side_by_side(
    reference: tuple[str, str, str], other: tuple[str, str, str] | None, *, key: str, marked: bool = True
) -> None:  # fmt: skip
    """Draw two documents, or one alone.

    Args:
        reference: name, role in words, documentation.
        other: the same of the other tool; None shows the first alone, nothing marked.
        key: of the element.
        marked: whether what differs is marked; texts of two kinds differ everywhere.
    """
    mount = _component()
    drawn = sides(reference, other) if marked or other is None else [*sides(reference, None), *sides(other, None)]
    mount(key=key, data={"sides": drawn})


def sides(reference: tuple[str, str, str], other: tuple[str, str, str] | None) -> list[dict[str, Any]]:
    """What the script draws: name, role and ``[text, differs]`` segments of each side."""
    if other is None:
        name, role, text = reference
        return [{"name": name, "role": role, "segments": [[_shown(text), False]]}]
    first, second = _compared(_shown(reference[2]), _shown(other[2]))
    return [
        {"name": name, "role": role, "segments": segments}
        for (name, role, _), segments in ((reference, first), (other, second))
    ]


@lru_cache(maxsize=256)
def _compared(one: str, two: str) -> tuple[list[list[Any]], list[list[Any]]]:
    first, second = document_differences(one, two)
    return _stretches(first), _stretches(second)


def _stretches(segments: Sequence[Segment]) -> list[list[Any]]:
    """``[text, differs]``; the white space between lines differs nowhere, as it is the layout's."""
    found: list[list[Any]] = []
    for segment in segments:
        parts = _INDENTATION.split(segment.text) if segment.differs else [segment.text]
        found += [[part, segment.differs and bool(part.strip())] for part in parts if part]
    return found


def _shown(text: str) -> str:
    """A document as a reader wants to see it: JSON on several lines, the very long cut."""
    laid_out = text
    if text[:1] in "{[" and len(text) <= MOST_SHOWN:
        try:
            laid_out = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
        except (ValueError, RecursionError):
            laid_out = text
    if len(laid_out) > MOST_SHOWN:
        laid_out = laid_out[:MOST_SHOWN] + f"\n… {len(laid_out) - MOST_SHOWN} more characters"
    # A lone surrogate cannot be sent.
    return laid_out.encode("utf-8", "replace").decode()


@st.cache_resource
def _component() -> Any:
    return st.components.v2.component(KEY, css=_CSS, js=_SCRIPT)
