"""Jobs: every evaluation that was asked for, with how far it is; open, cancel or retry one; what else is to do."""

from __future__ import annotations

import polars as pl
import streamlit as st

from dashboard.components import permalinks, viewport
from dashboard.components.board_table import MOST_ROWS_SHOWN, ROW_HEIGHT
from dashboard.components.failures import shown_errors
from dashboard.components.job_view import (
    STATE_WORDS,
    job_options,
    job_title,
    method_words,
    progress_line,
    retry_button,
    took_text,
)  # fmt: skip
from dashboard.components.model_names import model_title
from dashboard.components.moments import clock, since
from dashboard.components.numbers import NONE, whole
from dashboard.components.run_detail import headline_sentence, read_run
from dashboard.components.untrusted import plain
from dashboard.components.worker_state import known_workers, show_workers
from dashboard.current_site import the_site
from pipeline.jobs import durable, job_client, other_jobs
from pipeline.jobs.job_client import Job, JobState
from pipeline.jobs.other_jobs import OtherJob
from pipeline.jobs.submission import LOCAL_PERSON
from store.errors import NotFound

#: Seconds between two looks while something waits or runs.
LIVE_SECONDS = 2.0
MINE, EVERY = "my jobs", "all jobs"
MOST = 200
#: Jobs beside evaluations that are named.
MOST_OTHERS = 5
#: On a phone what a job is at comes right after its name.
_NARROW_ORDER = ("Model", "State", "How it goes", "Progress", "Benchmark", "Method", "Asked", "Took")


def read_jobs(whose: str) -> list[Job]:
    """The newest jobs; none before the first was asked for."""
    site = the_site()
    if not durable.has_jobs(site):
        return []
    return job_client.list_jobs(site, person=LOCAL_PERSON if whose == MINE else None, limit=MOST)


def read_others(whose: str) -> list[OtherJob]:
    """What waits or runs beside evaluations; nothing among one's own jobs."""
    site = the_site()
    return other_jobs.open_jobs(site) if whose == EVERY and durable.has_jobs(site) else []


def others_sentence(found: list[OtherJob]) -> str:
    """One line on them: ``Beside evaluations: an expansion, running for 2 min.``; empty where there is none."""
    said = []
    for one in found[:MOST_OTHERS]:
        verb = "running" if one.state is JobState.RUNNING else "waiting"
        said.append(f"{one.kind}, {verb}" + ("" if one.since is None else f" for {since(one.since)}"))
    if len(found) > MOST_OTHERS:
        said.append(f"{whole(len(found) - MOST_OTHERS)} more")
    return f"Beside evaluations: {'; '.join(said)}." if said else ""


def progress_text(job: Job) -> str:
    """How far a job is, or what became of it, in a line."""
    if job.state is JobState.WAITING:
        return f"place {job.position}: {job.waiting_for}" if job.position else job.waiting_for
    if job.state is JobState.RUNNING:
        return f"pauses: {job.waiting_for}" if job.waiting_for else progress_line(job, job.progress)[1]
    if job.state is JobState.FAILED:
        return job.error
    if job.state is JobState.ANSWERS:
        return f"{whole(job.pending)} in its batch file: open it to go on"
    return result_text(the_site().database.url, job.run_id or "") if job.state is JobState.DONE else NONE


@st.cache_data(max_entries=1024, show_spinner=False)
def result_text(place: str, run_id: str) -> str:
    """The main figure of a finished job; a run's figures never change."""
    del place
    try:
        page = read_run(run_id, person=LOCAL_PERSON)
    except NotFound:
        return "run stored"
    k = 10 if 10 in page.benchmark.ks else page.benchmark.ks[0]
    return headline_sentence(page, k).replace("*", "").partition(" (")[0] or "run stored"


