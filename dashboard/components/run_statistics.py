"""How sure the figures of a run are: intervals, the random control, holes in the labels, other ways to count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import streamlit as st

from dashboard.components.gain_words import with_interval
from dashboard.components.numbers import points
from dashboard.current_site import the_site
from store.access import statistics

if TYPE_CHECKING:
    from dashboard.components.run_detail import RunPage

METRICS = ("NDCG", "Recall", "Comp")

#: Reading → what it means, with a place for the benchmark's kind; in the order shown. ``READINGS`` of
#: ``pipeline.scoring.run_statistics``.
READINGS = {
    ("max", "new"): "Best combination a metric (the figure)",
    ("joint", "new"): "One combination for all metrics",
    ("mean", "new"): "Mean over all combinations",
    ("min", "new"): "Worst combination",
    ("union", "new"): "All valid {kind}s as one answer",
    ("condensed", "old"): "Old, unjudged {kind}s taken out",
    ("condensed", "new"): "New, unjudged {kind}s taken out",
    ("upper", "old"): "Old, if unjudged {kind}s were right",
    ("upper", "new"): "New, if unjudged {kind}s were right",
}


def certainty_table(summaries: pl.DataFrame, lifts: pl.DataFrame, k: int, average: str) -> pl.DataFrame:
    """One row a metric: old, new and lift with intervals, the random control, and what the lift has over it.

    Args:
        summaries: of ``store.access.runs.summaries``.
        lifts: of ``store.access.statistics.lifts``.
        k: cutoff.
        average: the benchmark's headline.
    """
    figures = {
        (row["metric"], row["view"]): row
        for row in summaries.filter((pl.col("k") == k) & (pl.col("average") == average)).iter_rows(named=True)
    }
    known = {
        row["metric"]: row
        for row in lifts.filter((pl.col("k") == k) & (pl.col("average") == average)).iter_rows(named=True)
    }
    rows = []
    for metric in METRICS:
        old, new, lift = figures.get((metric, "old")), figures.get((metric, "new")), known.get(metric)
        if old is None or new is None or lift is None:
            continue
        value = new["value"] - old["value"]
        control = lift["control"]
        rows.append(
            {
                "": f"{metric}@{k}",
                "Old, 95 %": _unsigned(old),
                "New, 95 %": _unsigned(new),
                "Lift, 95 %": with_interval(value, lift["low"], lift["high"]),
                "Random lift": points(control, signed=True),
                "Lift over random": points(None if control is None else value - control, signed=True),
            }
        )
    return pl.DataFrame(rows)


def _unsigned(row: dict[str, float | None]) -> str:
    if row["low"] is None or row["high"] is None:
        return points(row["value"])
    return f"{points(row['value'])} [{points(row['low'])}, {points(row['high'])}]"


def readings_table(readings: pl.DataFrame, kind: str, k: int, average: str) -> pl.DataFrame:
    """What the headline would be if it were made in another way; one row a reading."""
    here = readings.filter((pl.col("k") == k) & (pl.col("average") == average))
    values = {(row["reading"], row["view"], row["metric"]): row["value"] for row in here.iter_rows(named=True)}
    return pl.DataFrame(
        [
            {"": words.format(kind=kind), **{f"{m}@{k}": points(values.get((reading, view, m))) for m in METRICS}}
            for (reading, view), words in READINGS.items()
        ]
    )


def control_sentence(summaries: pl.DataFrame, lifts: pl.DataFrame, kind: str, k: int, average: str) -> str:
    """How the lift stands against random labels and how much of the top K is judged; empty when not known."""
    here = lifts.filter((pl.col("metric") == "NDCG") & (pl.col("k") == k) & (pl.col("average") == average))
    figures = summaries.filter((pl.col("metric") == "NDCG") & (pl.col("k") == k) & (pl.col("average") == average))
    values = dict(figures.select("view", "value").iter_rows())
    if here.is_empty() or not {"old", "new"} <= set(values):
        return ""
    row = here.row(0, named=True)
    lift = values["new"] - values["old"]
    parts = []
    if row["control"] is not None:
        parts.append(
            f"As many random {kind}s instead of the valid ones would lift NDCG@{k} by {points(row['control'])} points; "
            f"the labels lift it by {points(lift)}."
        )
    if row["judged"] is not None:
        parts.append(f"The labels judge {points(row['judged'], 0)} % of the first {k} {kind}s (judged@{k}).")
    return " ".join(parts)


def show_statistics(page: RunPage, *, k: int, key: str) -> None:
    """Draw it; nothing for figures from a paper."""
    from dashboard.components.run_detail import text_table

    run = page.run
    if run.per_query_artifact is None:
        return
    if run.statistics_artifact is None:
        st.caption("Intervals, the random control and other readings are being computed; they appear here soon.")
        return
    with the_site().database.reading() as session:
        lifts = statistics.lifts(session, run.id)
    average = page.benchmark.headline
    table = certainty_table(page.summaries, lifts, k, average)
    if table.is_empty():
        return
    st.markdown(f"**How sure is that?** {average.capitalize()} average, intervals over the queries.")
    text_table(table, key=f"{key}_certainty", label="Figures with 95 % intervals and the random control")
    sentence = control_sentence(page.summaries, lifts, page.benchmark.kind, k, average)
    if sentence:
        st.caption(sentence)
    with st.expander("What if it were counted in another way?"):
        text_table(
            readings_table(_readings(run.statistics_artifact), page.benchmark.kind, k, average),
            key=f"{key}_readings",
            label="The figures under other readings",
        )


@st.cache_resource(max_entries=64, show_spinner=False)
def _readings(artifact: str) -> pl.DataFrame:
    return the_site().artifacts.get_frame(artifact)
