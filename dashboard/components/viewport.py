"""Whether the window is narrow: pages fold their controls into one popover then.

Streamlit tells the server nothing about the window's width. A phone says so in its User-Agent; for everything
else a component without any look of its own reports when the window crosses 640 px, and costs a rerun only then.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

KEY = "viewport"

_SCRIPT = """
export default function ({ data, setStateValue }) {
  const narrow = window.matchMedia("(max-width: 640px)");
  const report = () => { if (narrow.matches !== data.narrow) setStateValue("narrow", narrow.matches); };
  report();
  narrow.addEventListener("change", report);
  return () => narrow.removeEventListener("change", report);
}
"""


def is_narrow() -> bool:
    """Whether the window is at most 640 px wide, as last reported; first guess from the User-Agent."""
    state: Any = st.session_state.get(KEY)
    if state and "narrow" in state:
        return bool(state["narrow"])
    return "Mobi" in (st.context.headers.get("User-Agent") or "")


def watch() -> None:
    """Mount the reporting component; call it once, at the end of a page."""
    narrow = is_narrow()
    mount = _component()
    mount(key=KEY, data={"narrow": narrow}, default={"narrow": narrow}, on_narrow_change=_ignore)


def _ignore() -> None:
    """A callback must exist for the value to be kept."""


@st.cache_resource
def _component() -> Any:
    return st.components.v2.component("viewport", js=_SCRIPT)