def jobs_frame(found: list[Job]) -> pl.DataFrame:
    """The table's columns, all text but the bar."""
    shares = [progress_line(job, job.progress)[0] if job.state is JobState.RUNNING else None for job in found]
    return pl.DataFrame(
        {
            "Model": [model_title(job.request.model) for job in found],
            "Benchmark": [job.request.benchmark for job in found],
            "Method": [method_words(job) for job in found],
            "State": [STATE_WORDS[job.state] for job in found],
            "Progress": shares,
            "How it goes": [progress_text(job) for job in found],
            "Asked": [clock(job.created) for job in found],
            "Took": [took_text(job) for job in found],
        },
        schema_overrides={"Progress": pl.Float64},
    )


def table(found: list[Job]) -> Job | None:
    """Draw the table; returns the selected job."""
    frame = jobs_frame(found)
    columns = _NARROW_ORDER if viewport.is_narrow() else tuple(frame.columns)
    if frame["Progress"].null_count() == frame.height:
        columns = tuple(name for name in columns if name != "Progress")
    state = st.dataframe(
        frame.to_pandas().style.map(lambda _: "font-weight: 700", subset=["Model"]),
        hide_index=True,
        lazy=False,
        on_select="rerun",
        selection_mode="single-row",
        selection_default={"selection": {"rows": [0]}} if len(found) == 1 else None,
        key="jobs_table",
        column_config={
            "Model": st.column_config.TextColumn(width=150),
            "Benchmark": st.column_config.TextColumn(width=120),
            "Method": st.column_config.TextColumn(width=160),
            "State": st.column_config.TextColumn(width=84),
            "Progress": st.column_config.ProgressColumn(
                width=100, min_value=0, max_value=1, format="percent", help="Of the step that a job is at."
            ),
            "How it goes": st.column_config.TextColumn(width=296),
            "Asked": st.column_config.TextColumn(width=76),
            "Took": st.column_config.TextColumn(width=76, alignment="right"),
        },
        height="content" if len(found) <= MOST_ROWS_SHOWN else ROW_HEIGHT * (MOST_ROWS_SHOWN + 1) + 2,
        column_order=columns,
        alt="Jobs",
    )
    rows = state["selection"]["rows"]
    return found[rows[0]] if rows and rows[0] < len(found) else None


def actions(job: Job) -> None:
    """The selected job: open it, cancel it, try it again."""
    st.subheader(plain(job_title(job)), anchor=False)
    st.caption(plain(job_options(job)))
    if job.error:
        st.error(plain(job.error[:1].upper() + job.error[1:]), icon=":material/error:")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if job.can_cancel and st.button("Cancel", icon=":material/close:", key=f"jobs_cancel_{job.id}"):
            job_client.cancel(the_site(), job.id)
            st.rerun()
        if job.can_retry and job.state is not JobState.ANSWERS:
            retry_button(job, key="jobs", then=st.rerun)
        label = "Its result" if job.state is JobState.DONE else "Follow it" if job.can_cancel else "Open it"
        st.page_link(
            "pages/evaluate.py", label=label, icon=":material/arrow_forward:", query_params={"job": job.id}
        )  # fmt: skip


def listing(whose: str, live: bool) -> None:
    """The part that looks again while anything is open; the page is drawn once more when that changes."""
    with shown_errors():
        found, others = read_jobs(whose), read_others(whose)
        if live != is_live(found, others):
            st.rerun()
        if live:
            show_workers(known_workers())
        if others:
            st.caption(others_sentence(others))
        if not found:
            st.markdown(
                "No job yet. Pick a model and a benchmark: the estimate comes first, and nothing starts before you say "
                "so."
            )
            return
        chosen = table(found)
        if chosen is not None:
            actions(chosen)


def is_live(found: list[Job], others: list[OtherJob]) -> bool:
    """Whether anything waits or runs."""
    return bool(others) or any(not job.state.ended for job in found)


def page() -> None:
    """Draw the page."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", gap="small"):
        st.title("Jobs", anchor=False, width="content")
        st.page_link("pages/evaluate.py", label="Evaluate a model", icon=":material/add:")
    whose = permalinks.segments("Whose jobs", [MINE, EVERY], "jobs_whose", MINE, label_visibility="collapsed")
    live = is_live(read_jobs(whose), read_others(whose))
    st.fragment(listing, run_every=LIVE_SECONDS if live else None)(whose, live)


with shown_errors():
    page()
