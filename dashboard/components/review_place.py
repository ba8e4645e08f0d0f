"""The top of an item: when another one comes, the window goes there and so does the keyboard."""

from __future__ import annotations

from typing import Any

import streamlit as st

KEY = "review_place"

_SCRIPT = """
export default function ({ data, parentElement }) {
  let mark = parentElement.querySelector("div");
  if (!mark) {
    mark = document.createElement("div");
    mark.tabIndex = -1;
    mark.style.outline = "none";
    // Below the menu, which stays at the top of the window.
    mark.style.scrollMarginTop = "5rem";
    parentElement.append(mark);
  }
  mark.setAttribute("aria-label", data.label);
  mark.setAttribute("role", "group");
  if (mark.dataset.item !== undefined && mark.dataset.item !== data.item) {
    mark.scrollIntoView({ block: "start" });
    mark.focus({ preventScroll: true });
  }
  mark.dataset.item = data.item;
}
"""


def mark_top(item: str, label: str) -> None:
    """Mount the mark above an item.

    Args:
        item: the item that is shown.
        label: what a screen reader says when the next one comes.
    """
    mount = _component()
    mount(key=KEY, data={"item": item, "label": label})


@st.cache_resource
def _component() -> Any:
    return st.components.v2.component(KEY, js=_SCRIPT)
