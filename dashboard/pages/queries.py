"""Queries: find one, and see what counts as its answer and what runs make of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import polars as pl
import streamlit as st

from dashboard import query_reading, reading
from dashboard.components import permalinks, viewport
from dashboard.components.benchmark_choice import choose_version, first_with_queries
from dashboard.components.dispute_form import show_disputes
from dashboard.components.empty import no_benchmarks
from dashboard.components.failures import show, shown_errors
from dashboard.components.numbers import whole
from dashboard.components.open_query import opened
from dashboard.components.query_list import (
    PREFIX,
    QUERY,
    Search,
    active,
    choose_filters,
    cleared,
    found,
    list_sentence,
    query_list,
)
from dashboard.components.query_view import show_query
from dashboard.components.run_choice import choose_runs
from dashboard.components.untrusted import plain
from dashboard.query_reading import Content, ReadRun
from pipeline.errors import BenchmarkError
from store.records import BenchmarkRecord


def steps(rows: pl.DataFrame, query_id: str) -> None:
    """The way back to the list, and on to its neighbours."""
    listed = rows["query_id"].to_list()
    place = listed.index(query_id) if query_id in listed else None
    if st.button("All queries", icon=":material/arrow_back:", type="tertiary", key="q_back"):
        st.query_params.pop(QUERY, None)
        st.rerun()
    if place is None:
        return
    for label, icon, step in (("Previous", "chevron_left", -1), ("Next", "chevron_right", 1)):
        there = place + step
        if st.button(
            label, icon=f":material/{icon}:", type="tertiary", key=f"q_{label.lower()}",
            disabled=not 0 <= there < len(listed),
        ):  # fmt: skip
            st.query_params[QUERY] = listed[there]
            st.rerun()
    st.caption(f"{whole(place + 1)} of {whole(len(listed))}", width="content")


def controls(record: BenchmarkRecord, version: Content, *, narrow: bool) -> tuple[Search, pl.DataFrame]:
    """Text, runs and filters; returns what they say and the queries that they keep."""
    words = permalinks.text(
        "Search", PREFIX + "text", placeholder='words of the query, or "a phrase"', icon=":material/search:",
        label_visibility="collapsed", width="stretch" if narrow else 300, live=True,
    )  # fmt: skip
    runs = choose_runs(
        record, PREFIX + "run", at_first=2, label_visibility="collapsed", width="stretch" if narrow else 380
    )
    count = active()
    with st.popover(
        f"Filter and order · {count}" if count else "Filter and order", icon=":material/tune:", key="q_more"
    ):
        search = choose_filters(record, version.queries, runs)
    search = replace(search, filter=replace(search.filter, text=words))
    return search, found(version, search)


def open_one(record: BenchmarkRecord, version: Content, query_id: str, runs: Sequence[ReadRun], k: int) -> None:
    """The opened query, or why there is none."""
    try:
        card = query_reading.card(version, query_id, runs, k)
    except BenchmarkError as error:
        show(str(error))
        return
    query = opened(card, record.kind, runs)
    show_query(query, partial(show_disputes, record, version.benchmark, query))


def page() -> None:
    """Draw the page."""
    wanted = st.query_params.get(QUERY)
    narrow = viewport.is_narrow()
    top = st.container(gap="small")
    records = reading.benchmarks()
    if not records:
        top.title("Queries", anchor=False)
        no_benchmarks()
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        if wanted:
            way = st.container(horizontal=True, vertical_alignment="center", gap="small", width="content")
        record = choose_version(
            records, PREFIX + "benchmark", first_with_queries(records), brief=True, label_visibility="collapsed",
            width="stretch" if narrow else 260,
        )  # fmt: skip
        if record.has_content:
            version = query_reading.content(record)
            search, rows = controls(record, version, narrow=narrow)
    if not record.has_content:
        top.title("Queries", anchor=False)
        st.info(
            f"{plain(record.title)} is known by its printed figures only: its queries and labels are not stored here. "
            "Choose another benchmark, or import it with `equirank benchmark import`."
        )
        return
    if wanted:
        with way:
            steps(rows, wanted)
        open_one(record, version, wanted, search.runs, search.k)
        return
    top.title("Which queries, and what counts as their answer?", anchor=False)
    if not search.runs and not query_reading.offered_runs(record, [], None):
        st.caption("No run with a ranking is published on this benchmark yet: the list shows its labels alone.")
    st.markdown(list_sentence(rows, search, record))
    if rows.is_empty():
        st.info("No query passes. Every query is still there:")
        st.button("Show every query again", on_click=permalinks.reset(cleared(record)), key="q_clear_all")
        return
    chosen = query_list(rows, search, record)
    if chosen is not None:
        st.query_params[QUERY] = chosen
        st.rerun()


with shown_errors():
    page()
