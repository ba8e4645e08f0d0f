"""The leaderboard's controls: one row on a wide window, one popover on a narrow one; all of them are permalinks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl
import streamlit as st

from dashboard import reading
from dashboard.components import permalinks
from dashboard.components.benchmark_choice import choose_version
from dashboard.components.board_table import COLUMNS, SUB_QUERY_MARK, USUAL
from dashboard.components.run_choice import described_several
from pipeline.formats.board_rows import FILTERS, BoardView, Filters, SortKey, filter_options
from pipeline.formats.paired_table import row_names
from store.records import BenchmarkRecord

PREFIX = "lb_"
PIN = "lb_pin"
METRICS = ("NDCG", "Recall", "Comp")
_HIDDEN_AT_FIRST = ("level",)


@dataclass(frozen=True)
class Scope:
    """What a figure is the mean of.

    Attributes:
        word: in the control and the address.
        average: ``macro``, ``micro`` or ``domain``.
        domain: the domain's own string with ``domain``, else None.
    """

    word: str
    average: str
    domain: str | None = None

    @property
    def sentence(self) -> str:
        """For the line under the table."""
        if self.average == "macro":
            return "mean of the domain means"
        if self.average == "micro":
            return "mean over all queries"
        return f"mean over the queries of {self.word}"


@dataclass(frozen=True)
class Figure:
    """The chosen figure of the board."""

    benchmark: BenchmarkRecord
    view: BoardView
    metric: str
    k: int
    scope: Scope

    @property
    def name(self) -> str:
        """``NDCG@10``."""
        return f"{self.metric}@{self.k}"


@dataclass(frozen=True)
class Arrangement:
    """How the rows are narrowed, ordered and laid out; ``pinned`` holds run ids."""

    filters: Filters
    sort: SortKey
    reverse: bool
    columns: tuple[str, ...]
    pinned: tuple[str, ...] = ()


def choose_benchmark(
    records: Sequence[BenchmarkRecord], *, key: str = PREFIX + "benchmark", width: int = 276, brief: bool = True
) -> BenchmarkRecord:
    """The benchmark version by its title: counts would be cut; the newest board of ToolEq first, where there is one."""
    first = next((record.name for record in records if record.slug == "tooleq"), records[0].name)
    return choose_version(records, key, first, brief=brief, label_visibility="collapsed", width=width)


def scopes_of(benchmark: BenchmarkRecord, found: pl.DataFrame) -> list[Scope]:
    """The averages and domains that there are figures for; the benchmark's headline first."""
    averages = set(found["average"].to_list()) or {"macro", "micro"}
    ordered = sorted({"macro", "micro"} & averages, key=lambda average: average != benchmark.headline)
    named = [domain.name for domain in benchmark.domains]
    present = set(found.filter(pl.col("average") == "domain")["domain"].to_list())
    domains = [name for name in named if name in present or not present] + sorted(present - set(named))
    scopes = [Scope(f"{average} average", average) for average in ordered]
    taken = {scope.word for scope in scopes}
    for name in domains:
        title = name[:1].upper() + name[1:]
        word = title if title and title not in taken else f"domain {name}"
        taken.add(word)
        scopes.append(Scope(word, "domain", name))
    return scopes or [Scope(f"{benchmark.headline} average", benchmark.headline)]


def choose_figure(benchmark: BenchmarkRecord, found: pl.DataFrame) -> Figure:
    """View, metric, K and scope; draws four controls where it is called."""
    view = permalinks.segments(
        "View",
        [str(v) for v in BoardView],
        PREFIX + "view",
        str(BoardView.BOTH),
        label_visibility="collapsed",
    )
    metric, k, scope = choose_metric(benchmark, found, PREFIX)
    return Figure(benchmark, BoardView(view), metric, k, scope)


def choose_metric(benchmark: BenchmarkRecord, found: pl.DataFrame, prefix: str) -> tuple[str, int, Scope]:
    """Metric, K and scope, among those that there are figures for."""
    metrics = [m for m in METRICS if m in set(found["metric"].to_list())] or list(METRICS)
    metric = permalinks.segments("Metric", metrics, prefix + "metric", metrics[0], label_visibility="collapsed")
    ks = sorted(set(found.filter(pl.col("metric") == metric)["k"].to_list())) or list(benchmark.ks)
    first = 10 if 10 in ks else ks[0]
    k = permalinks.select(
        "Cutoff K",
        ks,
        prefix + "k",
        first,
        format_func=lambda cutoff: f"@{cutoff}",
        label_visibility="collapsed",
        width=76,
    )
    scopes = scopes_of(benchmark, found)
    by_word = {scope.word: scope for scope in scopes}
    word = permalinks.select(
        "Average or domain", list(by_word), prefix + "over", scopes[0].word, label_visibility="collapsed", width=140
    )
    return metric, int(k), by_word[word]


