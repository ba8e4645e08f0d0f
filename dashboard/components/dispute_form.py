"""Disputing a verdict from its query's page: anybody can, with a reason; nothing stored changes by it."""

from __future__ import annotations

import streamlit as st

from dashboard.charts.layout import shortened
from dashboard.components.failures import show
from dashboard.components.open_query import OpenQuery
from dashboard.components.untrusted import plain
from dashboard.current_site import the_site
from pipeline.benchmark import Benchmark
from pipeline.jobs.labels.disputes import Verdict, disputable, dispute_verdict, list_disputes
from store.access.disputes import LONGEST_NAME, LONGEST_REASON, DisputeRecord
from store.errors import StoreError
from store.records import BenchmarkRecord

STATES = {"open": "waits for a decision", "upheld": "upheld", "rejected": "rejected"}
_LONGEST = 110


def show_disputes(record: BenchmarkRecord, benchmark: Benchmark, query: OpenQuery) -> None:
    """Draw what is disputed of a query, and the form to dispute another verdict.

    Args:
        record: the benchmark version.
        benchmark: its content.
        query: the open query.
    """
    verdicts = disputable(benchmark, query.card.query_id)
    if not verdicts:
        return
    for dispute in list_disputes(the_site(), record, query.card.query_id):
        st.text(said(dispute, query))
    with st.popover("Dispute a verdict", icon=":material/flag:", key="q_dispute"):
        _form(record, verdicts, query)


def said(dispute: DisputeRecord, query: OpenQuery) -> str:
    """A dispute in a sentence or two."""
    verdict = Verdict(dispute.query_id, dispute.position, dispute.tool_ids, not dispute.claimed_valid)
    text = f"Disputed ({STATES[dispute.state]}): {verdict_text(verdict, query)}. {dispute.reason}"
    return f"{text} Decision: {dispute.resolution}" if dispute.resolution else text


def verdict_text(verdict: Verdict, query: OpenQuery) -> str:
    """``need 1, Deliver message: valid``."""
    word = "valid" if verdict.valid else "not valid"
    tools = query.listed(verdict.tool_ids)
    about = "combination" if verdict.position is None else f"need {_place(query, verdict.position)}"
    return f"{about}, {shortened(tools, _LONGEST)}: {word}"


def _place(query: OpenQuery, position: int) -> int:
    positions = query.card.subqueries["position"].to_list()
    return positions.index(position) + 1 if position in positions else position + 1


def _looked_at(verdicts: list[Verdict], query: OpenQuery) -> int:
    """The place of the verdict on the tool that the page compares for its need; 0 where there is none."""
    need, tool = st.session_state.get("q_need"), st.session_state.get("q_tool")
    positions = query.card.subqueries["position"].to_list()
    place = int(need) - 1 if need else 0
    position = positions[place] if place < len(positions) else None
    of_tool = {
        verdict.position: at for at, verdict in reversed(list(enumerate(verdicts))) if verdict.tool_ids == (tool,)
    }
    return of_tool.get(position, min(of_tool.values(), default=0))


def _form(record: BenchmarkRecord, verdicts: list[Verdict], query: OpenQuery) -> None:
    key = f"dis_{record.id}_{query.card.query_id}"
    first = _looked_at(verdicts, query)
    with st.form(key, border=False):
        st.markdown("Say which verdict is wrong, and why. A keeper decides; this version stays as it is.")
        place = st.selectbox(
            # Another need or tool on the page is another item: the widget starts anew with its verdict.
            "Verdict", range(len(verdicts)), index=first, key=f"{key}_verdict_{first}",
            format_func=lambda place: verdict_text(verdicts[place], query),
        )  # fmt: skip
        reason = st.text_area("Why it is wrong", max_chars=LONGEST_REASON, height=84, key=f"{key}_reason")
        person = st.text_input(
            "Your name (optional, everybody can read it)", max_chars=LONGEST_NAME, key=f"{key}_person"
        )
        sent = st.form_submit_button("Dispute it", type="primary", icon=":material/flag:")
    if not sent:
        return
    if not (reason or "").strip():
        st.warning("Nothing is sent yet: say why the verdict is wrong.")
        return
    try:
        dispute_verdict(the_site(), record, verdicts[place], reason or "", person or "")
    except StoreError as error:
        show(str(error))
        return
    st.toast(f"Sent: {plain(verdict_text(verdicts[place], query))}")
    st.rerun()
