"""A finished expansion: what it found, in a sentence and in parts that can be chosen."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from dashboard import annotation_reading
from dashboard.components import permalinks
from dashboard.components.annotation_failures import show_failures
from dashboard.components.annotation_judges import PREFIX
from dashboard.components.annotation_labels import show_labels
from dashboard.components.annotation_pool_bias import show_pool_bias
from dashboard.components.annotation_queries import show_queries
from dashboard.components.annotation_run import show_log, show_meter
from dashboard.components.annotation_runs import show_runs
from dashboard.components.annotation_verdicts import show_verdicts
from dashboard.components.annotation_words import OF, VIEW, result_sentence, settings_facts
from dashboard.components.benchmark_files import folder_zip
from dashboard.components.downloads import parquet_bytes
from dashboard.components.numbers import day
from dashboard.components.run_detail import facts_table
from pipeline.toolex.settings import settings_from_json
from store.records import BenchmarkRecord

if TYPE_CHECKING:
    from pipeline.jobs.annotations.following import AnnotationProgress

#: Part → the address's word, in order.
SHOW = PREFIX + "show"
LABELS, VERDICTS, QUERIES, POOL, RUNS, COST = "Labels", "Verdicts", "Queries", "Pool", "Runs", "Cost and settings"


def show_finished(progress: AnnotationProgress) -> None:
    """Draw it."""
    made = annotation_reading.version(progress.record.made_version_id or 0)
    parent = annotation_reading.version(progress.record.benchmark_version_id)
    sentence = result_sentence(annotation_reading.table_one(parent), annotation_reading.table_one(made), made.kind)
    if sentence:
        st.markdown(sentence)
    _links(progress, made)
    parts: dict[str, Callable[[], None]] = {
        LABELS: partial(show_labels, parent, made),
        VERDICTS: partial(show_verdicts, made),
        QUERIES: partial(show_queries, progress, made),
        POOL: partial(show_pool_bias, progress, made),
        RUNS: partial(show_runs, made),
        COST: partial(_cost, progress),
    }
    chosen = permalinks.segments("Part", list(parts), SHOW, LABELS, label_visibility="collapsed")
    parts[chosen]()


def _links(progress: AnnotationProgress, made: BenchmarkRecord) -> None:
    """Where the new version is, and its files."""
    record = progress.record
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.page_link(
            "pages/benchmarks.py", label="The new version's card", icon=":material/inventory_2:",
            query_params={"bm_benchmark": made.name},
        )  # fmt: skip
        st.page_link(
            "pages/benchmarks.py", label="What moved", icon=":material/compare_arrows:",
            query_params={"bm_benchmark": made.name, "bm_against": progress.parent},
        )  # fmt: skip
        st.page_link(
            "pages/queries.py", label="Its queries", icon=":material/manage_search:",
            query_params={"q_benchmark": made.name},
        )  # fmt: skip
        permalinks.leaderboard_link(
            label="Its leaderboard", icon=":material/leaderboard:", query_params={"lb_benchmark": made.name}
        )
        # No link: one to the page that is open is drawn as where one is already.
        if st.button("Validate it", icon=":material/fact_check:", type="tertiary", key=f"an_validate_{record.id}"):
            st.switch_page("pages/annotate.py", query_params={VIEW: "Validate", OF: made.name})
        with st.popover("Download", icon=":material/download:", key=f"an_files_{record.id}"):
            st.caption("The labels hold no time, cost or attempt; who said what, and what it took, is the provenance.")
            name = f"{made.slug}-{made.version}"
            for label, file_name, mime, content in (
                ("Benchmark folder, Parquet (zip)", f"{name}-parquet.zip", "application/zip",
                 partial(folder_zip, made.id, "parquet")),
                ("Benchmark folder, JSON Lines (zip)", f"{name}-jsonl.zip", "application/zip",
                 partial(folder_zip, made.id, "jsonl")),
                ("query_combo_verified.jsonl", "query_combo_verified.jsonl", "application/x-ndjson",
                 partial(annotation_reading.verified_combinations, made.id)),
                ("Provenance of every verdict (Parquet)", f"{name}-provenance.parquet",
                 "application/vnd.apache.parquet",
                 lambda: parquet_bytes(annotation_reading.provenance(record))),
            ):  # fmt: skip
                st.download_button(
                    label, data=content, file_name=file_name, mime=mime, on_click="ignore", width="stretch",
                    key=f"an_file_{record.id}_{file_name}",
                )  # fmt: skip


def _cost(progress: AnnotationProgress) -> None:
    """What it took, and how it was done."""
    show_meter(progress)
    show_failures(progress)
    st.markdown("**Settings**")
    record = progress.record
    asked = [("Asked", day(record.created_at)), ("Done", day(record.updated_at)), ("Expansion", record.id)]
    facts_table([*settings_facts(settings_from_json(record.settings)), *asked])
    show_log(progress)
