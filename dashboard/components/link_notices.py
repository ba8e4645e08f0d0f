"""What a link names and its page cannot show: said above the page, and never replaced without a word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from dashboard.components.untrusted import plain

#: One sentence for every reason: whoever guesses an id learns nothing from the answer.
HIDDEN = "it does not exist, is private or was withdrawn"
_PAGE, _PLACE, _REPLACED = "link_page", "link_place", "link_replaced"


def open_page(page: str) -> None:
    """Make room for notices above a page; another page starts without those of the last one."""
    if st.session_state.get(_PAGE) != page:
        st.session_state[_REPLACED] = {}
    st.session_state[_PAGE] = page
    st.session_state[_PLACE] = (_this_run(), st.container(gap="xxsmall"))


def _this_run() -> object:
    """What lives as long as one run of the script; places of an earlier run belong to other elements by now."""
    context = get_script_run_ctx(suppress_warning=True)
    return None if context is None else context.cursors


def _warn(text: str) -> None:
    run, place = st.session_state.get(_PLACE) or (None, None)
    (place if run is _this_run() and place is not None else st).warning(text, icon=":material/link_off:")


def cannot_show(label: str, why: str = HIDDEN) -> None:
    """Say that what a link names for a control is not to be seen here.

    Args:
        label: of the control.
        why: one sentence for all reasons there can be.
    """
    _warn(
        f"{plain(label)}: this link names one that cannot be shown here: {why}. Nothing is shown in its place; "
        "choose another."
    )


def left_out(label: str, number: int) -> None:
    """Say that some of the runs or rows that a link names are not to be seen here."""
    named = "one" if number == 1 else str(number)
    _warn(f"{plain(label)}: this link names {named} that cannot be shown here: {HIDDEN}. Nothing replaces it.")


def replaced(label: str, key: str, said: Sequence[str], shown: Any, written: str) -> None:
    """Remember that a link's words are not offered and that a control shows something else, until that is changed."""
    st.session_state.setdefault(_REPLACED, {})[key] = (label, list(said), shown, written)


def show_replaced(key: str, value: Any) -> None:
    """Say what ``replaced`` remembered, for as long as the control has the same value."""
    known: dict[str, Any] = st.session_state.get(_REPLACED) or {}
    if key not in known:
        return
    label, said, shown, written = known[key]
    if value != shown:
        del known[key]
        return
    words = ", ".join(f"“{plain(word[:80])}”" for word in said)
    instead = f"shown instead: {plain(written)}" if written else "nothing is chosen instead"
    _warn(f"{plain(label)}: this link says {words}, which is not offered here; {instead}.")
