"""The second half of Old vs new: who moves, what chance explains, where lift comes from, what sub-queries add."""

from __future__ import annotations

import polars as pl
import streamlit as st

from dashboard import reading
from dashboard.charts import rank_slopes as slope_chart
from dashboard.charts import redundancy_lines as redundancy_chart
from dashboard.charts.dumbbell_plot import CONFIG, Words, dumbbell_plot
from dashboard.charts.redundancy_lines import LiftLine, group_words, redundancy_lines
from dashboard.components import viewport
from dashboard.components.figure import draw_chart
from dashboard.components.numbers import NONE, points, whole
from dashboard.components.run_detail import text_table
from dashboard.components.theme import ground
from dashboard.components.untrusted import plain
from dashboard.current_site import the_site
from pipeline.formats.paired_table import row_names
from pipeline.jobs.benchmark_library import load_compiled
from pipeline.scoring.rank_changes import headroom, rank_slopes
from pipeline.scoring.redundancy import lift_by_redundancy, query_redundancy
from store.access import statistics
from store.records import BenchmarkRecord

#: Lines of one chart that can be told apart.
MOST_LINES = 6


def board_of(benchmark: BenchmarkRecord, stamp: str, metric: str, k: int, scope: str) -> pl.DataFrame:
    """The board of one figure with unique names; ``scope`` as in ``formats.paired_table.Group``."""
    domain = scope.removeprefix("domain:")
    average, name = ("domain", domain) if scope != domain else (scope, None)
    board = reading.board(benchmark.id, stamp, metric=metric, k=k, average=average, domain=name)
    return board.with_columns(name=pl.Series(row_names(board), dtype=pl.String))


def order_changes(board: pl.DataFrame, level: str, figure_name: str, scope: str) -> None:
    """The slope chart of one level.

    Args:
        board: the rows.
        level: ``query`` or ``sub-query``.
        figure_name: ``NDCG@10``.
        scope: what the figures are of, as its group of columns is titled: a domain or an average.
    """
    ranked = board.filter(pl.col("level") == level, ~pl.col("flags").list.contains("partial"))
    slopes = rank_slopes(ranked.select("run_id", "name", "family", "old", "new")).runs
    if slopes.height < 2:
        return
    moved = slopes.filter(pl.col("rank_change") != 0).height
    who = f"**{whole(moved)} of {whole(slopes.height)}** rows change place" if moved else "Nobody changes place"
    st.markdown(f"{who} in {figure_name} ({plain(scope)}) once every valid answer counts.")
    draw_chart(
        slope_chart.rank_slope_plot(slopes, ground(), narrow=viewport.is_narrow()),
        config=slope_chart.CONFIG,
        key="ovn_slopes",
        alt=f"Places by old and by new {figure_name}",
    )
    with st.expander("Data of this chart"):
        text_table(
            slopes.select(
                Retriever="name",
                **{"place, old": pl.col("rank_old").cast(pl.String), "place, new": pl.col("rank_new").cast(pl.String)},
            )
        )


def chance(board: pl.DataFrame, kind: str, level: str, figure_name: str) -> None:
    """Lift beside the lift of as many random tools or skills."""
    st.subheader("How much of the lift is chance?", anchor=False)
    rows = board.filter(pl.col("level") == level, pl.col("control").is_not_null(), pl.col("lift").is_not_null()).sort(
        pl.col("lift") - pl.col("control"), descending=True
    )
    if rows.is_empty():
        st.caption(
            "The best over more answers is never lower, whatever the answers are; random ones show how much of a lift "
            "that alone makes. It takes a ranking: figures from a paper have none, and new runs get it in a moment."
        )
        return
    st.markdown(
        f"The best over more answers is never lower, whatever the answers are. Grey: the lift if each valid {kind} "
        "beyond the label were replaced by a random one. Colour: the lift itself."
    )
    figure = dumbbell_plot(
        rows.select("name", "family", old="control", new="lift"), f"lift in {figure_name}", ground(),
        Words(f"random {kind}s", "the labels", "over random"), narrow=viewport.is_narrow(),
    )  # fmt: skip
    draw_chart(figure, config=CONFIG, key="ovn_control", alt=f"Lift in {figure_name} beside that of random {kind}s")
    with st.expander("Data of this chart"):
        text_table(
            pl.DataFrame(
                {
                    "Retriever": rows["name"],
                    "lift": [points(value, 2, signed=True) for value in rows["lift"]],
                    f"random {kind}s": [points(value, 2, signed=True) for value in rows["control"]],
                    "95 % of draws": [
                        f"{points(low, 2)} to {points(high, 2)}"
                        for low, high in rows.select("control_low", "control_high").iter_rows()
                    ],
                    "over random": [points(value, 2, signed=True) for value in rows["lift"] - rows["control"]],
                }
            )
        )


