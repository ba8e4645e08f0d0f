"""An evaluation that waits for answers: its batch files to download, and a place for what came back."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import streamlit as st

from dashboard.components.failures import message_of
from dashboard.components.numbers import whole
from dashboard.components.untrusted import plain
from dashboard.current_site import the_site
from pipeline.errors import EquiRankError
from pipeline.jobs import job_client
from pipeline.jobs.job_client import Job
from store.errors import StoreError

_CHUNK = 1 << 20


def show_round(job: Job) -> None:
    """Draw what a job in the state ``ANSWERS`` needs.

    Args:
        job: its ``batch`` names the files.
    """
    files = "a file" if len(job.batch) == 1 else f"{len(job.batch)} files"
    questions = "1 question waits" if job.pending == 1 else f"{whole(job.pending)} questions wait"
    st.markdown(
        f"**{questions} in {files}.** Give them to a provider as a batch in OpenAI's format "
        "(`/v1/chat/completions`), then upload the file that comes back: the job goes on at once. Where a method asks "
        "about what it was answered, there is another round."
    )
    artifacts = the_site().artifacts
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for number, digest in enumerate(job.batch, start=1):
            part = "" if len(job.batch) == 1 else f" {number} of {len(job.batch)}"
            st.download_button(
                f"Batch file{part}",
                data=lambda digest=digest: artifacts.get_bytes(digest),  # type: ignore[misc]
                file_name=f"equirank-{job.id[-12:]}-{number}.jsonl",
                mime="application/x-ndjson",
                icon=":material/download:",
                on_click="ignore",
                key=f"job_part_{number}_{digest[:8]}",
            )
        if st.button(
            "Look again",
            icon=":material/refresh:",
            key=f"job_again_{job.id}",
            help="Goes on with what other work was answered meanwhile, and writes the rest into a new file.",
        ):
            _then(lambda: job_client.retry(the_site(), job.id))
    _upload(job)


def _upload(job: Job) -> None:
    """Take one answers file and go on."""
    limit = the_site().settings.limit_upload_mb
    uploaded = st.file_uploader(
        f"Answers, JSON Lines, up to {limit} MB",
        # Another widget a round: a file that was taken is not taken again.
        key=f"job_answers_{job.id}_{len(job_client.answer_files(the_site(), job.id))}",
        max_upload_size=limit,
    )
    st.caption(
        "Lines that are unknown, damaged or there twice are left out, and the log says which; uploading a file again "
        "changes nothing. Questions without an answer stay in the next batch file."
    )
    if uploaded is None:
        return
    if uploaded.size > limit << 20:
        st.error(f"The file has more than {limit} MB; upload it in parts, line by line.", icon=":material/error:")
        return
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "answers.jsonl"
        with path.open("wb") as copy:
            while part := uploaded.read(_CHUNK):
                copy.write(part)
        _then(lambda: job_client.import_answers(the_site(), job.id, path))


def _then(go_on: Callable[[], Job]) -> None:
    """Let the job go on, and draw the page anew; what is wrong is said in place."""
    try:
        go_on()
    except (EquiRankError, StoreError) as error:
        st.error(plain(message_of(error)), icon=":material/error:")
    else:
        st.rerun()
