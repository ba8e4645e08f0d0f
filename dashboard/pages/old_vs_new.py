"""Old vs new: the papers' paired table, and how much the order of retrievers changes."""

from __future__ import annotations

from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import streamlit as st

from dashboard import reading
from dashboard.charts.dumbbell_plot import CONFIG, dumbbell_plot
from dashboard.components import permalinks, viewport
from dashboard.components.controls import choose_benchmark
from dashboard.components.downloads import download_menu
from dashboard.components.empty import empty_board, no_benchmarks
from dashboard.components.failures import shown_errors
from dashboard.components.figure import draw_chart
from dashboard.components.numbers import points
from dashboard.components.old_new_analysis import board_of, chance, order_changes, redundancy, subquery_headroom
from dashboard.components.run_detail import text_table
from dashboard.components.theme import ground
from dashboard.components.untrusted import plain
from pipeline.formats.figures import significance_note
from pipeline.formats.paired_table import (
    Group,
    agreement,
    flat_table,
    groups_of,
    long_lifts,
    metrics_of,
    paired_cells,
    paired_latex,
    row_names,
)
from store.records import BenchmarkRecord

PREFIX = "ovn_"
BY_DOMAIN = "by domain"


def controls(benchmark: BenchmarkRecord, found: pl.DataFrame, stamp: str) -> tuple[pl.DataFrame, int, list[Group]]:
    """K, level and column groups; returns the rows of the level, K and the groups."""
    ks = sorted(set(found["k"].to_list()))
    k = permalinks.select(
        "Cutoff K", ks, PREFIX + "k", 10 if 10 in ks else ks[0], format_func=lambda cutoff: f"@{cutoff}",
        label_visibility="collapsed", width=84,
    )  # fmt: skip
    wide = reading.paired(benchmark.id, stamp, int(k))
    levels = [level for level in ("query", "sub-query") if level in set(wide["level"].to_list())]
    level = levels[0]
    if len(levels) > 1:
        level = permalinks.segments("Level", levels, PREFIX + "level", level, label_visibility="collapsed")
    else:
        permalinks.only_choice("Level", PREFIX + "level", level)
    groups = groups_of(wide)
    domains = [group for group in groups if group.scope.startswith("domain:")]
    averages = [group for group in groups if group not in domains]
    words = ([BY_DOMAIN] if len(domains) > 1 else []) + [group.title for group in averages]
    if not words:
        return wide.filter(pl.col("level") == level), int(k), domains
    chosen = words[0]
    if len(words) > 1:
        chosen = permalinks.segments("Columns", words, PREFIX + "over", chosen, label_visibility="collapsed")
    else:
        permalinks.only_choice("Columns", PREFIX + "over", chosen)
    shown = domains if chosen == BY_DOMAIN else [group for group in averages if group.title == chosen]
    return wide.filter(pl.col("level") == level), int(k), shown


def name_width(names: list[str]) -> int:
    """Pixels in which the longest of the bold names can be read whole, as far as a phone has them."""
    return min(max(186, 8 * max(map(len, names), default=0) + 18), 186 if viewport.is_narrow() else 460)


def paired_frame(wide: pl.DataFrame, cells: dict[tuple[str, str], list[str]]) -> None:
    """The table, with a line of group titles where there are several groups."""
    many = len({group for group, _ in cells}) > 1
    columns = [("", "Retriever"), *cells] if many else ["Retriever", *(column for _, column in cells)]
    names = row_names(wide)
    frame = pd.DataFrame(dict(enumerate([names, *cells.values()])))
    frame.columns = pd.MultiIndex.from_tuples(columns) if many else pd.Index(columns)
    # Position 0 is the index, which is hidden.
    config: Any = {
        place: st.column_config.TextColumn(width=54 if column == "Δ" else 86, alignment="right")
        for place, (_, column) in enumerate(cells, start=2)
    }
    config[1] = st.column_config.TextColumn(width=name_width(names))
    st.dataframe(
        frame.style.map(lambda _: "font-weight: 700", subset=[frame.columns[0]]),
        hide_index=True,
        column_config=config,
        height="content",
        lazy=False,
        alt="Old and new figures of every retriever",
    )


