"""Whether the window is narrow: pages fold their controls into one popover then.

Streamlit tells the server nothing about the window's width. A phone says so in its User-Agent; for everything
else a component without any look of its own reports when the window crosses 640 px, and costs a rerun only then.
"""

from __future__ import annotations

from typing import Any, NoReturn

import streamlit as st
from streamlit.runtime.scriptrunner import StopException

KEY = "viewport"

# Streamlit calls the function again when the data change, and the returned one only at the very end: a listener of
# the last call would report what is known already, and every report is a rerun. The mark says which width the page is
# drawn for; there is none until the page is drawn for the one that the window has.
_SCRIPT = """
const listening = new WeakMap();
export default function ({ data, parentElement, setStateValue }) {
  const narrow = window.matchMedia("(max-width: 640px)");
  const report = () => {
    const { dataset } = parentElement.host;
    if (narrow.matches === data.narrow) {
      dataset.drawnFor = data.narrow ? "narrow" : "wide";
    } else {
      delete dataset.drawnFor;
      setStateValue("narrow", narrow.matches);
    }
  };
  listening.get(parentElement)?.();
  const stop = () => narrow.removeEventListener("change", report);
  listening.set(parentElement, stop);
  narrow.addEventListener("change", report);
  report();
  return stop;
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


def end_page() -> NoReturn:
    """End the page here, as ``st.stop`` would, which lets nothing be mounted afterwards: ``watch`` still has to be."""
    raise StopException


def _ignore() -> None:
    """A callback must exist for the value to be kept."""


@st.cache_resource
def _component() -> Any:
    return st.components.v2.component("viewport", js=_SCRIPT)
