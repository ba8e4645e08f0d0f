"""One evaluation job on a page: how far it is, its log, why it failed, what it found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from dashboard.components import permalinks
from dashboard.components.failures import shown_errors
from dashboard.components.job_answers import show_round
from dashboard.components.model_names import model_title
from dashboard.components.moments import clock, duration, since
from dashboard.components.numbers import NONE, whole
from dashboard.components.run_detail import (
    RunPage,
    headline_sentence,
    old_new_table,
    raw_download,
    read_run,
    rounding_note,
    run_address,
    text_table,
)  # fmt: skip
from dashboard.components.untrusted import plain
from dashboard.components.worker_state import is_alive, known_workers, show_workers
from dashboard.current_site import the_site
from pipeline.formats.method_labels import method_title
from pipeline.jobs import job_client
from pipeline.jobs.job_client import Job, JobState
from pipeline.jobs.progress import STAGES, JobProgress, LogLine
from pipeline.jobs.submission import LOCAL_PERSON, publish_run
from store.errors import Conflict, NotFound

#: Seconds between two looks at a job that is not over.
LIVE_SECONDS = 1.0

#: A job's states as readers see them.
STATE_WORDS = {
    JobState.WAITING: "waiting",
    JobState.RUNNING: "running",
    JobState.DONE: "done",
    JobState.FAILED: "failed",
    JobState.CANCELLED: "cancelled",
    JobState.ANSWERS: "waiting for answers",
}


def job_title(job: Job) -> str:
    """``MiniLM-L6 on demo-tools@1``."""
    return f"{model_title(job.request.model)} on {job.request.benchmark}"


def method_words(job: Job) -> str:
    """The method, and of an adapter what it learns where that is more than the one label."""
    method = job.request.method
    every = method == "adapter" and job.request.positives == "equivalents"
    return method_title(method) + (", every valid tool" if every else "")


def job_options(job: Job) -> str:
    """What was asked for beside model and benchmark, in a line."""
    request = job.request
    said = [method_title(request.method) + (f" {request.method_preset}" if request.method_preset else "")]
    said.append(f"encoded as the {'model card says' if request.preset == 'card' else 'papers did'}")
    if request.method == "adapter":
        said.append("learns every valid tool" if request.positives == "equivalents" else "learns the one label")
    if request.instruction:
        said.append("with instruction")
    if request.dtype:
        said.append(request.dtype)
    if request.depth != 100:
        said.append(f"depth {request.depth}")
    return ", ".join(said)


def stages_of(job: Job) -> list[str]:
    """The stages that a job goes through, in order; a lexical model encodes nothing."""
    progress = job.progress
    lexical = job.request.model.casefold() in {"bm25", "bm25s"}
    skipped = {"documents", "queries"} if lexical else set()
    if job.request.method != "adapter":
        skipped.add("training")
    return [stage for stage in STAGES if stage not in skipped or (progress is not None and progress.stage == stage)]


def progress_line(job: Job, progress: JobProgress | None) -> tuple[float, str]:
    """Share of the present stage, and the line above its bar."""
    if progress is None:
        return 0.0, "Starting"
    stages = stages_of(job)
    words = progress.words[:1].upper() + progress.words[1:]
    parts = [words]
    if progress.total > 1:
        parts[0] += f": {whole(progress.done)} of {whole(progress.total)}"
    if progress.remaining_s is not None and progress.done < progress.total:
        parts.append(f"{left_words(progress.remaining_s)} of this step")
    if progress.stage in stages:
        parts.append(f"step {stages.index(progress.stage) + 1} of {len(stages)}")
    return progress.fraction, " · ".join(parts)


def left_words(seconds: float) -> str:
    """How much time is left: ``about 2 min left``."""
    return "less than a second left" if seconds < 1 else f"about {duration(seconds)} left"


def show_job(job_id: str) -> None:
    """The job, looked at again every second until it is over.

    Raises:
        NotFound: there is no such job.
    """
    site = the_site()
    job = job_client.job(site, job_id)
    with st.container(gap="xxsmall"):
        st.title(plain(job_title(job)), anchor=False)
        st.caption(plain(f"{job_options(job)} · asked for at {clock(job.created)}"))
    if not job.state.ended:
        # While a fragment runs by itself the rest of the page stays; at the end the whole page is drawn once more.
        st.fragment(_live, run_every=LIVE_SECONDS)(job_id)
        return
    if job.state is JobState.DONE:
        _show_done(job)
    elif job.state is JobState.FAILED:
        _show_failed(job)
    elif job.state is JobState.ANSWERS:
        show_round(job)
    else:
        _show_cancelled(job)
    show_log(job, expanded=job.state is JobState.FAILED)


def _live(job_id: str) -> None:
    """What changes while a job waits and runs."""
    with shown_errors():
        _look(job_id)


def _look(job_id: str) -> None:
    job = job_client.job(the_site(), job_id)
    if job.state.ended:
        st.rerun()
    workers = known_workers()
    served = any(is_alive(worker) and job.queue in worker.queues for worker in workers)
    if job.state is JobState.WAITING:
        place = "Waiting" if job.position is None else f"Place {job.position} in the queue"
        st.progress(0.0, f"{place}: {job.waiting_for}" if served and job.waiting_for else place)
    else:
        fraction, line = progress_line(job, job.progress)
        st.progress(fraction, line)
        if job.waiting_for:
            st.warning(f"It pauses: {job.waiting_for}.", icon=":material/pause:")
    ran = f"running for {since(job.started)}" if job.state is JobState.RUNNING else f"asked {since(job.created)} ago"
    again = f", start number {job.attempts}" if job.attempts > 1 else ""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if st.button("Cancel", icon=":material/close:", key=f"job_cancel_{job.id}"):
            job_client.cancel(the_site(), job.id)
            st.rerun()
        st.caption(f"{ran[:1].upper() + ran[1:]}{again}. You may close this page: the address brings it back.")
    show_workers(workers, job.queue or None)
    show_log(job, expanded=True)


def show_log(job: Job, *, expanded: bool) -> None:
    """What the job said, with the reader's clock."""
    show_lines(job_client.log(the_site(), job.id), expanded=expanded)


