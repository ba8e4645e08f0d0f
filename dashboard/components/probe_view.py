"""Trying an own model before its evaluation is asked for: a worker loads it and looks at its first answers."""

from __future__ import annotations

import streamlit as st

from dashboard.components.cost import small_number
from dashboard.components.failures import show, shown_errors
from dashboard.components.moments import duration
from dashboard.components.numbers import whole
from dashboard.components.untrusted import plain
from dashboard.current_site import the_site
from pipeline.jobs import probes
from pipeline.jobs.evaluation_request import EvaluationRequest
from pipeline.jobs.job_client import JobState
from pipeline.retrieval.probe import Probe

_KEPT = "ev_probe"


def probe_button(request: EvaluationRequest) -> None:
    """Ask for a probe of the request's model."""
    if st.button("Try it first", icon=":material/troubleshoot:", key="ev_try", help="Loads it and encodes 3 texts."):
        st.session_state[_KEPT] = (_about(request), probes.ask(the_site(), request))


def show_probe(request: EvaluationRequest) -> None:
    """What was found of this model, or that it is being tried; nothing where nobody asked."""
    kept = st.session_state.get(_KEPT)
    if kept is None or kept[0] != _about(request):
        return
    over = probes.look(the_site(), kept[1]).state.ended
    st.fragment(_look, run_every=None if over else 1.0)(kept[1], over)


def _about(request: EvaluationRequest) -> tuple[str, ...]:
    """What a probe depends on."""
    return request.model, request.endpoint_url, request.preset, request.dtype


def _look(probe_id: str, over: bool) -> None:
    with shown_errors():
        job = probes.look(the_site(), probe_id)
        if job.state.ended and not over:
            st.rerun()
        if job.found is not None:
            st.success(probe_sentence(job.found), icon=":material/check_circle:")
            for note in job.found.notes:
                st.caption(plain(note))
        elif job.state is JobState.FAILED:
            show(f"It cannot be used: {job.error}")
        elif job.waiting_for:
            st.info(f"Waiting: {job.waiting_for}.", icon=":material/hourglass_empty:")
        else:
            st.info("A worker loads the model and looks at its first answers.", icon=":material/hourglass_empty:")


def probe_sentence(found: Probe) -> str:
    """What a probe found, in words."""
    if found.dimension is None:
        return "**It works.** It encodes nothing."
    return (
        f"**It works:** {whole(found.dimension)} dimensions on {plain(found.device)}, ready in "
        f"{duration(found.load_seconds)}, {small_number(found.text_ms)} ms a text; its answers are finite, "
        "repeatable and differ from one another."
    )
