"""A round of batch files: download what is asked, upload what was answered."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from dashboard.components.annotation_words import step_line
from dashboard.components.failures import message_of
from dashboard.components.numbers import whole
from dashboard.components.untrusted import plain
from dashboard.current_site import the_site
from pipeline.errors import EquiRankError
from pipeline.jobs.annotations import requests
from store.errors import StoreError

if TYPE_CHECKING:
    from pipeline.jobs.annotations.following import AnnotationProgress

_CHUNK = 1 << 20


def batch_round(progress: AnnotationProgress) -> None:
    """Draw the files of the round that waits, and the place for their answers."""
    record = progress.record
    share, line = step_line(progress)
    st.progress(min(share, 1.0), line)
    files = "a file" if len(progress.batch) == 1 else f"{len(progress.batch)} files"
    st.markdown(
        f"**{_questions(progress.pending)} in {files}.** Give them to a provider as a batch in OpenAI's "
        "format (`/v1/chat/completions`), then upload the file that comes back. The next stage is asked after that: "
        "one round a stage, and another where a query has to be split once more."
    )
    artifacts = the_site().artifacts
    with st.container(horizontal=True, gap="small"):
        for number, digest in enumerate(progress.batch, start=1):
            part = "" if len(progress.batch) == 1 else f" {number} of {len(progress.batch)}"
            st.download_button(
                f"Batch file{part}",
                data=lambda digest=digest: artifacts.get_bytes(digest),  # type: ignore[misc]
                file_name=f"equirank-{record.id[:12]}-{number}.jsonl",
                mime="application/x-ndjson",
                icon=":material/download:",
                on_click="ignore",
                key=f"an_part_{record.id}_{number}_{digest[:8]}",
            )
    _upload(progress)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if st.button("Ask live instead", icon=":material/play_arrow:", key=f"an_live_{record.id}"):
            try:
                requests.start(the_site(), record.id)
            except (EquiRankError, StoreError) as error:
                st.error(plain(message_of(error)), icon=":material/error:")
            else:
                st.rerun()
        st.caption("What was answered stays answered.")


def _questions(count: int) -> str:
    return "1 question waits" if count == 1 else f"{whole(count)} questions wait"


def _upload(progress: AnnotationProgress) -> None:
    """Take one answers file and go on."""
    record = progress.record
    limit = the_site().settings.limit_upload_mb
    uploaded = st.file_uploader(
        f"Answers, JSON Lines, up to {limit} MB", key=f"an_answers_{record.id}_{len(record.answers)}",
        max_upload_size=limit,
    )  # fmt: skip
    st.caption(
        "Lines that are unknown, damaged or there twice are left out and reported by number; uploading a file again "
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
        try:
            requests.import_answers(the_site(), record.id, path)
        except (EquiRankError, StoreError) as error:
            st.error(plain(message_of(error)), icon=":material/error:")
            return
    st.rerun()
