"""Questions that wait in batch files, of whatever work: the files to download, and a place for what came back."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import streamlit as st

from dashboard.components.failures import message_of
from dashboard.components.numbers import whole
from dashboard.components.untrusted import plain
from dashboard.current_site import the_site
from pipeline.errors import EquiRankError
from store.errors import StoreError

_CHUNK = 1 << 20


def waiting_words(questions: int, files: int) -> str:
    """``3 questions wait in a file``."""
    waits = "1 question waits" if questions == 1 else f"{whole(questions)} questions wait"
    return f"{waits} in {'a file' if files == 1 else f'{files} files'}"


def offer_files(digests: Sequence[str], *, name: str, key: str) -> None:
    """A download button a file.

    Args:
        digests: artifacts, in order.
        name: of the work, for the files' names; ours.
        key: of the elements.
    """
    artifacts = the_site().artifacts
    for number, digest in enumerate(digests, start=1):
        part = "" if len(digests) == 1 else f" {number} of {len(digests)}"
        st.download_button(
            f"Batch file{part}",
            data=lambda digest=digest: artifacts.get_bytes(digest),  # type: ignore[misc]
            file_name=f"equirank-{name}-{number}.jsonl",
            mime="application/x-ndjson",
            icon=":material/download:",
            on_click="ignore",
            key=f"{key}_part_{number}_{digest[:8]}",
        )


def take_answers(take: Callable[[Path], object], *, key: str) -> None:
    """A place for one answers file; draws the page anew once it was taken.

    Args:
        take: is given the file.
        key: of the element; another one a round, so that a file that was taken is not taken again.
    """
    limit = the_site().settings.limit_upload_mb
    uploaded = st.file_uploader(f"Answers, JSON Lines, up to {limit} MB", key=key, max_upload_size=limit)
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
        then(lambda: take(path))


def then(go_on: Callable[[], object]) -> None:
    """Let the work go on, and draw the page anew; what is wrong is said in place."""
    try:
        go_on()
    except (EquiRankError, StoreError) as error:
        st.error(plain(message_of(error)), icon=":material/error:")
    else:
        st.rerun()
