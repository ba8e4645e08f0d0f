"""Finding queries: the controls, what they keep, and the table with its pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import polars as pl
import streamlit as st

from dashboard import query_reading
from dashboard.components import permalinks, viewport
from dashboard.components.numbers import NONE, points, whole
from dashboard.components.untrusted import plain
from dashboard.query_reading import Content, ReadRun
from pipeline.scoring.query_search import QueryFilter, Range, by_disagreement, filter_queries, missed_but_equivalent
from store.records import BenchmarkRecord

PREFIX = "q_"
QUERY = "q_query"
KS = (1, 5, 10, 20)
METRICS = ("NDCG", "Recall", "Comp")
PAGE_ROWS = 20

ANY = "any number"
MISSED = "ground truth missed, an equivalent found"
ALL = "all queries"


class Order(StrEnum):
    """What the list is ordered by; the words are part of permalinks."""

    BENCHMARK = "the benchmark's order"
    LIFT = "largest lift"
    DISAGREEMENT = "largest disagreement"
    COMBINATIONS = "most combinations"
    EQUIVALENTS = "most equivalents"


_BUCKETS: dict[str, Range] = {
    ANY: Range(),
    "none": Range(0, 0),
    "1": Range(1, 1),
    "2 to 5": Range(2, 5),
    "6 to 20": Range(6, 20),
    "21 to 100": Range(21, 100),
    "over 100": Range(101),
}


@dataclass(frozen=True)
class Search:
    """What the reader asked for.

    Attributes:
        runs: the first leads: lift and "missed" are its; disagreement is between it and the second.
        missed: only queries whose ground truth the first run misses while it finds an equivalent.
    """

    runs: tuple[ReadRun, ...]
    metric: str = "NDCG"
    k: int = 10
    filter: QueryFilter = field(default_factory=QueryFilter)
    missed: bool = False
    order: Order = Order.BENCHMARK

    @property
    def figure(self) -> str:
        """``NDCG@10``."""
        return f"{self.metric}@{self.k}"


def choose_filters(record: BenchmarkRecord, table: pl.DataFrame, runs: Sequence[ReadRun]) -> Search:
    """Draw the controls that narrow and order the list, one under another."""
    domains = [domain.name for domain in record.domains]
    chosen: list[str] = []
    if len(domains) > 1:
        chosen = permalinks.several("Domain", domains, PREFIX + "domain", placeholder="all")
    left, middle, right = st.columns(3)
    sizes = [ANY, *(str(size) for size in table["tools"].unique().sort())]
    with left:
        tools = permalinks.select(f"{record.kind.capitalize()}s in the label", sizes, PREFIX + "tools", ANY)
    with middle:
        combinations = permalinks.select(
            "Valid combinations", [word for word in _BUCKETS if word != "none"], PREFIX + "combinations", ANY
        )
    with right:
        equivalents = permalinks.select("Equivalents", list(_BUCKETS), PREFIX + "equivalents", ANY)
    missed = ALL
    orders: list[Order] = [order for order in Order if order not in (Order.LIFT, Order.DISAGREEMENT)]
    metric, k = "NDCG", 10
    if runs:
        orders = [order for order in Order if order is not Order.DISAGREEMENT or len(runs) > 1]
        missed = permalinks.select("Show", [ALL, MISSED], PREFIX + "show", ALL)
    order = permalinks.select("Order", [str(o) for o in orders], PREFIX + "sort", str(orders[0]))
    if runs:
        with st.container(horizontal=True, gap="small"):
            metric = permalinks.segments("Metric", list(METRICS), PREFIX + "metric", "NDCG")
            k = permalinks.select("Cutoff K", list(KS), PREFIX + "k", 10, width=100)
    st.button("Show every query again", on_click=permalinks.reset(cleared(record)), width="stretch", key="q_clear")
    return Search(
        runs=tuple(runs),
        metric=metric,
        k=int(k),
        filter=QueryFilter(
            domains=chosen or None,
            tools=Range() if tools == ANY else Range(int(tools), int(tools)),
            combinations=_BUCKETS[combinations],
            equivalents=_BUCKETS[equivalents],
        ),
        missed=missed == MISSED,
        order=Order(order),
    )


def cleared(record: BenchmarkRecord) -> dict[str, object]:
    """Values that undo every filter and the order."""
    values: dict[str, object] = {PREFIX + name: ANY for name in ("tools", "combinations", "equivalents")}
    if len(record.domains) > 1:
        values[PREFIX + "domain"] = []
    return values | {
        PREFIX + "show": ALL, PREFIX + "sort": str(Order.BENCHMARK), PREFIX + "text": "", PREFIX + "page": 1,
    }  # fmt: skip


def active() -> int:
    """How many filters narrow the list, read before their widgets are drawn (for the popover's label)."""

    def value(name: str) -> object:
        key = PREFIX + name
        kept = st.session_state.get(key)
        return kept if kept is not None else (st.query_params.get(key) or "")

    ranges = sum(1 for name in ("tools", "combinations", "equivalents") if value(name) not in ("", ANY))
    return ranges + bool(value("domain")) + (value("show") == MISSED)


def found(version: Content, search: Search) -> pl.DataFrame:
    """The queries that pass, in order.

    Columns of ``QUERY_TABLE``; with runs also ``old``, ``new`` and ``lift`` of the first; with two or more ``second``
    (its new score) and ``disagreement``; with ``missed`` also ``truth_rank`` and ``equivalent_rank``.
    """
    table = filter_queries(version.queries, search.filter)
    if search.runs:
        first = query_reading.per_query(search.runs[0])
        if search.missed:
            table = missed_but_equivalent(table, first, search.k)
        figures = first.select("query_id", old=f"old_{search.figure}", new=f"new_{search.figure}")
        table = table.join(figures, on="query_id", how="left", maintain_order="left").with_columns(
            lift=pl.col("new") - pl.col("old")
        )
        if len(search.runs) > 1:
            second = query_reading.per_query(search.runs[1])
            differing = by_disagreement(table, first, second, metric=search.metric, k=search.k).drop("first")
            # Joined back, so that another order is not lost.
            table = (
                differing
                if search.order is Order.DISAGREEMENT
                else table.join(
                    differing.select("query_id", "second", "disagreement"), on="query_id", maintain_order="left"
                )
            )
    column = {Order.LIFT: "lift", Order.COMBINATIONS: "combinations", Order.EQUIVALENTS: "equivalents"}.get(
        search.order
    )
    if column is not None and column in table.columns:
        table = table.sort(column, descending=True, nulls_last=True, maintain_order=True)
    return table


def shown_columns(rows: pl.DataFrame, search: Search, record: BenchmarkRecord) -> pl.DataFrame:
    """The rows as texts."""
    columns: dict[str, list[str]] = {
        "Query": [text or query_id for query_id, text in rows.select("query_id", "text").iter_rows()]
    }
    if len(record.domains) > 1:
        columns["Domain"] = rows["domain"].to_list()
    columns |= {
        f"{record.kind.capitalize()}s": [whole(n) for n in rows["tools"]],
        "Combinations": [whole(n) for n in rows["combinations"]],
        "Equivalents": [whole(n) for n in rows["equivalents"]],
    }
    if search.runs:
        columns["Old"] = [points(value) for value in rows["old"]]
        columns["New"] = [points(value) for value in rows["new"]]
        columns["Lift"] = [points(value, signed=True) for value in rows["lift"]]
        if search.missed:
            columns["Label at"] = [NONE if rank is None else str(rank) for rank in rows["truth_rank"]]
            columns["Equivalent at"] = [str(rank) for rank in rows["equivalent_rank"]]
        if len(search.runs) > 1:
            columns["Second, new"] = [points(value) for value in rows["second"]]
            columns["Difference"] = [points(value, signed=True) for value in rows["disagreement"]]
    return pl.DataFrame(columns)


def list_sentence(rows: pl.DataFrame, search: Search, record: BenchmarkRecord) -> str:
    """What the list holds, in one line of our Markdown."""
    parts = [f"**{whole(rows.height)} of {whole(record.queries)} queries.**"]
    if search.runs:
        first = plain(search.runs[0].name)
        if search.missed:
            parts.append(
                f"In each, {first} has no ground-truth {record.kind} in its top {search.k} but a valid equivalent: one "
                "label counts it as a failure."
            )
        if len(search.runs) > 1:
            second = plain(search.runs[1].name)
            parts.append(
                f"Old, new and lift are {search.figure} × 100 of {first}; second is {second}. Difference: second minus "
                "first, under new labels."
            )
        else:
            parts.append(f"Old, new and lift are {search.figure} × 100 of {first}.")
        if search.order is Order.LIFT:
            parts.append("Lift: what every valid answer adds to one label.")
    return " ".join(parts)


#: Pixels; names of runs are above the table, so that no name can push the figures out of sight.
_WIDTHS = {
    "Domain": 96, "Tools": 58, "Skills": 58, "Combinations": 106, "Equivalents": 96, "Old": 58, "New": 58, "Lift": 62,
    "Label at": 76, "Equivalent at": 106, "Second, new": 96, "Difference": 88,
}  # fmt: skip
#: What a wide and a narrow page leave for the table without its boxes.
_ROOM, _LEAST, _NARROW = 1000, 250, 190


def column_widths(columns: Sequence[str], *, narrow: bool) -> dict[str, int]:
    """Pixels by column: the query's text gets what the figures leave."""
    others = {name: _WIDTHS.get(name, 84) for name in columns if name != "Query"}
    return {"Query": _NARROW if narrow else max(_LEAST, _ROOM - sum(others.values())), **others}


def _help(column: str, search: Search, kind: str) -> str | None:
    if not search.runs:
        return None
    first = search.runs[0].name
    said = {
        "Old": f"{search.figure} of {first} against the one label.",
        "New": f"{search.figure} of {first} against every valid answer.",
        "Lift": "New minus old.",
        "Label at": f"Best rank of a ground-truth {kind} under {first}.",
        "Equivalent at": f"Best rank of an equivalent under {first}.",
        "Difference": "Second minus first, under new labels.",
    }
    if len(search.runs) > 1:
        said["Second, new"] = f"{search.figure} of {search.runs[1].name} against every valid answer."
    text = said.get(column)
    return None if text is None else plain(text)


def query_list(rows: pl.DataFrame, search: Search, record: BenchmarkRecord) -> str | None:
    """The table with its pages; returns the id of the query that was just chosen."""
    pages = max(1, -(-rows.height // PAGE_ROWS))
    place = st.container()
    page = permalinks.page_number(pages, PREFIX + "page")
    part = rows.slice((page - 1) * PAGE_ROWS, PAGE_ROWS)
    shown = shown_columns(part, search, record)
    narrow = viewport.is_narrow()
    if narrow:
        # The figures come right after the query, in reach without scrolling.
        first = [name for name in ("Query", "Old", "New", "Lift") if name in shown.columns]
        shown = shown.select(*first, pl.exclude(first))
    widths = column_widths(shown.columns, narrow=narrow)
    config = {
        name: st.column_config.TextColumn(
            name,
            alignment="left" if name in {"Query", "Domain"} else "right",
            width=widths[name],
            help=_help(name, search, record.kind),
        )
        for name in shown.columns
    }
    identity = f"q_table_{hash(tuple(part['query_id'].to_list())) & 0xFFFFFFFF:x}"
    with place:
        state = st.dataframe(
            shown, hide_index=True, column_config=config, lazy=False, key=identity, height="content",
            on_select="rerun", selection_mode="single-row", alt="Queries; select a row to open it",
        )  # fmt: skip
    picked = state["selection"]["rows"]
    return str(part["query_id"][picked[0]]) if picked and picked[0] < part.height else None
