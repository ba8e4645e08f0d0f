"""Queries of an expansion that need a look: no decomposition, cut off at the cap, or questions without an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import streamlit as st

from dashboard import annotation_reading
from dashboard.components import permalinks
from dashboard.components.annotation_failures import show_failures
from dashboard.components.downloads import download_menu
from dashboard.components.numbers import NONE, whole
from pipeline.toolex.settings import settings_from_json
from store.records import BenchmarkRecord

if TYPE_CHECKING:
    from pipeline.jobs.annotations.following import AnnotationProgress

MOST_LISTED = 200


def show_queries(progress: AnnotationProgress, made: BenchmarkRecord) -> None:
    """Draw it."""
    states = annotation_reading.states(progress.record)
    failed = states.filter("decomposition_failed")
    truncated = states.filter(pl.col("truncated").fill_null(False))
    st.subheader("Without a decomposition", anchor=False)
    if failed.is_empty():
        st.caption(f"None: every query was split into as many sub-queries as it has ground-truth {made.kind}s.")
    else:
        st.markdown(f"{_queries(failed.height)} the labelled set alone, since no draw was a valid split.")
        _listed(failed.select("query_id", "reason"), {"reason": "Why"}, made, "failed")
    st.subheader("Cut off at the cap", anchor=False)
    cap = settings_from_json(progress.record.settings).cap
    if truncated.is_empty():
        st.caption(f"None: no query had more than {cap} combinations.")
    else:
        count = whole(truncated.height)
        st.markdown(
            f"Of {count} {'query' if truncated.height == 1 else 'queries'} only the best {cap} combinations were "
            "judged. A run that answers with another one gets no credit for it."
        )
        shown = truncated.select("query_id", pl.col("product").map_elements(whole, return_dtype=pl.String))
        _listed(shown, {"product": "Combinations there are"}, made, "truncated", ("Combinations there are",))
    st.subheader("Questions without an answer", anchor=False)
    if sum(progress.failures.values()):
        show_failures(progress)
    else:
        st.caption("None: every question got a valid answer.")


def _queries(count: int) -> str:
    return "1 query keeps" if count == 1 else f"{whole(count)} queries keep"


def _listed(
    found: pl.DataFrame, titles: dict[str, str], made: BenchmarkRecord, key: str, right: tuple[str, ...] = ()
) -> None:
    """Queries with links to their pages; ``right`` names columns of figures."""
    table = found.rename({"query_id": "Query"} | titles).with_columns(pl.all().fill_null(NONE))
    head = table.head(MOST_LISTED)
    links = [permalinks.address("queries", q_benchmark=made.name, q_query=query) for query in head["Query"]]
    st.dataframe(
        head.insert_column(0, pl.Series("Open", links, dtype=pl.String)),
        hide_index=True,
        lazy=False,
        height=min(35 * (head.height + 1) + 2, 392),
        key=f"an_{key}_{made.id}",
        width="content" if right else "stretch",
        column_config={
            "Open": st.column_config.LinkColumn("", display_text="open", width=58, help="Opens the query's page."),
            **{name: st.column_config.TextColumn(alignment="right", width=180) for name in right},
        },
        alt=f"Queries: {key}",
    )
    if table.height > MOST_LISTED:
        st.caption(f"The first {MOST_LISTED} of {whole(table.height)}; the files below hold all.")
    download_menu(
        key=f"an_{key}_files_{made.id}",
        name=f"equirank-{made.slug}-{made.version}-{key}",
        data=lambda: found,
        table=lambda: table,
    )
