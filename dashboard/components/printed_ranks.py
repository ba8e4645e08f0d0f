"""The ranks of equivalents that a paper prints, for benchmarks whose queries are not stored here."""

from __future__ import annotations

import polars as pl
import streamlit as st

from dashboard.components.numbers import points
from dashboard.components.run_detail import text_table
from dashboard.components.untrusted import plain
from dashboard.current_site import the_site
from store.access import figures, retrievers
from store.records import BenchmarkRecord

_KEY = "toolex-ranks-"


def show_printed_ranks(record: BenchmarkRecord) -> None:
    """The paper's shares as a table, or a line that there are none."""
    with the_site().database.reading() as session:
        printed = figures.list_figures(session, benchmark=record.slug).filter(pl.col("key").str.starts_with(_KEY))
        names = dict(retrievers.list_retrievers(session).select("key", "name").iter_rows())
    if printed.is_empty():
        st.info(
            f"{plain(record.title)} is known by its printed figures only, and no ranks of equivalents are among them. "
            "Choose another benchmark."
        )
        return
    shares = dict(printed.select("key", "value").iter_rows())
    retriever = plain(names.get(printed["retriever"][0], printed["retriever"][0]))
    only = shares.get(f"{_KEY}only-equivalent")
    if only is not None:
        st.markdown(
            f"**For {points(only)} % of these queries only an equivalent is in the top 10 of {retriever}: one label "
            "counts them as failures.**"
        )
    st.caption(
        f"As printed for {retriever}, over queries with at least one verified equivalent. The rankings behind these "
        "figures are not published, so there is no curve to draw; a run scored here gets one."
    )
    text_table(
        pl.DataFrame(
            {
                "Query has": printed["subject"],
                "Queries, %": printed["printed"],
                "Source": [
                    f"computed from {place}" if derived else place
                    for place, derived in printed.select("place", "derived").iter_rows()
                ],
            }
        ),
        label="Printed shares",
    )
    for note in printed.filter((pl.col("note") != "") & ~pl.col("derived")).select("subject", "note").iter_rows():
        st.text(f"{note[0]}: {note[1]}")
