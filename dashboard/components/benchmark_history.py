"""A benchmark's versions, and what moved from one to another: queries, tools, labels, scores and ranks."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import streamlit as st

from dashboard import benchmark_reading, reading
from dashboard.charts.dumbbell_plot import Words, dumbbell_plot
from dashboard.charts.layout import chart_config
from dashboard.components import permalinks, viewport
from dashboard.components.benchmark_choice import choose_version
from dashboard.components.downloads import download_menu
from dashboard.components.figure import draw_chart
from dashboard.components.numbers import NONE, day, points, short_hash, whole
from dashboard.components.run_detail import METRICS, text_table
from dashboard.components.theme import ground
from dashboard.components.untrusted import plain
from pipeline.jobs.benchmark_history import earlier_versions
from pipeline.scoring.version_changes import LABEL_CHANGES, VersionChanges
from store.records import BenchmarkRecord

CONFIG = chart_config("what-moved")
#: Changed queries that are listed on the page; the download has all of them.
MOST_LISTED = 200
_LABELS = {
    "equivalents_added": "Equivalents added",
    "equivalents_removed": "removed",
    "combinations_added": "Combinations added",
    "combinations_removed": "removed ",
}


def show_history(record: BenchmarkRecord, records: Sequence[BenchmarkRecord]) -> None:
    """Draw the section: the versions, then what moved against an earlier one.

    Args:
        record: of the card.
        records: every stored version.
    """
    versions = [other for other in records if other.slug == record.slug]
    earlier = earlier_versions(record, list(records))
    if len(versions) < 2 and not record.parents:
        return
    st.subheader("Versions, and what moved", anchor=False)
    text_table(
        versions_table([*versions, *(one for one in earlier if one.slug != record.slug)]),
        key=f"bm_versions_{record.id}",
        label=f"Versions of {record.slug}",
    )
    if not earlier:
        absent = ", ".join(plain(name) for name in record.parents)
        st.caption(
            f"It was made from {absent}, whose content is not stored here: nothing to compare with."
            if absent and record.has_content
            else "No other version has its content here: nothing to compare with."
        )
        return
    against = choose_version(earlier, "bm_against", earlier[0].name, label="What moved since", width=420)
    changes = benchmark_reading.changes(against, record)
    st.markdown(f"From {plain(against.name)} to {plain(record.name)}: {changes_sentence(changes)}")
    text_table(counts_table(changes), key=f"bm_changes_{record.id}", label="What moved, in numbers")
    _queries(record, changes)
    _scores(against, record)


def versions_table(versions: Sequence[BenchmarkRecord]) -> pl.DataFrame:
    """A line a version, as given."""
    return pl.DataFrame(
        {
            "Version": [one.name for one in versions],
            "Stored": [day(one.created_at) for one in versions],
            "Made from": [", ".join(one.parents) or NONE for one in versions],
            "Queries": [whole(one.queries) for one in versions],
            f"{versions[0].kind.capitalize()}s": [whole(one.tools) for one in versions],
            "Equivalents": [whole(one.equivalents) for one in versions],
            "Combinations": [whole(one.combinations) for one in versions],
            "Hash": [short_hash(one.content_hash) for one in versions],
        }
    )


def counts_table(changes: VersionChanges) -> pl.DataFrame:
    """What was added, removed and changed, a line a part; parts that neither version has are left out."""
    known = changes.counts.filter((pl.col("before") > 0) | (pl.col("after") > 0))
    figures = [
        pl.col(name).map_elements(whole, return_dtype=pl.String).fill_null("").alias(name)
        for name in ("before", "after", "added", "removed", "changed")
    ]
    return known.select(pl.col("part").alias("What"), *figures)


def changes_sentence(changes: VersionChanges) -> str:
    """The difference in plain words."""
    said = []
    for part, _, _, added, removed, changed in changes.counts.iter_rows():
        words = [
            f"{whole(n)} {verb}" for n, verb in ((added, "added"), (removed, "removed"), (changed, "changed")) if n
        ]
        if words:
            said.append(f"{part} {', '.join(words)}")
    if not said:
        return "nothing moved; the two have the same content."
    touched = changes.queries.height
    noun = "query has" if touched == 1 else "queries have"
    return f"{'; '.join(said)}. {whole(touched)} {noun} other text or labels."


def changed_queries(changes: VersionChanges) -> pl.DataFrame:
    """Changed queries as texts."""
    state = {"same": "labels only", "changed": "text or domain", "added": "added", "removed": "removed"}
    rows = changes.queries
    return pl.DataFrame(
        {
            "Query": rows["query_id"],
            "What": [
                state[word] + (", ground truth" if truth else "")
                for word, truth in rows.select("state", "ground_truth_changed").iter_rows()
            ],
            **{_LABELS[name]: [whole(n) for n in rows[name]] for name in LABEL_CHANGES},
        }
    )


def _queries(record: BenchmarkRecord, changes: VersionChanges) -> None:
    """The changed queries, each with a link to its page where this version has it."""
    if changes.queries.is_empty():
        return
    with st.expander(f"The {whole(changes.queries.height)} changed queries"):
        head = VersionChanges(changes.counts, changes.queries.head(MOST_LISTED))
        links = [
            permalinks.address("queries", q_benchmark=record.name, q_query=query_id) if state != "removed" else None
            for query_id, state in head.queries.select("query_id", "state").iter_rows()
        ]
        right = {
            name: st.column_config.TextColumn(name.strip(), alignment="right") for name in _LABELS.values()
        }  # fmt: skip
        st.dataframe(
            changed_queries(head).insert_column(0, pl.Series("Open", links, dtype=pl.String)),
            hide_index=True,
            lazy=False,
            height=min(35 * (head.queries.height + 1) + 2, 392),
            key=f"bm_changed_{record.id}",
            column_config={
                "Open": st.column_config.LinkColumn("", display_text="open", width=58, help="Opens the query's page."),
                **right,
            },
            placeholder="",
            alt="Changed queries",
        )
        if changes.queries.height > MOST_LISTED:
            st.caption(f"The first {MOST_LISTED} by id; the files below hold all.")
        download_menu(
            key=f"bm_changed_files_{record.id}",
            name=f"equirank-{record.slug}-{record.version}-changes",
            data=lambda: changes.queries,
            table=lambda: changed_queries(changes),
        )


def _scores(before: BenchmarkRecord, after: BenchmarkRecord) -> None:
    """How the figures and ranks of runs that are scored on both versions moved."""
    st.markdown("**Scores and ranks**")
    available = [reading.available(one.id, reading.board_stamp(one.id)) for one in (before, after)]
    both = [set(figures.select("metric", "k").unique().rows()) for figures in available]
    shared = sorted(both[0] & both[1], key=lambda figure: (METRICS.index(figure[0]), figure[1]))
    if not shared:
        st.caption(
            "No retriever is scored on both versions. Submit or measure the same run on both, and its figures and "
            "ranks are compared here."
        )
        return
    metrics = list(dict.fromkeys(metric for metric, _ in shared))
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        metric = permalinks.segments("Metric", metrics, "bm_metric", metrics[0], label_visibility="collapsed")
        ks = [k for name, k in shared if name == metric]
        k = permalinks.select(
            "Cutoff K", ks, "bm_k", 10 if 10 in ks else ks[0], format_func=lambda cutoff: f"@{cutoff}",
            label_visibility="collapsed", width=84,
        )  # fmt: skip
    moved = benchmark_reading.moves(before, after, metric, int(k))
    if moved.is_empty():
        st.caption("No retriever is asked in the same way on both versions.")
        return
    name = f"{metric}@{k}"
    st.markdown(moves_sentence(moved, name))
    draw_chart(
        dumbbell_plot(
            moved.select(name="retriever", family="family", old="new_before", new="new_after"),
            f"{name}, every valid answer",
            ground(),
            Words(f"version {before.version}", f"version {after.version}", "change"),
            narrow=viewport.is_narrow(),
        ),
        config=CONFIG, key=f"bm_moves_{after.id}", alt=f"{name} on {before.name} and on {after.name}",
    )  # fmt: skip
    with st.expander("Data of this chart, and every rank"):
        text_table(moves_table(moved), key=f"bm_moves_data_{after.id}", label="Scores and ranks on both versions")
        if (moved["same_ranking"] == False).any():  # noqa: E712
            st.caption(
                "“new search” marks runs whose ranking is another one on this version, as where the "
                f"{after.kind}s changed: then not only the labels moved the figure."
            )
        download_menu(
            key=f"bm_moves_files_{after.id}",
            name=f"equirank-{after.slug}-{after.version}-moves-{metric}{k}",
            data=lambda: moved,
            table=lambda: moves_table(moved),
        )


def moves_sentence(moved: pl.DataFrame, name: str) -> str:
    """How much the figures moved, and how many ranks did."""
    changes = (moved["new_after"] - moved["new_before"]).drop_nulls().to_list()
    places = moved.filter(pl.col("rank_change") != 0).height
    runs = "1 run is" if moved.height == 1 else f"{whole(moved.height)} runs are"
    said = f"{runs} scored on both. "
    if changes:
        said += f"{name} against every valid answer moves by {points(min(changes), signed=True)}"
        if len(changes) > 1:
            said += f" to {points(max(changes), signed=True)}"
        said += " points. "
    return said + (
        f"**{whole(places)}** change{'s' if places == 1 else ''} place." if places else "Nobody changes place."
    )


def moves_table(moved: pl.DataFrame) -> pl.DataFrame:
    """Every figure and rank before and after, as texts."""

    def pair(row: dict[str, float | None], view: str) -> str:
        return f"{points(row[f'{view}_before'])} / {points(row[f'{view}_after'])}"

    rows = []
    for row in moved.iter_rows(named=True):
        known = row["new_before"] is not None and row["new_after"] is not None
        rows.append(
            {
                "Retriever": row["retriever"] + (" · sub-query" if row["level"] != "query" else ""),
                "Method": row["method"],
                "Rank": f"{row['rank_before']} / {row['rank_after']}",
                "Old": pair(row, "old"),
                "New": pair(row, "new"),
                "Change": points(row["new_after"] - row["new_before"], signed=True) if known else NONE,
                "Ranking": {True: "the same", False: "new search", None: NONE}[row["same_ranking"]],
            }
        )
    return pl.DataFrame(rows)
