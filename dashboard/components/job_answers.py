"""An evaluation that waits for answers: what to do with its batch files."""

from __future__ import annotations

import streamlit as st

from dashboard.components.batch_files import offer_files, take_answers, then, waiting_words
from dashboard.current_site import the_site
from pipeline.jobs import job_client
from pipeline.jobs.job_client import Job


def show_round(job: Job) -> None:
    """Draw what a job in the state ``ANSWERS`` needs.

    Args:
        job: its ``batch`` names the files.
    """
    site = the_site()
    st.markdown(
        f"**{waiting_words(job.pending, len(job.batch))}.** Give them to a provider as a batch in OpenAI's format "
        "(`/v1/chat/completions`), then upload the file that comes back: the job goes on at once. Where a method asks "
        "about what it was answered, there is another round."
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        offer_files(job.batch, name=job.id[-12:], key="job")
        if st.button(
            "Look again",
            icon=":material/refresh:",
            key=f"job_again_{job.id}",
            help="Goes on with what other work was answered meanwhile, and writes the rest into a new file.",
        ):
            then(lambda: job_client.retry(site, job.id))
    taken = len(job_client.answer_files(site, job.id))
    take_answers(lambda path: job_client.import_answers(site, job.id, path), key=f"job_answers_{job.id}_{taken}")
