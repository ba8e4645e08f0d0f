"""How a benchmark's labels and documents are spread: small distributions, and tools' documents beside skills'."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import streamlit as st

from dashboard import benchmark_reading
from dashboard.charts import count_bars as bars
from dashboard.charts import length_curves as curves
from dashboard.components import viewport
from dashboard.components.benchmark_choice import choose_version
from dashboard.components.figure import draw_chart
from dashboard.components.numbers import NONE, points, whole
from dashboard.components.run_detail import text_table
from dashboard.components.theme import ground
from dashboard.components.untrusted import plain
from pipeline.retrieval.document_tokens import READ_TOKENS, TOKENIZER
from pipeline.scoring.benchmark_distributions import Spread, quantile, spread_of
from store.records import BenchmarkRecord

#: What is counted → words over the bars, with a place for the benchmark's kind, and for the axis.
COUNTED = {
    Spread.COMBINATIONS: ("valid combinations of a query", "queries"),
    Spread.EQUIVALENTS: ("equivalents of a sub-query, beyond its label", "sub-queries"),
    Spread.TOOLS_PER_QUERY: ("ground-truth {kind}s of a query", "queries"),
}
_QUARTERS = {"quarter": 0.25, "median": 0.5, "three quarters": 0.75, "longest": 1.0}


def show_spread(record: BenchmarkRecord, records: Sequence[BenchmarkRecord]) -> None:
    """Draw the section; for a benchmark without content, which stored ones have it.

    Args:
        record: of the card.
        records: every stored version.
    """
    st.subheader("How labels and documents are spread", anchor=False)
    if not record.has_content:
        _elsewhere(record, records)
        return
    found = benchmark_reading.distributions(record)
    if found is None:
        st.caption(
            "A worker counts the distributions of this benchmark after its import; they appear here when it is done. "
            "If nothing appears, the page Jobs says whether a worker is running."
        )
        return
    known = [spread for spread in COUNTED if not spread_of(found, spread).is_empty()]
    if Spread.COMBINATIONS not in known and Spread.EQUIVALENTS not in known:
        st.caption("Nothing was annotated beyond one label a query, so only the size of the label is spread.")
    for spread, place in zip(known, st.columns(max(len(known), 2), gap="medium"), strict=False):
        with place:
            counts_chart(found, spread, record)
    _lengths(record, found, records)


def _elsewhere(record: BenchmarkRecord, records: Sequence[BenchmarkRecord]) -> None:
    """Why there is nothing to count here, and the cards that have these charts."""
    counted = [other for other in records if other.has_content and benchmark_reading.distributions(other) is not None]
    st.markdown(
        f"The queries, labels and documents of {plain(record.title)} are not stored here, so combinations, equivalents "
        "and documentation length cannot be counted."
        + (" These benchmarks are stored and have the charts:" if counted else "")
    )
    if counted:
        with st.container(horizontal=True, gap="medium"):
            for other in counted:
                st.page_link(
                    "pages/benchmarks.py", label=plain(other.name), icon=":material/bar_chart:",
                    query_params={"bm_benchmark": other.name},
                )  # fmt: skip


def counts_chart(found: pl.DataFrame, spread: Spread, record: BenchmarkRecord, prefix: str = "bm") -> None:
    """One distribution with its data; ``prefix`` keeps the keys of two pages apart."""
    counts, of = COUNTED[spread]
    counts = counts.format(kind=record.kind)
    bins = bars.gathered(spread_of(found, spread))
    draw_chart(
        bars.count_bars(bins, counts=counts, of=of, ground=ground()),
        config=bars.CONFIG, key=f"{prefix}_{spread.value}_{record.id}", alt=f"{record.name}: {counts}",
    )  # fmt: skip
    with st.expander("Data of this chart"):
        text_table(
            bins.select(
                pl.col("bin").alias(counts),
                pl.col("n").map_elements(whole, return_dtype=pl.String).alias(of),
                pl.col("share").map_elements(lambda share: f"{points(share)} %", return_dtype=pl.String),
            ),
            key=f"{prefix}_{spread.value}_data_{record.id}",
        )


def _lengths(record: BenchmarkRecord, found: pl.DataFrame, records: Sequence[BenchmarkRecord]) -> None:
    """The documents of this benchmark, and of one of the other kind beside them."""
    st.markdown("**Documentation length, tools against skills**")
    tokens = {record.id: spread_of(found, Spread.TOKENS)}
    shown = [record]
    others = [
        other
        for other in records
        if other.kind != record.kind and other.has_content and benchmark_reading.distributions(other) is not None
    ]
    if others:
        first = next((other.name for other in others if not other.is_demo), others[0].name)
        beside = choose_version(
            others, "bm_beside", first, brief=True, label="Beside a benchmark of the other kind", width=420
        )
        counted = benchmark_reading.distributions(beside)
        assert counted is not None
        tokens[beside.id] = spread_of(counted, Spread.TOKENS)
        shown.append(beside)
    shown.sort(key=lambda one: one.kind, reverse=True)
    medians = {one.id: quantile(tokens[one.id], 0.5) for one in shown}
    sentence = _sentence(shown, medians)
    if sentence:
        st.markdown(sentence)
    drawn = [
        curves.Lengths(f"{one.title}, {one.kind}s", one.kind, curves.length_bins(tokens[one.id]), medians[one.id])
        for one in shown
    ]
    draw_chart(
        curves.length_curves(drawn, ground(), narrow=viewport.is_narrow()),
        config=curves.CONFIG, key=f"bm_lengths_{record.id}",
        alt=f"Documentation length in tokens: {' and '.join(one.name for one in shown)}",
    )  # fmt: skip
    st.caption(
        f"Tokens of one tokenizer for all ({TOKENIZER}, WordPiece); documents verbatim and whole. "
        f"A model that reads {READ_TOKENS} tokens does not see what comes after them."
    )
    with st.expander("Data of this chart"):
        text_table(_table(shown, tokens), key=f"bm_lengths_data_{record.id}", label="Documentation length in tokens")
    sources = spread_of(found, Spread.TOOL_SOURCES)
    if sources.height > 1:
        with st.expander(f"Where its {record.kind}s come from: {whole(sources.height)} sources"):
            text_table(
                pl.DataFrame(
                    {
                        "Source": [name or "not stated" for name in sources["name"]],
                        f"{record.kind.capitalize()}s": [whole(n) for n in sources["n"]],
                    }
                ),
                key=f"bm_tool_sources_{record.id}",
            )


def _sentence(shown: Sequence[BenchmarkRecord], medians: dict[int, int | None]) -> str:
    """Which documents are longer, in plain words."""
    if len(shown) < 2:
        return ""
    tool, skill = (medians[one.id] for one in shown)
    if not tool or not skill:
        return ""
    if max(tool, skill) < 1.05 * min(tool, skill):
        return f"The median document has about {whole(tool)} tokens in both."
    longer = "skill" if skill > tool else "tool"
    return (
        f"The median {longer} document is **{max(tool, skill) / min(tool, skill):.1f} times as long** as the median "
        f"{'tool' if longer == 'skill' else 'skill'} document: {whole(max(tool, skill))} tokens against "
        f"{whole(min(tool, skill))}."
    )


def _table(shown: Sequence[BenchmarkRecord], tokens: dict[int, pl.DataFrame]) -> pl.DataFrame:
    rows = []
    for one in shown:
        counted = tokens[one.id]
        total = int(counted["n"].sum())
        long = int(counted.filter(pl.col("value") > READ_TOKENS)["n"].sum())
        blank = int(counted.filter(pl.col("value") == 0)["n"].sum())
        rows.append(
            {
                "Benchmark": one.name,
                "documents": whole(total),
                **{name: whole(quantile(counted, share)) for name, share in _QUARTERS.items()},
                f"over {READ_TOKENS}": f"{points(long / total)} %" if total else NONE,
                "blank": whole(blank),
            }
        )
    return pl.DataFrame(rows)
