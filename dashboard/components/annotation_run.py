"""An expansion that is not done: how far it is, what it used, what failed, and how to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from dashboard.components.annotation_batch import batch_round
from dashboard.components.annotation_budget import budget_button
from dashboard.components.annotation_failures import show_failures
from dashboard.components.annotation_words import (
    meter_table,
    over_budget_sentence,
    settings_facts,
    spent_sentence,
    step_line,
)
from dashboard.components.batch_files import then
from dashboard.components.failures import shown_errors
from dashboard.components.job_view import show_lines
from dashboard.components.run_detail import facts_table, text_table
from dashboard.components.untrusted import plain
from dashboard.components.worker_state import known_workers, show_workers
from dashboard.current_site import the_site
from pipeline.jobs import durable, job_client
from pipeline.jobs.annotations import following, requests
from pipeline.jobs.job_client import JobState
from pipeline.toolex.settings import settings_from_json

if TYPE_CHECKING:
    from pipeline.jobs.annotations.following import AnnotationProgress

#: Seconds between two looks at one that is not over.
LIVE_SECONDS = 2.0


def show_unfinished(progress: AnnotationProgress) -> None:
    """Draw it; one that waits or runs is looked at again every second until it is over."""
    if progress.state in (JobState.WAITING, JobState.RUNNING):
        # While a fragment runs by itself the rest of the page stays; in another state the whole page is drawn anew.
        st.fragment(_live, run_every=LIVE_SECONDS)(progress.record.id, progress.state)
    elif progress.state is JobState.ANSWERS:
        batch_round(progress)
    else:
        _stopped(progress)
    if progress.state not in (JobState.WAITING, JobState.RUNNING):
        show_meter(progress, used=not progress.over_budget)
        show_failures(progress)
        show_log(progress)
    with st.expander("Settings"):
        facts_table(settings_facts(settings_from_json(progress.record.settings)))


def _live(annotation_id: str, shown: JobState) -> None:
    """What changes while it waits and runs.

    Args:
        annotation_id: the expansion.
        shown: the state that the rest of the page says.
    """
    with shown_errors():
        progress = following.look(the_site(), annotation_id)
        if progress.state is not shown:
            st.rerun()
        share, line = step_line(progress)
        if progress.state is JobState.WAITING:
            line = f"Waiting: {progress.waiting_for}" if progress.waiting_for else "Waiting"
        st.progress(min(share, 1.0), line)
        if progress.state is JobState.RUNNING and progress.waiting_for:
            st.warning(f"It pauses: {progress.waiting_for}.", icon=":material/pause:")
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            if st.button("Cancel", icon=":material/close:", key=f"an_cancel_{annotation_id}"):
                requests.cancel(the_site(), annotation_id)
                st.rerun()
            st.caption(
                "Every answer is kept as soon as it is there. You may close this page: the address brings it back."
            )
        show_workers(known_workers(), "llm")
        show_meter(progress)
        show_failures(progress)
        show_log(progress)


def _stopped(progress: AnnotationProgress) -> None:
    """Failed, cancelled or never started: why, and the ways on."""
    share, line = step_line(progress)
    if progress.over_budget:
        st.warning(over_budget_sentence(progress), icon=":material/payments:")
    elif progress.state is JobState.FAILED:
        st.error(f"**It stopped.** {plain(progress.error[:1].upper() + progress.error[1:])}.", icon=":material/error:")
    elif progress.state is JobState.CANCELLED:
        st.info("It was cancelled. No version was made; every answer it got is kept.", icon=":material/close:")
    else:
        st.info("It was written down and never started.", icon=":material/pause:")
    st.progress(min(share, 1.0), line)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        label = "Start" if progress.state is None else "Go on"
        if progress.over_budget:
            budget_button(progress, first=True)
        if st.button(
            label, icon=":material/play_arrow:", key=f"an_go_{progress.record.id}",
            type="secondary" if progress.over_budget else "primary",
        ):  # fmt: skip
            then(lambda: requests.start(the_site(), progress.record.id))
        if not progress.over_budget:
            budget_button(progress)
        if st.button("Go on with a batch file", icon=":material/description:", key=f"an_gobatch_{progress.record.id}"):
            then(lambda: requests.start(the_site(), progress.record.id, batch=True))
        st.caption("It goes on where it was: nothing that was answered is asked again.")


def show_meter(progress: AnnotationProgress, *, used: bool = True) -> None:
    """What was used of the budget, by stage and judge; in all too unless ``used`` is said already."""
    if used:
        st.markdown(spent_sentence(progress.spent, progress.budget))
    if not progress.meter:
        return
    text_table(
        meter_table(progress.meter), key=f"an_meter_{progress.record.id}", label="Calls, tokens and cost by stage"
    )
    st.caption(
        "Calls that were turned away (rate limits, faults of the provider) or lost are asked again and counted; a lost "
        "one at the most it can have cost. Open: sent, and not known how they ended."
    )


def show_log(progress: AnnotationProgress) -> None:
    """What its job said: bad lines of answers are there, by number."""
    if durable.has_jobs(the_site()):
        lines = job_client.log(the_site(), following.job_id_of(progress.record.id))
        show_lines(lines, expanded=progress.state is not JobState.DONE)
