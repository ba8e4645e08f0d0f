"""The disputed verdicts of one benchmark version: those that wait with a form to decide them, and the decided ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl
import streamlit as st

from dashboard import query_reading
from dashboard.charts.layout import shortened
from dashboard.components.failures import show
from dashboard.components.numbers import NONE, day, whole
from dashboard.components.run_detail import text_table
from dashboard.components.untrusted import plain
from pipeline.jobs.labels.disputes import list_disputes, resolve_dispute, upheld_lines
from pipeline.jobs.site import Site
from store.access.disputes import LONGEST_REASON, DisputeRecord
from store.errors import StoreError
from store.records import BenchmarkRecord

_QUERY = 110
#: Disputes with a form at a time.
_MOST = 20


def dispute_section(site: Site, record: BenchmarkRecord) -> None:
    """Draw the disputes of a version.

    Args:
        site: where they are.
        record: a version with content.
    """
    st.subheader("Disputed verdicts", anchor=False)
    found = list_disputes(site, record)
    if not found:
        st.markdown("No verdict is disputed. Anybody can dispute one on the page of its query.")
        st.page_link(
            "pages/queries.py", label="Queries", icon=":material/search:", query_params={"q_benchmark": record.name}
        )
        return
    waiting = [one for one in found if one.state == "open"]
    decided = [one for one in found if one.state != "open"]
    content = query_reading.content(record).benchmark
    texts = dict(content.queries.select("query_id", "text").iter_rows())
    names = dict(content.tools.select("tool_id", "name").iter_rows())
    st.markdown(
        f"**{whole(len(waiting))} {'waits' if len(waiting) == 1 else 'wait'} for a decision.** Nothing here changes "
        "this version: what is upheld is listed for the next one."
    )
    for dispute in waiting[:_MOST]:
        one_dispute(site, record, dispute, texts.get(dispute.query_id) or dispute.query_id, names)
    if len(waiting) > _MOST:
        st.caption(f"The latest {whole(_MOST)} are shown; the others follow as these are decided.")
    if decided:
        text_table(
            decided_table(decided, texts, names), key=f"dis_decided_{record.id}", label="Decided disputes", most_rows=10
        )
        upheld = sum(one.state == "upheld" for one in decided)
        if upheld:
            st.download_button(
                f"Upheld, for the next version (JSONL, {whole(upheld)})", lambda: upheld_lines(site, record).encode(),
                file_name=f"{record.slug}-{record.version}-upheld.jsonl", mime="application/x-ndjson",
                icon=":material/download:", on_click="ignore", key=f"dis_upheld_{record.id}",
            )  # fmt: skip


def one_dispute(
    site: Site, record: BenchmarkRecord, dispute: DisputeRecord, query: str, names: Mapping[str, str | None]
) -> None:
    """A dispute that waits, with the form that decides it."""
    key = f"dis_{dispute.id}"
    with st.container(border=True, gap="xsmall"):
        st.markdown(f"**{plain(claim(dispute, names))}**")
        st.text(signed(dispute))
        st.caption(f"Query: {plain(shortened(query, _QUERY))}")
        with st.form(key, border=False):
            words = st.text_input("Decision, in one sentence", max_chars=LONGEST_REASON, key=f"{key}_words")
            with st.container(horizontal=True, gap="small"):
                uphold = st.form_submit_button("Uphold", icon=":material/check:", key=f"{key}_uphold")
                reject = st.form_submit_button("Reject", icon=":material/close:", key=f"{key}_reject")
        st.page_link(
            "pages/queries.py", label="The query", icon=":material/search:",
            query_params={"q_benchmark": record.name, "q_query": dispute.query_id},
        )  # fmt: skip
    if not (uphold or reject):
        return
    if not (words or "").strip():
        st.warning("Nothing is decided yet: say why in one sentence.")
        return
    try:
        resolve_dispute(site, dispute.id, upheld=uphold, words=words or "")
    except StoreError as error:
        show(str(error))
        return
    st.toast("Upheld." if uphold else "Rejected.")
    st.rerun()


def claim(dispute: DisputeRecord, names: Mapping[str, str | None]) -> str:
    """What is claimed, in words."""
    tools = " + ".join(names.get(tool) or tool for tool in dispute.tool_ids)
    about = "as a combination" if dispute.position is None else f"for sub-query {dispute.position + 1}"
    said, stored = ("valid", "not valid") if dispute.claimed_valid else ("not valid", "valid")
    return f"“{tools}” {about}: {said}, though the verdict is {stored}"


def signed(dispute: DisputeRecord) -> str:
    """The reason with who gave it and when."""
    return f"{dispute.reason} ({', '.join(part for part in (dispute.person, day(dispute.created_at)) if part)})"


def decided_table(
    decided: Sequence[DisputeRecord], texts: Mapping[str, str | None], names: Mapping[str, str | None]
) -> pl.DataFrame:
    """One row a decided dispute."""
    return pl.DataFrame(
        {
            "Decision": [one.state for one in decided],
            "Claim": [claim(one, names) for one in decided],
            "Query": [shortened(texts.get(one.query_id) or one.query_id, _QUERY) for one in decided],
            "Why disputed": [one.reason for one in decided],
            "Why decided so": [one.resolution or NONE for one in decided],
            "Decided": [day(one.resolved_at) for one in decided],
        }
    )
