"""Compare: two runs, metric by metric and query by query, under one label and under every valid answer."""

from __future__ import annotations

import polars as pl
import streamlit as st

from dashboard import pair_reading, reading
from dashboard.charts.score_scatter import CONFIG, gathered, score_scatter
from dashboard.components import permalinks, viewport
from dashboard.components.controls import METRICS, choose_benchmark
from dashboard.components.downloads import download_menu
from dashboard.components.empty import empty_board, no_benchmarks
from dashboard.components.failures import shown_errors
from dashboard.components.figure import draw_chart
from dashboard.components.gain_words import gain_texts, over, pair_sentence, share_sentence, test_sentence
from dashboard.components.numbers import points, whole
from dashboard.components.run_detail import text_table
from dashboard.components.theme import ground
from dashboard.components.untrusted import plain
from dashboard.pair_reading import PairedRun
from pipeline.scoring.query_changes import wins_and_losses
from store.records import BenchmarkRecord

PREFIX = "cmp_"
#: Queries in a list; the downloads have them all.
MOST_LISTED = 50


def choose_runs(board: pair_reading.PairBoard) -> tuple[PairedRun, PairedRun]:
    """Two select boxes, a fine-tuned run and its base at first where there are any, else the best two."""
    names = {run.id: run.name for run in board.runs.values()}
    ids = list(names)
    scored = [run.id for run in board.runs.values() if run.per_query is not None] or ids
    first = board.pairs[0] if board.pairs else (scored[min(1, len(scored) - 1)], scored[0])
    with st.container(horizontal=True, gap="small"):
        base = permalinks.described_select(
            "First run", ids, PREFIX + "base", first[0], describe=lambda run: names[run], width=340, stop=False
        )
        tuned = permalinks.described_select(
            "Second run", ids, PREFIX + "tuned", first[1], describe=lambda run: names[run], width=340, stop=False
        )
    if not base or not tuned:
        viewport.end_page()
    return board.runs[base], board.runs[tuned]


def differences(benchmark: BenchmarkRecord, stamp: str, base: PairedRun, tuned: PairedRun, metric: str, k: int) -> None:
    """What the second run gains over the first, by metric and by domain."""
    found = pair_reading.gains(stamp, base.id, tuned.id, k, compute=True)
    chosen = found.table.filter(pl.col("metric") == metric)
    if chosen.is_empty():
        st.info(f"The two runs have no {metric}@{k} in common.")
        return
    headline = chosen.row(0, named=True)
    st.markdown(pair_sentence(headline, benchmark.kind, pending=found.pending))
    if found.per_query:
        said = " ".join(text for text in (test_sentence(headline), share_sentence(headline)) if text)
        st.caption(said)
    else:
        st.caption(
            "At least one of the two is known from printed figures only: there are no scores by query behind it, so "
            "there is no interval, no test and no list of queries."
        )
    by_metric = found.table.filter(pl.col("average") != "domain")
    texts = gain_texts(by_metric).with_columns(Metric=pl.Series([f"{name}@{k}" for name in by_metric["metric"]]))
    domains = gain_texts(chosen)
    st.subheader("Difference by metric", anchor=False)
    text_table(texts.select("Metric", pl.exclude("Metric", "Over", "Queries")), label="Difference of every metric")
    st.caption(
        f"Second − first, in points, {over(headline).lower()} over {whole(headline['n'])} queries"
        + (
            ". Brackets: 95 % intervals. p: two-sided sign-flip tests on the paired queries, unadjusted; p (Holm): "
            "adjusted over the rows of a metric, its averages and domains. Artifact: — where the old gain is near zero "
            "or may be zero."
            if found.per_query
            else "."
        )
    )
    if chosen.height > 1:
        with st.expander(f"{metric}@{k} by domain"):
            text_table(domains, label=f"Difference in {metric}@{k} by domain")
    download_menu(
        key="cmp_download",
        name=f"equirank-{benchmark.slug}-compare-{k}",
        data=lambda: found.table,
        table=lambda: texts,
    )


def queries(benchmark: BenchmarkRecord, base: PairedRun, tuned: PairedRun, metric: str, k: int) -> None:
    """Where the difference comes from: scatter, counts, wins and losses."""
    changes = pair_reading.changes(base, tuned, metric, k)
    st.subheader("Query by query", anchor=False)
    words = {"every valid answer": "new", "one label": "old"}
    view = words[
        permalinks.segments("Scored against", list(words), PREFIX + "view", "every valid answer",
                            label_visibility="collapsed")
    ]  # fmt: skip
    st.markdown(outcome_sentence(changes, base, tuned, view))
    draw_chart(
        score_scatter(
            changes, view, base=base.name, tuned=tuned.name, family=tuned.family, figure_name=f"{metric}@{k}",
            ground=ground(),
        ),
        config=CONFIG,
        key="cmp_scatter",
        alt=f"{metric}@{k} of every query: {base.name} against {tuned.name}",
    )  # fmt: skip
    with st.expander("Data of this chart"):
        counts = wins_and_losses(changes).filter(pl.col("view") == view)
        table = counts.select(Over=pl.col("domain").fill_null("all queries"), Wins="wins", Losses="losses", Ties="ties")
        text_table(table.with_columns(pl.exclude("Over").map_elements(whole, return_dtype=pl.String)))
        st.caption(f"{whole(gathered(changes, view).height)} discs; CSV and Parquet below hold every query.")
    listed = changes.sort(f"change_{view}", "query_id", descending=[True, False])
    wins = listed.filter(pl.col(f"outcome_{view}") == "win")
    losses = listed.filter(pl.col(f"outcome_{view}") == "loss").reverse()
    texts = pair_reading.query_texts(benchmark.artifacts["queries"])
    for title, rows, key in (
        (f"{plain(tuned.name)} is better", wins, "wins"),
        (f"{plain(base.name)} is better", losses, "losses"),
    ):
        st.markdown(f"**{title}** in {whole(rows.height)} {'query' if rows.height == 1 else 'queries'}")
        if rows.height:
            query_list(benchmark, rows.head(MOST_LISTED), texts, base, tuned, view, key)
            if rows.height > MOST_LISTED:
                st.caption(f"The {MOST_LISTED} largest differences are listed.")
    download_menu(
        key="cmp_queries",
        name=f"equirank-{benchmark.slug}-queries-{metric}{k}",
        data=lambda: changes,
        table=lambda: text_rows(listed.head(MOST_LISTED), texts, view),
    )


