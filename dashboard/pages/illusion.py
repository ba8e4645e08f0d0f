"""Fine-tuning illusion: how much of a gain over the base is left once every valid answer counts."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import streamlit as st

from dashboard import pair_reading, reading
from dashboard.charts.gain_split_bars import CONFIG, gain_split_bars, shared_scale
from dashboard.components import permalinks, viewport
from dashboard.components.controls import METRICS, choose_benchmark
from dashboard.components.downloads import download_menu
from dashboard.components.empty import empty_board, no_benchmarks
from dashboard.components.failures import shown_errors
from dashboard.components.figure import draw_chart
from dashboard.components.gain_words import gain_bars, gain_texts, pair_sentence, share_sentence, test_sentence
from dashboard.components.run_detail import text_table
from dashboard.components.theme import ground
from dashboard.components.untrusted import plain
from dashboard.pair_reading import PairBoard, PairedRun
from pipeline.jobs.pair_gains import PairGains
from pipeline.scoring.gain_table import GAIN_TABLE, with_sayable_shares
from store.records import BenchmarkRecord

PREFIX = "ill_"
ALL_PAIRS, TWO_RUNS = "fine-tuned and base", "any two runs"


@dataclass(frozen=True, eq=False)
class ShownPair:
    """One pair with its gains of the chosen metric."""

    base: PairedRun
    tuned: PairedRun
    found: PairGains
    table: pl.DataFrame

    @property
    def key(self) -> str:
        """Names it in keys and tables."""
        return f"{self.base.id}-{self.tuned.id}"


def choose_two(board: PairBoard, stamp: str, k: int, metric: str) -> list[ShownPair]:
    """Two select boxes of runs, the best two at first; one pair, or none while a choice is missing."""
    names = {run.id: run.name for run in board.runs.values()}
    ids = list(names)
    first = board.pairs[0] if board.pairs else (ids[min(1, len(ids) - 1)], ids[0])
    with st.container(horizontal=True, gap="small"):
        base = permalinks.described_select(
            "Gains are measured from", ids, PREFIX + "base", first[0], describe=lambda run: names[run], width=340,
            stop=False,
        )  # fmt: skip
        tuned = permalinks.described_select(
            "Gain of", ids, PREFIX + "tuned", first[1], describe=lambda run: names[run], width=340, stop=False
        )
    if not base or not tuned:
        viewport.end_page()
    if base == tuned:
        st.info("Choose two different runs: a run gains nothing over itself.")
        return []
    return shown([(base, tuned)], board, stamp, k, metric, compute=True)


def shown(
    pairs: list[tuple[str, str]], board: PairBoard, stamp: str, k: int, metric: str, *, compute: bool
) -> list[ShownPair]:
    """The pairs that have gains of this metric and cutoff."""
    found = []
    for base, tuned in pairs:
        gains = pair_reading.gains(stamp, base, tuned, k, compute=compute)
        table = gains.table.filter(pl.col("metric") == metric)
        if table.height:
            found.append(ShownPair(board.runs[base], board.runs[tuned], gains, table))
    return found


def draw(pair: ShownPair, scale: tuple[float, float], figure_name: str, kind: str) -> None:
    """One pair: who, what it means, its bars."""
    headline = pair.table.row(0, named=True)
    with st.container(gap="xxsmall"):
        st.subheader(plain(pair.tuned.name), anchor=False)
        st.caption(f"against {plain(pair.base.name)}")
        st.markdown(pair_sentence(headline, kind, pending=pair.found.pending))
        said = " ".join(text for text in (test_sentence(headline), share_sentence(headline)) if text)
        if pair.found.pending:
            said = "Intervals and tests of this pair are being computed; they appear here once a worker is done."
        elif not pair.found.per_query:
            said = (
                f"Printed figures{_of(pair.tuned.place)}: there are no scores by query behind them, so there is no "
                "interval and no test."
            )
        st.caption(said)
    draw_chart(
        gain_split_bars(
            gain_bars(pair.table), family=pair.tuned.family, scale=scale, figure_name=figure_name, ground=ground()
        ),
        config=CONFIG,
        key=f"ill_chart_{pair.key}",
        alt=f"Gain of {pair.tuned.name} over {pair.base.name} in {figure_name}: what is real and what is an artifact",
    )


def _of(place: str) -> str:
    return f" of {plain(place)}" if place else ""


def legend(pairs: list[ShownPair]) -> None:
    """What the parts of a bar mean; only those that occur."""
    rows = [row for pair in pairs for row in pair.table.iter_rows(named=True) if row["gain_new"] is not None]
    parts = ["Colour: gain that every valid answer confirms. Grey: gain that only one label shows."]
    if any(row["gain_new"] > row["gain_old"] or row["sign_flips"] for row in rows):
        parts.append("Outline: what only the count of every valid answer shows, gain or loss.")
    if any(pair.found.per_query for pair in pairs):
        parts.append("Lines: 95 % intervals, of the new gain in the bar, of the old gain below it.")
    if len(pairs) > 1:
        parts.append("All charts share one scale.")
    st.caption(" ".join(parts))


def tables(pairs: list[ShownPair], benchmark: BenchmarkRecord, metric: str, k: int) -> None:
    """The figures behind the charts, and their downloads."""
    frames = [pair.table.with_columns(pair=pl.lit(pair.key)) for pair in pairs]
    together = pl.concat(frames)
    names = {pair.key: f"{pair.tuned.name} − {pair.base.name}" for pair in pairs}
    texts = gain_texts(together, names=names)
    with st.expander("Data of these charts"):
        st.caption(
            "Gains in points. p: two-sided sign-flip tests on the paired queries, of each gain and of old − new gain, "
            "unadjusted; p (Holm): adjusted over the rows of a pair. Artifact: — where the old gain is near zero or "
            "may be zero."
        )
        text_table(texts, label="Gains, intervals and tests of every pair")
    said = pl.concat(
        [
            with_sayable_shares(pair.table).select(
                base=pl.lit(pair.base.name), base_run=pl.lit(pair.base.id), tuned=pl.lit(pair.tuned.name),
                tuned_run=pl.lit(pair.tuned.id), **{name: pl.col(name) for name in GAIN_TABLE},
            )
            for pair in pairs
        ]
    )  # fmt: skip
    download_menu(
        key="ill_download", name=f"equirank-{benchmark.slug}-gains-{metric}{k}", data=lambda: said, table=lambda: texts
    )


def nothing_to_pair(board: PairBoard) -> None:
    """No run of the board is of a retriever whose base is there too."""
    known = "No retriever here is known to be fine-tuned from another one that was asked in the same way."
    if len(board.runs) < 2:
        st.info(f"{known} Publish a run of a retriever and one of its base to see what is left of the gain.")
        return
    st.info(
        f"{known} Choose “{TWO_RUNS}” to split the gain between any of the {len(board.runs)} runs, or evaluate a model "
        "and its base on this benchmark."
    )


def page() -> None:
    """Draw the page."""
    with st.container(gap="xxsmall"):
        st.title("How much of a fine-tuning gain is real?", anchor=False)
        st.markdown(
            "A fine-tuned retriever learns which of several equivalent answers the label names. Scored against every "
            "valid answer, that part of its gain is gone."
        )
    records = reading.benchmarks()
    if not records:
        no_benchmarks()
        return
    narrow = viewport.is_narrow()
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
            mode = permalinks.segments(
                "Which runs", [ALL_PAIRS, TWO_RUNS], PREFIX + "runs", ALL_PAIRS, label_visibility="collapsed"
            )
    if available.is_empty():
        empty_board(benchmark)
        return
    board = pair_reading.pair_board(benchmark, stamp)
    if mode == TWO_RUNS:
        if len(board.runs) < 2:
            for label, key in (("Gains are measured from", "base"), ("Gain of", "tuned")):
                permalinks.unknown_choice(label, PREFIX + key, board.runs)
            st.info("There is only one run here: publish a second one to compare it with.")
            return
        pairs = choose_two(board, stamp, int(k), metric)
    else:
        pairs = shown(board.pairs, board, stamp, int(k), metric, compute=False)
        if not pairs:
            nothing_to_pair(board)
            return
    if not pairs:
        return
    scale = shared_scale([gain_bars(pair.table) for pair in pairs])
    figure_name = f"{metric}@{k}"
    legend(pairs)
    if narrow or len(pairs) == 1:
        for pair in pairs:
            draw(pair, scale, figure_name, benchmark.kind)
    else:
        for start in range(0, len(pairs), 2):
            for column, pair in zip(st.columns(2, gap="medium"), pairs[start : start + 2], strict=False):
                with column:
                    draw(pair, scale, figure_name, benchmark.kind)
    tables(pairs, benchmark, metric, int(k))


with shown_errors():
    page()