def order_agreement(wide: pl.DataFrame, metrics: list[str], k: int, groups: list[Group]) -> None:
    """Kendall τ of old and new order; in words where there are too few rows for an order."""
    found = agreement(wide, metrics, k, groups)
    if max(map(int, found["retrievers"])) < 2:
        st.caption("It takes two runs with old and new figures to compare orders, and there are fewer here.")
        return
    st.caption("Kendall τ is 1 where old and new put the retrievers in the same order, 0 where they are unrelated.")
    text_table(found, label="Kendall tau between old and new order")


def movement(
    benchmark: BenchmarkRecord, stamp: str, wide: pl.DataFrame, metrics: list[str], k: int, groups: list[Group]
) -> None:
    """The charts of one metric and group: movement, order, chance, redundancy, headroom; each with its data."""
    by_title = {group.title: group for group in groups}
    with st.container(horizontal=True, vertical_alignment="center"):
        metric = permalinks.segments("Metric", metrics, PREFIX + "metric", metrics[0], label_visibility="collapsed")
        title = groups[0].title
        if len(groups) > 1:
            # A select box: it shows names as they are, where a segmented control would read markup in them.
            title = permalinks.select(
                "Domain", list(by_title), PREFIX + "domain", title, label_visibility="collapsed", width=200
            )
    name = f"{metric}@{k}/{by_title[title].scope}"
    rows = wide.select(name=pl.Series(row_names(wide)), family="family", old=f"{name}/old", new=f"{name}/new").sort(
        "new", "name", descending=[True, False], nulls_last=True
    )
    if rows.drop_nulls(["old", "new"]).is_empty():
        st.caption("There is no row with both figures to draw.")
        return
    figure = dumbbell_plot(rows, f"{metric}@{k}", ground(), narrow=viewport.is_narrow())
    draw_chart(figure, config=CONFIG, key="ovn_chart", alt=f"Old and new {metric}@{k} of every retriever, {title}")
    with st.expander("Data of this chart"):
        text_table(
            pl.DataFrame(
                {
                    "Retriever": rows["name"],
                    "old": [points(value, 2) for value in rows["old"]],
                    "new": [points(value, 2) for value in rows["new"]],
                    "lift": [points(value, 2, signed=True) for value in rows["new"] - rows["old"]],
                }
            )
        )
    level = wide["level"][0]
    board = board_of(benchmark, stamp, metric, k, by_title[title].scope)
    order_changes(board, level, f"{metric}@{k}", title)
    chance(board, benchmark.kind, level, f"{metric}@{k}")
    redundancy(benchmark, board, level, metric, k)
    subquery_headroom(board, f"{metric}@{k}")


def page() -> None:
    """Draw the page."""
    with st.container(gap="xxsmall"):
        st.title("Old against new, side by side", anchor=False)
        st.markdown(
            "Each cell is old / new: scored against the one annotated answer, and against the best of all valid "
            "answers. Δ is the mean over the metrics of new − old, in points."
        )
    records = reading.benchmarks()
    if not records:
        no_benchmarks()
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        benchmark = choose_benchmark(records, key=PREFIX + "benchmark")
        stamp = reading.board_stamp(benchmark.id)
        found = reading.available(benchmark.id, stamp)
        if not found.is_empty():
            wide, k, groups = controls(benchmark, found, stamp)
    if found.is_empty():
        empty_board(benchmark)
        return
    metrics = metrics_of(wide)
    cells = paired_cells(wide, metrics, k, groups)
    paired_frame(wide, cells)
    places = wide.filter(pl.col("provenance") == "reported")["place"].unique().sort().to_list()
    if not places:
        st.caption("All figures × 100.")
    else:
        listed = ", ".join(plain(place) for place in places)
        marked = significance_note(text for texts in cells.values() for text in texts)
        st.caption(f"All figures × 100. Those of {listed} are as printed there; Δ is computed from them. {marked}")
    download_menu(
        key="ovn_download",
        name=f"equirank-{benchmark.slug}-old-new-{k}",
        data=lambda: long_lifts(wide, metrics, k, groups),
        table=lambda: flat_table(wide, cells),
        latex=lambda: paired_latex(wide, cells),
    )
    if not any(wide[f"{m}@{k}/{g.scope}/new"].null_count() < wide.height for m in metrics for g in groups):
        st.info("No new figures are known for this benchmark: there is nothing to compare the old ones with.")
        return
    st.subheader("Does the order change?", anchor=False)
    order_agreement(wide, metrics, k, groups)
    st.subheader("Who gains how much?", anchor=False)
    movement(benchmark, stamp, wide, metrics, k, groups)


with shown_errors():
    page()
