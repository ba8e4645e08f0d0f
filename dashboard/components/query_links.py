"""Links from a run to the pages that explain it query by query."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard import pair_reading, reading
from dashboard.components.query_list import Order
from dashboard.components.run_choice import TOKEN
from dashboard.query_reading import ReadRun
from pipeline.jobs.fields.reading import EXPLAINED
from store.records import BenchmarkRecord, RunRecord

Parameters = dict[str, str | list[str]]


def run_parameters(record: BenchmarkRecord, runs: Sequence[ReadRun], prefix: str) -> Parameters:
    """Query parameters that open a page (``q_`` or ``er_``) with these runs chosen."""
    found: Parameters = {f"{prefix}benchmark": record.name, f"{prefix}run": [run.id for run in runs]}
    token = next((run.private_token for run in runs if run.private_token), "")
    return found | ({TOKEN: token} if token else {})


def compare_link(record: BenchmarkRecord, run_id: str) -> None:
    """A link to the comparison of a public run with its base, or else with another one; nothing where it is alone."""
    board = pair_reading.pair_board(record, reading.board_stamp(record.id))
    base = next((base for base, tuned in board.pairs if tuned == run_id), None)
    base = base or next((other for other in board.runs if other != run_id), None)
    if base is not None and run_id in board.runs:
        st.page_link(
            "pages/compare.py", label="Compare it", icon=":material/compare_arrows:",
            query_params={"cmp_benchmark": record.name, "cmp_base": base, "cmp_tuned": run_id},
        )  # fmt: skip


def explaining_links(record: BenchmarkRecord, run: RunRecord) -> None:
    """Links under a run: the queries that change most, its rank curves, its fields. Nothing for reported figures."""
    if run.ranking_artifact is None or run.per_query_artifact is None or not record.has_content:
        return
    token: Parameters = {}
    if run.private_token and (run.visibility == "private" or run.state != "published"):
        token = {TOKEN: run.private_token}
    st.page_link(
        "pages/queries.py", label="Most-changed queries", icon=":material/manage_search:",
        query_params={"q_benchmark": record.name, "q_run": run.id, "q_sort": str(Order.LIFT), **token},
    )  # fmt: skip
    st.page_link(
        "pages/equivalent_ranks.py", label="Equivalent ranks", icon=":material/show_chart:",
        query_params={"er_benchmark": record.name, "er_run": run.id, **token},
    )  # fmt: skip
    if run.method in EXPLAINED and run.method_settings is not None and not token and run.state == "published":
        st.page_link(
            "pages/mftr_lab.py", label="Field by field", icon=":material/view_column:",
            query_params={"lab_benchmark": record.name, "lab_run": run.id},
        )  # fmt: skip
