"""Score and cost: which retrievers nothing beats for their size, dimension, speed or index."""

from __future__ import annotations

import polars as pl
import streamlit as st

from dashboard import reading
from dashboard.charts.pareto_plot import CONFIG, frontier, pareto_plot
from dashboard.components import permalinks, viewport
from dashboard.components.controls import choices_for, choose_benchmark, choose_metric
from dashboard.components.cost import COSTS, Cost
from dashboard.components.cost_words import cost_finding, left_out
from dashboard.components.downloads import download_menu
from dashboard.components.empty import empty_board, no_benchmarks
from dashboard.components.failures import shown_errors
from dashboard.components.figure import draw_chart
from dashboard.components.numbers import points
from dashboard.components.run_detail import text_table
from dashboard.components.theme import ground
from dashboard.components.untrusted import plain
from pipeline.formats.board_rows import BoardView
from pipeline.formats.paired_table import row_names
from store.records import BenchmarkRecord

PREFIX = "cost_"
_TITLES = {
    "size": "size",
    "dimension": "dimension",
    "encoding": "encoding",
    "query": "query",
    "index": "index",
}
_VIEWS = {
    BoardView.NEW: "every valid answer",
    BoardView.OLD: "one label",
}


def points_of(board: pl.DataFrame, cost: Cost, view: BoardView) -> pl.DataFrame:
    """What is drawn: run_id, name, family, cost, score, best; rows where both are known, the cheapest first."""
    named = board.with_columns(name=pl.Series(row_names(board), dtype=pl.String))
    known = named.select(
        "run_id", "name", "family", cost=pl.col(cost.column) / cost.scale, score=pl.col(str(view))
    ).drop_nulls(["cost", "score"])
    best = frontier(known["cost"].to_list(), known["score"].to_list())
    return known.with_columns(best=pl.Series(best, dtype=pl.Boolean)).sort("cost", "score", descending=[False, True])


def controls(benchmark: BenchmarkRecord, stamp: str, found: pl.DataFrame) -> tuple[pl.DataFrame, BoardView, str]:
    """Figure, level and label set; returns the board's rows, the view and the figure's name."""
    metric, k, scope = choose_metric(benchmark, found, PREFIX)
    board = reading.board(benchmark.id, stamp, metric=metric, k=k, average=scope.average, domain=scope.domain)
    levels = [level for level in ("query", "sub-query") if level in set(board["level"].to_list())]
    if len(levels) > 1:
        level = permalinks.segments("Level", levels, PREFIX + "level", levels[0], label_visibility="collapsed")
        board = board.filter(pl.col("level") == level)
    elif levels:
        permalinks.only_choice("Level", PREFIX + "level", levels[0])
    views = {_VIEWS[view]: view for view in _VIEWS if board[str(view)].null_count() < board.height}
    if len(views) < 2:
        return board, next(iter(views.values()), BoardView.OLD), f"{metric}@{k}"
    word = permalinks.segments(
        "Scored against", list(views), PREFIX + "view", next(iter(views)), label_visibility="collapsed"
    )
    return board, views[word], f"{metric}@{k}"


def page() -> None:
    """Draw the page."""
    said = st.container(gap="xxsmall")
    said.title("What does a point of score cost?", anchor=False)
    records = reading.benchmarks()
    if not records:
        no_benchmarks()
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        benchmark = choose_benchmark(records, key=PREFIX + "benchmark")
        stamp, found = choices_for(benchmark)
        if not found.is_empty():
            axis = st.container(width="content")
            with st.popover("Figure", icon=":material/tune:", key="cost_more"):
                board, view, name = controls(benchmark, stamp, found)
    if found.is_empty():
        empty_board(benchmark)
        return
    drawable = [cost for cost in COSTS.values() if not points_of(board, cost, view).is_empty()]
    if not drawable:
        st.info("Nothing is known about the cost of these rows. A model that is evaluated here brings its figures.")
        st.page_link("pages/evaluate.py", label="Evaluate a model", icon=":material/play_arrow:")
        return
    by_title = {_TITLES[cost.key]: cost for cost in drawable}
    with axis:
        title = permalinks.segments(
            "Cost", list(by_title), PREFIX + "axis", next(iter(by_title)), label_visibility="collapsed"
        )
    cost = by_title[title]
    drawn = points_of(board, cost, view)
    sentence = cost_finding(drawn, cost)
    if sentence:
        said.markdown(sentence)
    figure = pareto_plot(
        drawn, score_name=f"{name}, {_VIEWS[view]}", cost_name=cost.axis, write=cost.write, ground=ground(),
        narrow=viewport.is_narrow(),
    )  # fmt: skip
    draw_chart(
        figure, config=CONFIG, key="cost_chart",
        alt=f"{name} of {benchmark.name} against {cost.axis}, one disc a retriever",
    )  # fmt: skip
    notes = ["The dotted line joins those that nothing beats: whatever costs no more scores less."]
    devices = board.filter(pl.col("run_id").is_in(drawn["run_id"].to_list()))["device"].drop_nulls().unique().to_list()
    # "cpu (2 threads)" and "cpu (x86_64)" are one processor, with torch and without.
    if cost.measured and len({device.partition(" (")[0] for device in devices}) > 1:
        notes.append(f"Measured on different devices, so compare with care: {plain('; '.join(sorted(devices)))}.")
    notes.append(left_out(board, drawn, str(view)))
    st.caption(" ".join(note for note in notes if note))
    shown = pl.DataFrame(
        {
            "Retriever": drawn["name"],
            cost.axis: [cost.write(value) for value in drawn["cost"]],
            name: [points(value) for value in drawn["score"]],
            "nothing beats it": ["yes" if best else "" for best in drawn["best"]],
        }
    )
    with st.expander("Data of this chart"):
        text_table(shown)
    download_menu(
        key="cost_download",
        name=f"equirank-{benchmark.slug}-{name.replace('@', '')}-{cost.key}",
        data=lambda: drawn,
        table=lambda: shown,
    )


with shown_errors():
    page()
