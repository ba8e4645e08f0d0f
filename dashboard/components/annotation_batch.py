"""A round of batch files: download what is asked, upload what was answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from dashboard.components.annotation_budget import budget_button
from dashboard.components.annotation_words import step_line
from dashboard.components.batch_files import offer_files, take_answers, then, waiting_words
from dashboard.current_site import the_site
from pipeline.jobs.annotations import requests

if TYPE_CHECKING:
    from pipeline.jobs.annotations.following import AnnotationProgress


def batch_round(progress: AnnotationProgress) -> None:
    """Draw the files of the round that waits, and the place for their answers."""
    record = progress.record
    share, line = step_line(progress)
    st.progress(min(share, 1.0), line)
    st.markdown(
        f"**{waiting_words(progress.pending, len(progress.batch))}.** Give them to a provider as a batch in OpenAI's "
        "format (`/v1/chat/completions`), then upload the file that comes back. The next stage is asked after that: "
        "one round a stage, and another where a query has to be split once more."
    )
    with st.container(horizontal=True, gap="small"):
        offer_files(progress.batch, name=record.id[:12], key=f"an_{record.id}")
    take_answers(
        lambda path: requests.import_answers(the_site(), record.id, path),
        key=f"an_answers_{record.id}_{len(record.answers)}",
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if st.button("Ask live instead", icon=":material/play_arrow:", key=f"an_live_{record.id}"):
            then(lambda: requests.start(the_site(), record.id))
        budget_button(progress)
        st.caption("What was answered stays answered.")
