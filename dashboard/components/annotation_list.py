"""All expansions, the newest first; choosing a row opens it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl
import streamlit as st

from dashboard.components import viewport
from dashboard.components.annotation_words import EXPANSION, money, state_word, without_rounding
from dashboard.components.board_table import MOST_ROWS_SHOWN, ROW_HEIGHT
from dashboard.components.moments import clock
from dashboard.components.numbers import whole
from pipeline.jobs.job_client import JobState

if TYPE_CHECKING:
    from pipeline.jobs.annotations.following import AnnotationProgress

#: Seconds between two looks while one waits or runs.
LIVE_SECONDS = 3.0
_NARROW = ("New version", "State", "How far")


def how_far(one: AnnotationProgress) -> str:
    """How far an expansion is, or what became of it, in a line."""
    queries = f"{whole(one.queries)} {'query' if one.queries == 1 else 'queries'}"
    if one.state is JobState.DONE:
        failed = sum(one.failures.values())
        return ("" if one.queries == 1 else "all ") + queries + (f"; without an answer: {whole(failed)}" * bool(failed))
    if one.state is JobState.FAILED and not one.over_budget:
        return one.error
    if one.state is JobState.ANSWERS:
        return f"a file of answers is to come, for {whole(one.pending)} of its questions"
    if one.state is JobState.WAITING and one.waiting_for:
        return one.waiting_for
    return f"{whole(one.queries_done)} of {queries}"


def expansions_frame(found: Sequence[AnnotationProgress]) -> pl.DataFrame:
    """The table's columns, all text."""
    return pl.DataFrame(
        {
            "New version": [f"{one.parent.partition('@')[0]}@{one.record.version}" for one in found],
            "Made from": [one.parent for one in found],
            "State": [state_word(one) for one in found],
            "How far": [how_far(one) for one in found],
            "Calls": [whole(one.spent.calls) for one in found],
            "Cost": [
                money(None if one.spent.unpriced else without_rounding(one.spent.cost, one.spent.calls))
                for one in found
            ],
            "Asked": [clock(one.record.created_at) for one in found],
        }
    )


def expansion_list(found: Sequence[AnnotationProgress]) -> None:
    """Draw the table; a chosen row leads to its expansion."""
    st.subheader("Expansions", anchor=False)
    if not found:
        st.markdown(
            "None yet. Choose a benchmark above: the estimate comes first, and nothing is asked before you say so."
        )
        return
    frame = expansions_frame(found)
    state = st.dataframe(
        frame.to_pandas().style.map(lambda _: "font-weight: 700", subset=["New version"]),
        hide_index=True,
        lazy=False,
        on_select="rerun",
        selection_mode="single-cell",
        key="an_table",
        column_config={
            "New version": st.column_config.TextColumn(width=150),
            "Made from": st.column_config.TextColumn(width=130),
            "State": st.column_config.TextColumn(width=120),
            "How far": st.column_config.TextColumn(width=330),
            "Calls": st.column_config.TextColumn(width=76, alignment="right"),
            "Cost": st.column_config.TextColumn(width=90, alignment="right"),
            "Asked": st.column_config.TextColumn(width=110),
        },
        column_order=_NARROW if viewport.is_narrow() else tuple(frame.columns),
        height="content" if len(found) <= MOST_ROWS_SHOWN else ROW_HEIGHT * (MOST_ROWS_SHOWN + 1) + 2,
        alt="Expansions; choosing a cell opens the expansion of its row",
    )
    st.caption("Choose a row to open it.")
    cells = state["selection"]["cells"]
    if cells and int(cells[0][0]) < len(found):
        st.switch_page("pages/annotate.py", query_params={EXPANSION: found[int(cells[0][0])].record.id})
