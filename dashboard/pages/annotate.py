"""Annotate: expand a benchmark to every valid answer, follow it, read what it found; review, dispute and grow labels.

The address says what is open: ``?expansion=…`` one expansion, ``?an_view=…`` one of the other parts.
"""

from __future__ import annotations

import streamlit as st

from dashboard.components import permalinks
from dashboard.components.annotation_form import expansion_form
from dashboard.components.annotation_list import LIVE_SECONDS, expansion_list
from dashboard.components.annotation_parts import PARTS, label_part
from dashboard.components.annotation_result import show_finished
from dashboard.components.annotation_run import show_unfinished
from dashboard.components.annotation_words import EXPANSION, INTRODUCTION, VIEW, brief_settings, state_word, title
from dashboard.components.failures import shown_errors
from dashboard.components.moments import clock
from dashboard.components.untrusted import plain
from dashboard.current_site import the_site
from pipeline.jobs.annotations import following
from pipeline.jobs.annotations.following import AnnotationProgress
from pipeline.jobs.job_client import JobState
from pipeline.toolex.settings import settings_from_json
from store.errors import NotFound

EXPAND = "Expand"


def one_expansion(annotation_id: str) -> None:
    """An expansion, and the way back."""
    try:
        progress = following.look(the_site(), annotation_id)
    except NotFound as error:
        _heading("No such expansion")
        st.markdown(plain(str(error)[:1].upper() + str(error)[1:]) + ".")
        return
    with st.container(gap="xxsmall"):
        _heading(plain(title(progress)))
        settings = brief_settings(settings_from_json(progress.record.settings))
        st.caption(plain(f"{state_word(progress)} · asked for at {clock(progress.record.created_at)} · {settings}"))
    if progress.state is JobState.DONE:
        show_finished(progress)
    else:
        show_unfinished(progress)


def _heading(words: str) -> None:
    """A title, and the way back beside it."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", gap="small"):
        st.title(words, anchor=False, width="content")
        # No link: one to the page that is open is drawn as where one is already.
        if st.button("All expansions", icon=":material/list:", type="tertiary", key="an_back"):
            st.switch_page("pages/annotate.py")


def listing(shown: dict[str, str]) -> None:
    """All expansions; looks again while one is open.

    Args:
        shown: the open ones as the rest of the page says them; see ``open_states``.
    """
    with shown_errors():
        found = following.list_annotations(the_site())
        if shown != open_states(found):
            st.rerun()
        expansion_list(found)


def open_states(found: list[AnnotationProgress]) -> dict[str, str]:
    """Those that wait or run: id → state."""
    return {one.record.id: state_word(one) for one in found if one.can_cancel}


def page() -> None:
    """Draw the page."""
    annotation_id = st.query_params.get(EXPANSION)
    if annotation_id:
        one_expansion(annotation_id)
        return
    st.title("Annotate", anchor=False)
    view = permalinks.segments("Part of the work", [EXPAND, *PARTS], VIEW, EXPAND, label_visibility="collapsed")
    if view != EXPAND:
        label_part(view)
        return
    st.markdown(INTRODUCTION)
    found = following.list_annotations(the_site())
    for one in found:
        # Whoever comes back to see how it goes need not pass the form.
        if one.can_cancel and st.button(
            f"{plain(title(one))} is {state_word(one)}: follow it", icon=":material/arrow_forward:",
            type="tertiary", key=f"an_open_{one.record.id}",
        ):  # fmt: skip
            st.switch_page("pages/annotate.py", query_params={EXPANSION: one.record.id})
    expansion_form()
    shown = open_states(found)
    st.fragment(listing, run_every=LIVE_SECONDS if shown else None)(shown)


with shown_errors():
    page()