def show_lines(lines: Sequence[LogLine], *, expanded: bool) -> None:
    """The log of a job of any kind; nothing where it said nothing."""
    if not lines:
        return
    with st.expander(f"Log, {len(lines)} {'line' if len(lines) == 1 else 'lines'}", expanded=expanded):
        text = "\n".join(f"{clock(line.at, seconds=True)}  {line.text}" for line in lines)
        st.code(text, language=None, wrap_lines=True, height="content" if len(lines) < 16 else 360)


def retry_button(job: Job, *, key: str, then: Callable[[], None]) -> None:
    """A button that starts a failed or cancelled job again."""
    if st.button("Try again", type="primary", icon=":material/refresh:", key=f"{key}_retry_{job.id}"):
        job_client.retry(the_site(), job.id)
        then()


def _show_failed(job: Job) -> None:
    reason = plain(job.error[:1].upper() + job.error[1:])
    st.error(f"**It failed after {since(job.started or job.created, job.ended)}.** {reason}", icon=":material/error:")
    _again(job, "What was encoded is kept, so another try goes on from there.")


def _show_cancelled(job: Job) -> None:
    st.info("This job was cancelled. Nothing was scored or stored as a run.", icon=":material/close:")
    _again(job, "What was encoded is kept, so it goes on from there.")


def _again(job: Job, note: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        retry_button(job, key="job", then=st.rerun)
        st.caption(note)


def _show_done(job: Job) -> None:
    try:
        page = read_run(job.run_id or "", person=LOCAL_PERSON)
    except NotFound:
        st.info("The job is done, and its run was removed since or belongs to somebody else.")
        return
    took = since(job.started, job.ended)
    k = 10 if 10 in page.benchmark.ks else page.benchmark.ks[0]
    sentence = headline_sentence(page, k)
    if sentence:
        st.markdown(f"{sentence} Measured in {took}.")
    domains = [domain.name for domain in page.benchmark.domains]
    figures = old_new_table(page.summaries, k, domains, page.benchmark.headline)
    text_table(figures, key="job_figures", label=f"Figures of {page.retriever.name} at K = {k}")
    for note in filter(None, (rounding_note(figures), cost_line(page))):
        st.caption(note)
    result_actions(page, key="job")


def result_actions(page: RunPage, *, key: str) -> None:
    """Publish, or look at it where it is published; the run's own page; its ranking."""
    run = page.run
    private = run.visibility == "private"
    published = run.state == "published" and not private
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if published:
            permalinks.leaderboard_link(
                label="See it on the leaderboard",
                icon=":material/leaderboard:",
                query_params={"lb_benchmark": page.benchmark.name, "run": run.id},
            )
        elif st.button("Publish", type="primary", icon=":material/public:", key=f"{key}_publish_{run.id}"):
            try:
                publish_run(the_site(), run.id)
            except Conflict as error:
                st.toast(plain(str(error)))
            st.rerun()
        query = {"run": run.id} | ({"token": run.private_token} if private and run.private_token else {})
        st.page_link("pages/run.py", label="Open the run", icon=":material/open_in_full:", query_params=query)
        raw_download(run, key=key)
    if not published:
        st.caption("Private: it is in no list until you publish it. This link opens it:")
        st.code(permalinks.full_address(run_address(page)), language=None)


def cost_line(page: RunPage) -> str:
    """What the run cost, in a line; empty where nothing was measured."""
    cost = page.run.efficiency or {}
    parts = []
    encode, query_ms = cost.get("encode_seconds_per_1000_documents"), cost.get("query_ms")
    if encode is not None:
        parts.append(f"1{chr(0x202F)}000 documents in {duration(encode)}")
    if query_ms is not None:
        parts.append(f"{query_ms:.2g} ms a query" if query_ms < 100 else f"{query_ms:.0f} ms a query")
    if cost.get("dimension"):
        parts.append(f"{whole(cost['dimension'])} dimensions")
    if cost.get("index_bytes"):
        parts.append(f"index of {cost['index_bytes'] / 1e6:.3g} MB")
    if cost.get("device"):
        parts.append(f"on {cost['device']}")
    return f"Cost: {', '.join(parts)}." if parts else ""


def took_text(job: Job) -> str:
    """How long a job took, or has been running; ``—`` before it starts."""
    return NONE if job.started is None else since(job.started, job.ended if job.state.ended else None)
