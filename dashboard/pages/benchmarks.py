"""Benchmark cards: what each one holds, where it comes from, under which licence, and its files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl
import streamlit as st

from dashboard import reading
from dashboard.charts.palette import colours
from dashboard.components import permalinks, viewport
from dashboard.components.benchmark_choice import choose_version
from dashboard.components.benchmark_files import folder_zip
from dashboard.components.benchmark_history import show_history
from dashboard.components.benchmark_spread import show_spread
from dashboard.components.empty import no_benchmarks
from dashboard.components.failures import shown_errors
from dashboard.components.numbers import NONE, day, points, whole
from dashboard.components.run_detail import facts_table, text_table
from dashboard.components.theme import ground
from dashboard.components.untrusted import plain
from dashboard.components.validation_section import validation_results
from dashboard.current_site import the_site
from pipeline.jobs.citations import benchmark_address, benchmark_bibtex
from store.records import BenchmarkRecord

#: Name of a statistic → words, with a place for the benchmark's kind; shares are shown in per cent.
STATISTICS = {
    "queries": "Queries",
    "tools": "{kind}s",
    "tools_per_query": "Ground-truth {kind}s a query",
    "tool_source": "Where the {kind}s come from",
    "subqueries": "Sub-queries",
    "verified_items": "Verified items",
    "items_per_subquery": "Verified items a sub-query",
    "subqueries_with_equivalent": "Sub-queries with an equivalent",
    "combinations": "Valid combinations",
    "combinations_per_query": "Valid combinations a query",
    "queries_with_alternative": "Queries with an alternative",
}
#: The address's word for the open card.
CHOSEN = "bm_benchmark"
TABLE = "bm_table"
_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})\b")
_SHARES = {"subqueries_with_equivalent", "queries_with_alternative"}


def statistic(name: str, value: Any, *, reported: bool = False) -> str:
    """A statistic as text: counts whole, means with two decimals, shares in per cent; reported ones as printed."""
    if value is None:
        return NONE
    if isinstance(value, str):
        return value
    if name in _SHARES:
        return f"{points(float(value))} %"
    if reported and isinstance(value, float):
        return str(value)
    return whole(value) if isinstance(value, int) else f"{value:.2f}"


def statistics_table(record: BenchmarkRecord) -> pl.DataFrame:
    """Table 1 of the benchmark: a line a statistic, all queries first, then the domains."""
    everything: Mapping[str, Any] = record.statistics.get("all") or {}
    domains: Mapping[str, Mapping[str, Any]] = record.statistics.get("domains") or {}
    names = [name for name in STATISTICS if name in everything and everything[name] is not None]
    said = [STATISTICS[name].format(kind=record.kind) for name in names]
    columns = {"Statistic": [words[:1].upper() + words[1:] for words in said]}
    columns["all"] = [statistic(name, everything[name], reported=not record.has_content) for name in names]
    for domain, values in domains.items():
        title = domain or "no domain"
        columns[title if title not in columns else f"domain {title}"] = [
            statistic(name, values.get(name), reported=not record.has_content) for name in names
        ]
    return pl.DataFrame(columns)


def overview(records: Sequence[BenchmarkRecord]) -> None:
    """All versions in one table; the row that somebody chooses opens its card."""
    narrow = viewport.is_narrow()
    columns = {
        "Benchmark": [record.name for record in records],
        "Title": [record.title for record in records],
        "Kind": [record.kind for record in records],
        "Queries": [whole(record.queries) for record in records],
        "Tools": [whole(record.tools) for record in records],
        "Sub-queries": [whole(_needs(record)) for record in records],
        "Combinations": [whole(record.combinations) for record in records],
        "Content": ["stored here" if record.has_content else "printed figures only" for record in records],
    }
    if narrow:
        columns = {name: columns[name] for name in ("Benchmark", "Queries", "Tools")}
    frame = pl.DataFrame(columns)
    right: dict[str, Any] = {
        name: st.column_config.TextColumn(name, alignment="right")
        for name in ("Queries", "Tools", "Sub-queries", "Combinations")
        if name in columns
    }
    names = [record.name for record in records]
    open_chosen_row(names)
    opened = st.query_params.get(CHOSEN) or first_card(records)
    marked = colours(ground()).grid
    styled = (
        frame.to_pandas()
        .style.map(lambda _: "font-weight: 700", subset=["Benchmark"])
        .apply(lambda row: [f"background-color: {marked}" * (row["Benchmark"] == opened)] * len(row), axis=1)
    )
    st.dataframe(
        styled,
        hide_index=True,
        lazy=False,
        height="content",
        column_config=right,
        key=TABLE,
        on_select="rerun",
        selection_mode="single-cell",
        alt="All benchmarks; choosing a cell opens the card of its row",
    )


def _needs(record: BenchmarkRecord) -> int | None:
    """Sub-queries as the statistics count them: a query that was never decomposed has one a ground-truth tool."""
    counted: int | None = (record.statistics.get("all") or {}).get("subqueries")
    return record.subqueries if counted is None else counted


def open_chosen_row(names: Sequence[str]) -> None:
    """Open the card of the row in which another cell was chosen since the last time."""
    cells = (st.session_state.get(TABLE) or {}).get("selection", {}).get("cells") or []
    place = int(cells[0][0]) if cells else None
    if place != st.session_state.get(f"{TABLE}_opened"):
        st.session_state[f"{TABLE}_opened"] = place
        if place is not None and place < len(names):
            st.query_params[CHOSEN] = names[place]


def first_card(records: Sequence[BenchmarkRecord]) -> str:
    """The name of the card that is open before anybody chose one."""
    return next((record.name for record in records if record.slug == "tooleq"), records[0].name)


def facts(record: BenchmarkRecord) -> list[tuple[str, str]]:
    """What the card says in words."""
    # The statistics beside them say these, where there are any.
    counted = [
        ("Sub-queries", whole(record.subqueries)),
        ("Equivalents", whole(record.equivalents)),
        ("Combinations", whole(record.combinations)),
    ]
    if record.statistics.get("all"):
        counted = []
    return [
        ("Name", record.name),
        ("Kind", f"{record.kind} retrieval"),
        ("Queries", whole(record.queries)),
        (f"{record.kind.capitalize()}s", whole(record.tools)),
        *counted,
        ("Ranked by", f"{record.headline} average"),
        ("Cutoffs", ", ".join(str(k) for k in record.ks)),
        ("Source", record.source),
        ("Revision", record.revision),
        ("Licence", record.licence or "not stated"),
        ("Made from", ", ".join(record.parents)),
        ("Stored", day(record.created_at)),
    ]


def files(record: BenchmarkRecord) -> None:
    """Downloads of the whole content."""
    with st.container(horizontal=True, gap="small"):
        for file_format, label in (("jsonl", "JSON Lines"), ("parquet", "Parquet")):
            st.download_button(
                f"Benchmark folder, {label} (zip)",
                data=partial(folder_zip, record.id, file_format),
                file_name=f"{record.slug}-{record.version}-{file_format}.zip",
                mime="application/zip",
                icon=":material/download:",
                on_click="ignore",
                key=f"bm_{record.id}_{file_format}",
            )
    st.caption("The folder is what `equirank score --benchmark` and `equirank benchmark import` read.")


def card(record: BenchmarkRecord, records: Sequence[BenchmarkRecord]) -> None:
    """One benchmark version, among all that are stored."""
    st.subheader(plain(record.title), anchor=False)
    if not record.has_content:
        st.info(
            f"Only figures printed in a paper are here: no queries, {record.kind}s or labels. No run can be scored "
            "against it until its content is imported."
        )
    elif not record.combinations or record.combinations == record.queries:
        st.caption("It has one label a query: the new metric equals the old one.")
    left, right = st.columns(2, gap="medium")
    with left:
        facts_table(facts(record))
        if record.content_hash:
            st.caption("Content hash (sha256): the same for JSON Lines and Parquet")
            st.code(record.content_hash, language=None, wrap_lines=True)
    with right:
        table = statistics_table(record)
        if table.height:
            text_table(table, key=f"bm_statistics_{record.id}", label="Annotation statistics")
        counted = [(domain.name, domain.n) for domain in record.domains if domain.n is not None]
        if len(counted) > 1 and not record.statistics.get("domains"):
            frame = pl.DataFrame(
                {"Domain": [name or "no domain" for name, _ in counted], "Queries": [whole(n) for _, n in counted]}
            )
            text_table(frame, key=f"bm_domains_{record.id}", label="Queries by domain")
    if record.notes:
        with st.container(gap="xxsmall"):
            st.markdown("**Notes**")
            for note in record.notes:
                st.text(note)
    with st.container(horizontal=True, gap="small"):
        permalinks.leaderboard_link(
            label="Its leaderboard",
            icon=":material/leaderboard:",
            query_params={"lb_benchmark": record.name},
        )
        paper = _ARXIV.search(record.source)
        if paper:
            st.page_link(f"https://arxiv.org/abs/{paper[1]}", label="The paper", icon=":material/open_in_new:")
        if record.has_content:
            st.page_link(
                "pages/submit.py",
                label="Score a run",
                icon=":material/upload_file:",
                query_params={"submit_benchmark": record.name},
            )
    if record.has_content:
        files(record)
    if len(record.sources) > 1:
        with st.expander(f"Where its queries come from: {whole(len(record.sources))} sources"):
            frame = pl.DataFrame(
                {
                    "Source": [source.name or "not stated" for source in record.sources],
                    "Queries": [whole(source.n) for source in record.sources],
                }
            )
            text_table(frame, key=f"bm_sources_{record.id}")
    show_spread(record, records)
    show_history(record, records)
    validation_results(the_site(), record)
    st.subheader("Cite", anchor=False)
    st.code(benchmark_bibtex(record, benchmark_address(the_site(), record)).strip(), language="bibtex", wrap_lines=True)


def page() -> None:
    """Draw the page."""
    with st.container(gap="xxsmall"):
        st.title("Benchmarks", anchor=False)
        st.markdown("A benchmark is a version: its queries, tools and labels never change under the same hash.")
    records = reading.benchmarks()
    if not records:
        no_benchmarks()
        return
    overview(records)
    st.caption("Choose a row to open its card.")
    chosen = choose_version(records, CHOSEN, first_card(records), label="Card of", width=480)
    card(chosen, records)


with shown_errors():
    page()