def redundancy(benchmark: BenchmarkRecord, board: pl.DataFrame, level: str, metric: str, k: int) -> None:
    """Lift over groups of queries with similar redundancy, for the best runs."""
    st.subheader("Where does lift come from?", anchor=False)
    ids = board.filter(pl.col("level") == level)["run_id"].to_list()
    with the_site().database.reading() as session:
        scored = statistics.board_runs(session, ids)[:MOST_LINES]
    if not scored or not benchmark.has_content:
        st.caption("Lift by the number of equivalents takes scores by query: figures from a paper have none.")
        return
    named = {row["run_id"]: row for row in board.select("run_id", "name", "family").iter_rows(named=True)}
    lines = []
    for run in scored:
        groups = _groups(benchmark.id, benchmark.content_hash or "", run.per_query_artifact, metric, k)
        lines.append(LiftLine(named[run.run_id]["name"], named[run.run_id]["family"] or "", groups))
    st.markdown(
        "Queries grouped by how many equivalents each of their needs has: one label hides most where most exist."
    )
    draw_chart(
        redundancy_lines(lines, f"{metric}@{k}", ground(), narrow=viewport.is_narrow()),
        config=redundancy_chart.CONFIG,
        key="ovn_redundancy",
        alt=f"Lift in {metric}@{k} by equivalents per need",
    )
    with st.expander("Data of this chart"):
        first = lines[0].groups
        words = [group_words(above, up_to) for above, up_to in first.select("above", "up_to").iter_rows()]
        said = {"equivalents": words, "queries": [whole(n) for n in first["n"]]}
        text_table(
            pl.DataFrame(said | {line.name: [points(v, 2, signed=True) for v in line.groups["lift"]] for line in lines})
        )


def subquery_headroom(board: pl.DataFrame, figure_name: str) -> None:
    """What each retriever would gain if every need came as a query of its own."""
    found = headroom(board)
    if found.is_empty():
        return
    st.subheader("What would asking for each need add?", anchor=False)
    view = "new" if found["headroom_new"].null_count() < found.height else "old"
    known = found.drop_nulls(f"headroom_{view}")
    best = known.row(0, named=True)
    st.markdown(
        f"Grey: asked with the whole query. Colour: asked with its sub-queries, one need at a time; a ceiling, since "
        f"they are written from the labels. The largest headroom is **{points(best[f'headroom_{view}'], signed=True)} "
        f"points** of {figure_name} ({view})."
    )
    families = dict(board.select("retriever_key", "family").iter_rows())
    repeated = known["retriever"].is_duplicated()
    names = [
        f"{name} ({provenance})" if twice else name
        for name, provenance, twice in zip(known["retriever"], known["provenance"], repeated, strict=True)
    ]
    rows = known.select(
        pl.Series("name", names, dtype=pl.String),
        pl.col("retriever_key").replace_strict(families, return_dtype=pl.String).alias("family"),
        pl.col(f"query_{view}").alias("old"),
        pl.col(f"subquery_{view}").alias("new"),
    )
    draw_chart(
        dumbbell_plot(
            rows, f"{figure_name} ({view})", ground(), Words("whole query", "sub-queries", "headroom"),
            narrow=viewport.is_narrow(),
        ),
        config=CONFIG,
        key="ovn_headroom",
        alt=f"{figure_name} with whole queries and with sub-queries",
    )  # fmt: skip
    with st.expander("Data of this chart"):
        text_table(
            pl.DataFrame(
                {"Retriever": names}
                | {
                    f"headroom, {side}": [
                        NONE if value is None else points(value, 2, signed=True) for value in known[f"headroom_{side}"]
                    ]
                    for side in ("old", "new")
                }
            )
        )


def _groups(version_id: int, content_hash: str, per_query: str, metric: str, k: int) -> pl.DataFrame:
    return _kept_groups(the_site().database.url, version_id, content_hash, per_query, metric, k)


@st.cache_resource(max_entries=256, show_spinner=False)
def _kept_groups(place: str, version_id: int, content_hash: str, per_query: str, metric: str, k: int) -> pl.DataFrame:
    columns = ["query_id", f"old_{metric}@{k}", f"new_{metric}@{k}"]
    scores = the_site().artifacts.get_frame(per_query, columns)
    return lift_by_redundancy(scores, _redundancy(place, version_id, content_hash), metric, k)


@st.cache_resource(max_entries=8, show_spinner=False)
def _redundancy(place: str, version_id: int, content_hash: str) -> pl.DataFrame:
    del place, content_hash
    return query_redundancy(load_compiled(the_site(), version_id))
