"""What a page says where there is nothing yet: what to do next."""

from __future__ import annotations

import streamlit as st

from dashboard.components.untrusted import plain
from store.records import BenchmarkRecord


def no_benchmarks() -> None:
    """There is no benchmark at all."""
    st.info(
        "No benchmark is stored yet. The demo benchmarks come with the first `equirank serve`; "
        "`equirank benchmark import FOLDER` adds your own."
    )


def empty_board(benchmark: BenchmarkRecord) -> None:
    """A benchmark without published runs."""
    with st.container(border=True):
        st.markdown(f"**No run of {plain(benchmark.title)} is published yet.** The first one can be yours.")
        if benchmark.has_content:
            st.markdown(
                "Drop a run file (TREC, JSON, CSV, Parquet and others) to see its old and new scores in seconds. "
                "Nothing is stored before you say so."
            )
            if benchmark.is_demo:
                st.markdown("This is a demo benchmark: a sample run file to try is on the same page.")
            st.page_link(
                "pages/submit.py",
                label=f"Score a run of {plain(benchmark.name)}",
                icon=":material/upload_file:",
                query_params={"submit_benchmark": benchmark.name},
            )
            st.page_link(
                "pages/evaluate.py",
                label="Or pick a model, and have its run made here",
                icon=":material/play_arrow:",
                query_params={"ev_benchmark": benchmark.name},
            )
        else:
            st.markdown("It has no queries or labels here, so no run can be scored against it.")