def choose_arrangement(board: pl.DataFrame, of: str) -> Arrangement:
    """Filters, order, pinned rows and columns; draws them one under another where it is called.

    Args:
        board: whole.
        of: what the board belongs to; another one has pinned rows of its own.
    """
    options = filter_options(board)
    search = permalinks.text(
        "Search", PREFIX + "search", placeholder="retriever, family, method", icon=":material/search:", live=True
    )
    chosen: dict[str, list[str]] = {}
    shown = [
        column
        for column in FILTERS
        if len(options[column]) > 1 or st.session_state.get(PREFIX + column) or PREFIX + column in st.query_params
    ]
    left, right = st.columns(2)
    for place, column in enumerate(shown):
        with left if place % 2 == 0 else right:
            chosen[column] = permalinks.several(FILTERS[column], options[column], PREFIX + column, placeholder="all")
    st.button("Show everything again", on_click=permalinks.reset(cleared()), width="stretch", key="lb_clear_all")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        sort = permalinks.select("Sort by", [str(s) for s in SortKey], PREFIX + "sort", str(SortKey.RANK))
        reverse = permalinks.switch("Reverse", PREFIX + "reverse")
    names, keys = pin_names(board), pin_keys(board)
    said = st.query_params.get_all(PIN)
    if any(word in keys for word in said):
        # An older link names the run that was the row's then.
        st.query_params[PIN] = [keys.get(word, word) for word in said]
    row_of = {key: run_id for run_id, key in keys.items()}
    pinned = described_several(
        "Pinned rows",
        list(row_of),
        key=PIN,
        default=[],
        describe=lambda key: names[row_of[key]],
        of=of,
        placeholder="none",
        help="They stay on top under every filter. Select a row of the table to pin it.",
    )
    titles = {column.key: column.title for column in COLUMNS}
    usual = [key for key in USUAL if key not in _HIDDEN_AT_FIRST or board["level"].n_unique() > 1]
    columns = permalinks.several(
        "Columns",
        [c.key for c in COLUMNS if c.key != "retriever"],
        PREFIX + "columns",
        [key for key in usual if key != "retriever"],
        format_func=lambda key: titles[key],
    )
    return Arrangement(
        Filters(chosen, search), SortKey(sort), bool(reverse), tuple(columns), tuple(row_of[key] for key in pinned)
    )


def pin_names(board: pl.DataFrame) -> dict[str, str]:
    """Run id → a name that is unique on the board."""
    named: dict[str, str] = {}
    taken: set[str] = set()
    for (run_id, level), name in zip(board.select("run_id", "level").iter_rows(), row_names(board), strict=True):
        asked = f" {SUB_QUERY_MARK}" if level == "sub-query" else ""
        named[run_id] = name + asked if name + asked not in taken else f"{name}{asked} ({run_id})"
        taken.add(named[run_id])
    return named


def pin_keys(board: pl.DataFrame) -> dict[str, str]:
    """Run id → what names its row in the address, whichever run of the retriever, method and setting is the newest."""
    columns = ["method", "contract", "level", "provenance", "place"]
    found: dict[str, str] = {}
    for run_id, retriever, *row in board.select("run_id", "retriever_key", *columns).iter_rows():
        digest = hashlib.sha256("\0".join(str(part or "") for part in row).encode()).hexdigest()
        key = f"{retriever}~{digest[:8]}"
        # Two rows may differ in the hash of what they were asked with alone.
        found[run_id] = key if key not in found.values() else run_id
    return found


def pin(row: str, of: str, *, pinned: bool) -> Callable[[], None]:
    """A callback that pins a row, or lets it go.

    Args:
        row: of ``pin_keys``.
        of: what the board belongs to.
        pinned: whether it is to be pinned.
    """

    def apply() -> None:
        key = f"{PIN}_{of}"
        others = [other for other in st.session_state.get(key, []) if other != row]
        st.session_state[key] = [*others, row] if pinned else others

    return apply


def unpin_all(of: str) -> Callable[[], None]:
    """A callback that lets every pinned row go."""
    return permalinks.reset({f"{PIN}_{of}": []})


def cleared() -> dict[str, object]:
    """Values that undo every filter and the order."""
    values: dict[str, object] = {PREFIX + column: [] for column in FILTERS}
    return values | {PREFIX + "search": "", PREFIX + "sort": str(SortKey.RANK), PREFIX + "reverse": False}


def active_filters() -> int:
    """How many filters narrow the board, read before their widgets are drawn (for the popover's label)."""

    def value(key: str) -> list[str]:
        kept = st.session_state.get(key)
        if kept is None:
            kept = st.query_params.get_all(key)
        return [kept] if isinstance(kept, str) else list(kept)

    chosen = {column: value(PREFIX + column) for column in FILTERS}
    return Filters(chosen, "".join(value(PREFIX + "search"))).active


def choices_for(benchmark: BenchmarkRecord) -> tuple[str, pl.DataFrame]:
    """The stamp of the benchmark's board and the figures it has."""
    stamp = reading.board_stamp(benchmark.id)
    return stamp, reading.available(benchmark.id, stamp)
