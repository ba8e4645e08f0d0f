"""What to verify next on one benchmark version: unjudged tools that public runs rank high."""

from __future__ import annotations

import polars as pl
import streamlit as st

from dashboard import query_reading, reading
from dashboard.charts.layout import shortened
from dashboard.components import permalinks
from dashboard.components.numbers import whole
from dashboard.components.run_detail import text_table
from dashboard.current_site import the_site
from pipeline.benchmark import Benchmark
from pipeline.jobs.labels.growth import DEPTH, has_runs, question_lines, questions, read_growth
from pipeline.jobs.labels.reports import csv_text
from pipeline.jobs.site import Site
from store.records import BenchmarkRecord

PREFIX = "gro_"
#: Rows on the page; files have as many as are asked for.
_ROWS = 100
_QUERY = 90


def growth_section(site: Site, record: BenchmarkRecord) -> None:
    """Draw the queue of a version, once somebody asks for it; the address says so.

    Args:
        site: where the runs are.
        record: a version with content.
    """
    st.subheader("What to verify next", anchor=False)
    kind = record.kind
    st.markdown(
        f"{kind.capitalize()}s that nobody judged and that public runs rank in their top {DEPTH} count as wrong. These "
        "are worth a verdict first: many runs rank them high, and judges or repeats disagree on their query."
    )
    if not permalinks.switch("Look through the public runs", PREFIX + "look"):
        return
    queue = _queue(site.database.url, record.id, record.content_hash or "", reading.board_stamp(record.id), _versions())
    if queue.is_empty():
        st.info(
            f"Every {kind} in the top {DEPTH} of a public run has a verdict."
            if has_runs(site, record)
            else "No public run is on this version. `equirank runs rescore` brings those of another version."
        )
        return
    content = query_reading.content(record).benchmark
    queries = queue["query_id"].n_unique()
    of = f"{whole(queries)} {'query' if queries == 1 else 'queries'}"
    st.markdown(f"**{whole(queue.height)} results of {of} wait for a verdict.**")
    table = queue_table(content, kind, queue.head(_ROWS))
    text_table(table, key=f"gro_table_{record.id}", label=f"{kind.capitalize()}s to verify next", most_rows=12)
    shown = f" The first {whole(_ROWS)} are shown." if queue.height > _ROWS else ""
    st.caption(
        "Priority is the sum of 1 / (60 + rank) over the runs, raised by the query's uncertainty: 0 where verdicts "
        f"agree, 1 where they split in half.{shown}"
    )
    listed = list(dict.fromkeys(queue["query_id"].head(_ROWS)))
    texts = dict(content.queries.select("query_id", "text").iter_rows())
    opened = permalinks.described_select(
        "Open a query", listed, PREFIX + "query", listed[0], missing=None,
        describe=lambda query: shortened(texts.get(query) or query, _QUERY),
    )  # fmt: skip
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.page_link(
            "pages/queries.py", label="The query's page", icon=":material/search:",
            query_params={"q_benchmark": record.name, "q_query": opened},
        )  # fmt: skip
        name = f"{record.slug}-{record.version}-verify-next"
        st.download_button(
            "Questions (JSONL)", lambda: question_lines(questions(content, queue)).encode(),
            file_name=f"{name}.jsonl", mime="application/x-ndjson", icon=":material/download:", on_click="ignore",
            key=f"gro_jsonl_{record.id}",
        )  # fmt: skip
        st.download_button(
            "Questions (CSV)", lambda: csv_text(questions(content, queue)).encode(),
            file_name=f"{name}.csv", mime="text/csv", icon=":material/download:", on_click="ignore",
            key=f"gro_csv_{record.id}",
        )  # fmt: skip


def queue_table(benchmark: Benchmark, kind: str, queue: pl.DataFrame) -> pl.DataFrame:
    """The queue as text."""
    rows = queue.join(
        benchmark.queries.select("query_id", "text"), on="query_id", how="left", maintain_order="left"
    ).join(benchmark.tools.select("tool_id", "name"), on="tool_id", how="left", maintain_order="left")
    return pl.DataFrame(
        {
            kind.capitalize(): [name or tool for name, tool in rows.select("name", "tool_id").iter_rows()],
            "Query": [shortened(text or query, _QUERY) for text, query in rows.select("text", "query_id").iter_rows()],
            "Runs": [whole(n) for n in rows["runs"]],
            "Best rank": [whole(rank) for rank in rows["best_rank"]],
            "Uncertainty": [f"{value:.2f}" for value in rows["uncertainty"]],
            "Priority": [f"{value:.4f}" for value in rows["priority"]],
            "Query id": rows["query_id"],
            f"{kind.capitalize()} id": rows["tool_id"],
        }
    )


def _versions() -> str:
    """What changes when a version that could repeat verdicts is added."""
    return "|".join(str(record.id) for record in reading.benchmarks())


@st.cache_resource(max_entries=8, show_spinner="Looking through the rankings of public runs")
def _queue(place: str, version_id: int, content_hash: str, stamp: str, versions: str) -> pl.DataFrame:
    del place, content_hash, stamp, versions
    record = next(one for one in reading.benchmarks() if one.id == version_id)
    return read_growth(the_site(), record)
