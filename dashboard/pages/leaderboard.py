"""Leaderboard: retrievers ranked against every valid answer, with the one-label figures beside them."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import streamlit as st

from dashboard import reading
from dashboard.components import permalinks, viewport
from dashboard.components.board_table import as_text, board_table, visible_columns
from dashboard.components.controls import (
    Arrangement,
    Figure,
    active_filters,
    choices_for,
    choose_arrangement,
    choose_benchmark,
    choose_figure,
    cleared,
    pin,
    pin_keys,
    unpin_all,
)
from dashboard.components.downloads import download_menu
from dashboard.components.empty import empty_board, no_benchmarks
from dashboard.components.failures import shown_errors
from dashboard.components.findings import finding, reading_line
from dashboard.components.method_table import show_method_table
from dashboard.components.numbers import whole
from dashboard.components.run_detail import RunPage, read_run, retriever_link, run_title, show_run
from dashboard.components.theme import ground
from dashboard.components.untrusted import plain
from pipeline.formats.board_rows import BoardView, narrowed, ordered, pinned_first, ranked_for
from store.errors import NotFound

RUN = "run"
#: One benchmark's retrievers in rank order, or the MFTR paper's Table 2: methods beside each other on every dataset.
RANKING, METHODS = "ranking", "methods"


def controls(narrow: bool) -> tuple[Figure, Arrangement, pl.DataFrame]:
    """Draw the controls; returns what they say and the whole board of the chosen figure."""
    records = reading.benchmarks()
    if not records:
        no_benchmarks()
        viewport.end_page()
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        benchmark = choose_benchmark(records, width=190 if narrow else 276)
        stamp, found = choices_for(benchmark)
        if not narrow:
            figure = choose_figure(benchmark, found)
        active = active_filters()
        label = "Filter and sort" if not narrow else "View and filter"
        with st.popover(f"{label} · {active}" if active else label, icon=":material/tune:", key="lb_more"):
            if narrow:
                with st.container(horizontal=True, gap="xsmall"):
                    figure = choose_figure(benchmark, found)
            board = reading.board(
                benchmark.id,
                stamp,
                metric=figure.metric,
                k=figure.k,
                average=figure.scope.average,
                domain=figure.scope.domain,
            )
            arrangement = choose_arrangement(board, str(benchmark.id))
    return figure, arrangement, board


def rows_line(rows: pl.DataFrame, total: int, arrangement: Arrangement, of: str) -> None:
    """How many rows are shown and pinned, and the way back to all of them."""
    pinned = int(rows["pinned"].sum())
    if rows.height == total and not pinned:
        return
    said = [f"{whole(pinned)} pinned."] if pinned else []
    if rows.height < total:
        said.insert(0, f"{whole(rows.height)} of {whole(total)} rows.")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(f"{' '.join(said)} Ranks are those of the whole board.", width="content")
        if arrangement.filters.active:
            st.button("Show all rows", type="tertiary", on_click=permalinks.reset(cleared()), key="lb_all_rows")
        if pinned:
            st.button("Unpin all", type="tertiary", on_click=unpin_all(of), key="lb_unpin_all")


def pin_button(row: str, of: str, pinned: bool) -> None:
    """Pin the selected row, or let it go."""
    st.button(
        "Unpin it" if pinned else "Pin it on top",
        icon=":material/keep_off:" if pinned else ":material/keep:",
        type="tertiary",
        on_click=pin(row, of, pinned=not pinned),
        key="lb_pin_selected",
    )


def selected_line(page: RunPage, figure: Figure, board: pl.DataFrame, rows: pl.DataFrame) -> None:
    """Which row is selected and what can be done with it: right over the table, whose end may be out of sight."""
    run_id = page.run.id
    st.markdown(f"**{plain(run_title(page))}**", width="content")
    # A link may name a run that is no row of this board.
    own = rows.filter(pl.col("run_id") == run_id)
    if own.height:
        pin_button(pin_keys(board)[run_id], str(figure.benchmark.id), bool(own["pinned"][0]))
    st.page_link("pages/run.py", label="Open its page", icon=":material/link:", query_params={"run": run_id})
    retriever_link(page)
    st.caption("Details are under the table.", width="content")


def detail(page: RunPage, figure: Figure) -> None:
    """The selected run under the table."""
    st.divider()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(plain(run_title(page)), anchor=False, width="content")
        # Again, for who comes from the table by keyboard.
        st.page_link("pages/run.py", label="Open its page", icon=":material/link:", query_params={"run": page.run.id})
        retriever_link(page)
    show_run(page, k=figure.k, key="lb_detail")


def selected_run(run_id: str) -> RunPage | None:
    """The selected run as everybody may see it; says so where it cannot be shown."""
    try:
        return read_run(run_id)
    except NotFound as error:
        st.caption(plain(str(error)))
        return None


def select_run(shown: pl.DataFrame, position: int | None) -> str | None:
    """Keep the selected run in the address."""
    wanted = st.query_params.get(RUN)
    if position is not None:
        chosen = shown["run_id"][position]
        if chosen != wanted:
            st.query_params[RUN] = chosen
        return str(chosen)
    if wanted is not None and st.session_state.get("lb_had_selection"):
        del st.query_params[RUN]
        return None
    return wanted


def view_report(figure: Figure, rows: pl.DataFrame) -> str:
    """The rows as shown, as a file that needs no server."""
    from dashboard.exports import BoardFigure, board_report

    scope = figure.scope
    exported = BoardFigure(figure.benchmark, figure.metric, figure.k, scope.average, scope.domain, figure.view)
    return board_report(exported, rows)


def page() -> None:
    """Draw the page."""
    narrow = viewport.is_narrow()
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", gap="small"):
        st.title("Retrievers, scored against every valid answer", anchor=False, width="content")
        layout = permalinks.segments(
            "Layout", [RANKING, METHODS], "lb_layout", RANKING, label_visibility="collapsed", width="content",
        )  # fmt: skip
        with st.container(horizontal=True, gap="small", width="content"):
            if st.button("Score a run file", type="primary", icon=":material/upload_file:", key="lb_submit"):
                st.switch_page("pages/submit.py")
            if st.button("Evaluate a model", icon=":material/play_arrow:", key="lb_evaluate"):
                st.switch_page("pages/evaluate.py")
    if layout == METHODS:
        show_method_table()
        return
    figure, arrangement, board = controls(narrow)
    if board.is_empty():
        empty_board(figure.benchmark)
        return
    if figure.view in (BoardView.NEW, BoardView.LIFT) and board["new"].null_count() == board.height:
        st.info(
            f"{plain(figure.benchmark.title)} has no new labels, so there is nothing to show as “{figure.view}”: the "
            "table shows the old figures."
        )
        figure = replace(figure, view=BoardView.OLD)
    every = ordered(ranked_for(board, figure.view), arrangement.sort, reverse=arrangement.reverse)
    rows = pinned_first(every, narrowed(every, arrangement.filters), arrangement.pinned)
    sentence = finding(figure, board)
    # Between the controls and the table: the table's toolbar, which appears over its top right corner, then covers
    # the end of a line and no control.
    with st.container(gap="xxsmall"):
        if sentence and not narrow:
            st.markdown(sentence)
        rows_line(rows, board.height, arrangement, str(figure.benchmark.id))
    if rows.is_empty():
        st.info("No row passes these filters. Every row is still there: show all rows to see them.")
        return
    chosen = st.container(horizontal=True, vertical_alignment="center", gap="small")
    columns = visible_columns(arrangement.columns, figure.view, ranked_for(board, figure.view), narrow=narrow)
    wanted = st.query_params.get(RUN)
    places = [i for i, run_id in enumerate(rows["run_id"].to_list()) if run_id == wanted]
    # One element a selection's meaning: other rows or another order start without a selection.
    identity = f"lb_table_{hash(tuple(rows['run_id'].to_list())) & 0xFFFFFFFF:x}"
    position = board_table(
        rows,
        columns,
        ground(),
        key=identity,
        label=f"Leaderboard of {figure.benchmark.name}, {figure.name}",
        selected=places[0] if places else None,
        narrow=narrow,
    )
    selected = select_run(rows, position)
    st.session_state["lb_had_selection"] = position is not None
    st.caption(reading_line(figure, rows))
    if sentence and narrow:
        st.markdown(sentence)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        download_menu(
            key="lb_download",
            name=f"equirank-{figure.benchmark.slug}-{figure.metric}{figure.k}",
            data=lambda: rows.drop("pinned"),
            table=lambda: as_text(rows, columns),
            report=lambda: view_report(figure, rows),
        )
        st.page_link(
            "pages/score_and_cost.py",
            label="Score against cost",
            icon=":material/scatter_plot:",
            query_params={"cost_benchmark": figure.benchmark.name},
        )
    opened = selected_run(selected) if selected else None
    with chosen:
        if opened is None:
            st.caption("Select a row to pin it, to open its retriever and to see its details.", width="content")
        else:
            selected_line(opened, figure, board, rows)
    if opened is not None:
        detail(opened, figure)


with shown_errors():
    page()