def outcome_sentence(changes: pl.DataFrame, base: PairedRun, tuned: PairedRun, view: str) -> str:
    """Wins, losses and ties in words, and how many outcomes the view decides."""
    count = {word: int((changes[f"outcome_{view}"] == word).sum()) for word in ("win", "loss", "tie")}
    other = "old" if view == "new" else "new"
    turned = changes.filter(pl.col("outcome_new") != pl.col("outcome_old")).height
    against = "one label" if other == "old" else "every valid answer"
    return (
        f"{plain(tuned.name)} is better in **{whole(count['win'])}** queries, {plain(base.name)} in "
        f"**{whole(count['loss'])}**, {whole(count['tie'])} are the same. Against {against}, "
        f"{whole(turned)} of the {whole(changes.height)} queries come out otherwise."
    )


def text_rows(rows: pl.DataFrame, texts: pl.DataFrame, view: str) -> pl.DataFrame:
    """Queries with both scores as texts."""
    joined = rows.join(texts, on="query_id", how="left", maintain_order="left")
    return pl.DataFrame(
        {
            "Query": joined["text"].fill_null(""),
            "Domain": joined["domain"],
            "First": [points(value) for value in joined[f"base_{view}"]],
            "Second": [points(value) for value in joined[f"tuned_{view}"]],
            "Difference": [points(value, signed=True) for value in joined[f"change_{view}"]],
            "Id": joined["query_id"],
        }
    )


def query_list(
    benchmark: BenchmarkRecord,
    rows: pl.DataFrame,
    texts: pl.DataFrame,
    base: PairedRun,
    tuned: PairedRun,
    view: str,
    key: str,
) -> None:
    """A table of queries, each with a link to its page."""
    said = text_rows(rows, texts, view)
    links = [
        permalinks.address("queries", q_benchmark=benchmark.name, q_query=query_id, q_run=[base.id, tuned.id])
        for query_id in rows["query_id"]
    ]
    frame = said.select(pl.Series("Open", links), "Query", "Difference", "First", "Second", "Domain", "Id")
    right = {name: st.column_config.TextColumn(name, width=84, alignment="right") for name in
             ("Difference", "First", "Second")}  # fmt: skip
    st.dataframe(
        frame,
        hide_index=True,
        lazy=False,
        height=min(35 * (frame.height + 1) + 2, 392),
        key=f"cmp_list_{key}",
        column_config={
            "Open": st.column_config.LinkColumn("", display_text="open", width=58, help="Opens the query's page."),
            "Query": st.column_config.TextColumn("Query", width=190 if viewport.is_narrow() else 560),
            **right,
        },
        alt=f"Queries with the largest differences: {key}",
    )


def page() -> None:
    """Draw the page."""
    with st.container(gap="xxsmall"):
        st.title("Two runs, side by side", anchor=False)
        st.markdown("What the second run gains over the first, how sure that is, and in which queries it happens.")
    records = reading.benchmarks()
    if not records:
        no_benchmarks()
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        benchmark = choose_benchmark(records, key=PREFIX + "benchmark")
        stamp = reading.board_stamp(benchmark.id)
        available = reading.available(benchmark.id, stamp)
        if not available.is_empty():
            metrics = [m for m in METRICS if m in set(available["metric"].to_list())]
            metric = permalinks.segments("Metric", metrics, PREFIX + "metric", metrics[0], label_visibility="collapsed")
            ks = sorted(set(available["k"].to_list()))
            k = permalinks.select(
                "Cutoff K", ks, PREFIX + "k", 10 if 10 in ks else ks[0], format_func=lambda cutoff: f"@{cutoff}",
                label_visibility="collapsed", width=84,
            )  # fmt: skip
    if available.is_empty():
        empty_board(benchmark)
        return
    board = pair_reading.pair_board(benchmark, stamp)
    if len(board.runs) < 2:
        for label, key in (("First run", "base"), ("Second run", "tuned")):
            permalinks.unknown_choice(label, PREFIX + key, board.runs)
        st.info("There is only one run here: publish a second one to compare it with.")
        return
    base, tuned = choose_runs(board)
    if base.id == tuned.id:
        st.info("Choose two different runs: a run differs from itself in nothing.")
        return
    if base.level != tuned.level:
        st.warning(
            "One of the two is asked with whole queries, the other with sub-queries that know the needs behind them: "
            "part of the difference is what the sub-queries tell."
        )
    differences(benchmark, stamp, base, tuned, metric, int(k))
    if base.per_query is not None and tuned.per_query is not None:
        queries(benchmark, base, tuned, metric, int(k))


with shown_errors():
    page()
