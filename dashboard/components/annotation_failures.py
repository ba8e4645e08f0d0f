"""Questions of an expansion that got no valid answer, and a button that asks them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import streamlit as st

from dashboard import annotation_reading, reading
from dashboard.components import permalinks
from dashboard.components.annotation_version import keep_shown, next_version, refused
from dashboard.components.annotation_words import EXPANSION, failures_sentence, stage_title
from dashboard.components.downloads import download_menu
from dashboard.components.failures import message_of, show
from dashboard.components.numbers import NONE, whole
from dashboard.components.untrusted import plain
from dashboard.current_site import the_site
from pipeline.errors import EquiRankError
from pipeline.jobs.annotations import requests
from pipeline.jobs.annotations.requests import AnnotationRequest
from pipeline.jobs.job_client import JobState
from pipeline.jobs.submission import LOCAL_PERSON
from pipeline.toolex.settings import settings_from_json
from store.errors import StoreError

if TYPE_CHECKING:
    from pipeline.jobs.annotations.following import AnnotationProgress

MOST_LISTED = 200


def show_failures(progress: AnnotationProgress) -> None:
    """Draw them; nothing where every question was answered."""
    sentence = failures_sentence(progress.failures)
    if not sentence:
        return
    record = progress.record
    with st.expander(sentence, expanded=progress.state is JobState.FAILED):
        found = annotation_reading.failures(record)
        shown = failures_frame(found.head(MOST_LISTED))
        # A query has its page on the version it comes from until the new one is there.
        version = progress.parent if not record.done else f"{progress.parent.partition('@')[0]}@{record.version}"
        links = [permalinks.address("queries", q_benchmark=version, q_query=query) for query in shown["Query"]]
        st.dataframe(
            shown.insert_column(0, pl.Series("Open", links, dtype=pl.String)),
            hide_index=True,
            lazy=False,
            height=min(35 * (shown.height + 1) + 2, 392),
            key=f"an_failures_{record.id}",
            column_config={
                "Open": st.column_config.LinkColumn("", display_text="open", width=58, help="Opens the query's page.")
            },
            alt="Questions without a valid answer",
        )
        if found.height > MOST_LISTED:
            st.caption(f"The first {MOST_LISTED} of {whole(found.height)}; the files below hold all.")
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            if record.done:
                _another_version(progress)
            elif progress.can_start and st.button(
                "Ask just these again", icon=":material/refresh:", key=f"an_retry_{record.id}"
            ):
                _again(record.id)
            download_menu(
                key=f"an_failures_files_{record.id}",
                name=f"equirank-expansion-{record.id[:12]}-failures",
                data=lambda: found,
                table=lambda: failures_frame(found),
            )
        if record.done:
            st.caption(
                "A version never changes, so what they answer now goes into another one. Every other answer is kept "
                "and costs nothing."
            )


def _another_version(progress: AnnotationProgress) -> None:
    """A button that makes the same expansion once more under the next number, and asks only these questions."""
    records = reading.benchmarks()
    parent = next(record for record in records if record.name == progress.parent)
    number = next_version(parent, records, annotation_reading.claimed_versions(parent.slug))
    record = progress.record
    if st.button(
        f"Ask just these again, for version {number}", icon=":material/refresh:", key=f"an_next_{record.id}",
        on_click=keep_shown, args=(parent.slug, number),
    ):  # fmt: skip
        words = refused(parent.slug, number)
        if words:
            show(words)
            return
        settings = settings_from_json(record.settings)
        request = AnnotationRequest(
            progress.parent, number, settings, record.max_cost, record.max_calls, person=LOCAL_PERSON
        )
        try:
            other = requests.define(the_site(), request)
        except (EquiRankError, StoreError) as error:
            show(message_of(error))
            return
        _again(other.id)


def _again(annotation_id: str) -> None:
    """Start an expansion that asks failed questions once more, and open it."""
    try:
        requests.start(the_site(), annotation_id, retry_failed=True)
    except (EquiRankError, StoreError) as error:
        st.error(plain(message_of(error)), icon=":material/error:")
        return
    st.switch_page("pages/annotate.py", query_params={EXPANSION: annotation_id})


def failures_frame(found: pl.DataFrame) -> pl.DataFrame:
    """Failures as texts, a line a question."""
    return pl.DataFrame(
        {
            "Stage": [stage_title(stage) for stage in found["stage"]],
            "Query": found["query_id"],
            "Sub-query": [NONE if place is None else whole(place + 1) for place in found["position"]],
            "About": [", ".join(tools or []) for tools in found["tool_ids"].to_list()],
            "Judge": found["judge"],
            "What went wrong": found["failure"],
        }
    )
