"""How the judges decided: by retrieval rank for candidates, by question for combinations."""

from __future__ import annotations

import polars as pl
import streamlit as st

from dashboard import annotation_reading
from dashboard.charts import acceptance_lines as lines
from dashboard.components import viewport
from dashboard.components.downloads import download_menu
from dashboard.components.figure import draw_chart
from dashboard.components.kind_words import counted
from dashboard.components.numbers import NONE, points, whole
from dashboard.components.run_detail import text_table
from dashboard.components.theme import ground
from store.records import BenchmarkRecord


def show_verdicts(made: BenchmarkRecord) -> None:
    """Draw it."""
    found = annotation_reading.acceptance(made)
    st.subheader("Candidates, by the rank they were retrieved at", anchor=False)
    if found.filter(pl.col("rank").is_not_null()).is_empty():
        st.caption(f"No candidate was judged: every decomposition failed, or no retriever found another {made.kind}.")
    else:
        sentence = acceptance_sentence(found)
        if sentence:
            st.markdown(sentence)
        draw_chart(
            lines.acceptance_lines(found, ground(), narrow=viewport.is_narrow()),
            config=lines.CONFIG, key=f"an_acceptance_{made.id}", alt=f"{made.name}: share accepted by rank",
        )  # fmt: skip
        with st.expander("Data of this chart"):
            text_table(acceptance_table(found), key=f"an_acceptance_data_{made.id}")
            download_menu(
                key=f"an_acceptance_files_{made.id}",
                name=f"equirank-{made.slug}-{made.version}-acceptance",
                data=lambda: found,
                table=lambda: acceptance_table(found),
            )
    st.subheader("Combinations", anchor=False)
    audits = annotation_reading.audits(made)
    if audits.is_empty():
        st.caption(f"No combination was judged: no query has a valid {made.kind} beside its ground truth.")
        return
    text_table(audits_table(audits), key=f"an_audits_{made.id}", label="Combinations by judge")
    st.caption(
        "The labelled set is left out: it needs no judge. Fits together: no sub-query takes a token or an id "
        f"from another one, or their {made.kind}s belong to one platform."
    )


def acceptance_sentence(found: pl.DataFrame) -> str:
    """How much was accepted, near the top and further down: a pool whose last ranks still find much is too shallow."""
    ranked = found.filter(pl.col("rank").is_not_null())
    last = max(ranked["rank"].to_list(), default=0)
    judged, accepted = int(ranked["judged"].sum()), int(ranked["accepted"].sum())
    if not judged:
        return ""
    candidates = f"{counted(judged, 'candidate')} {'was' if judged == 1 else 'were'}"
    said = f"**{points(accepted / judged)} %** of {candidates} accepted"
    if last < 4:
        return f"{said}."
    tail = ranked.filter(pl.col("rank") > last - max(last // 4, 1))
    tail_judged = int(tail["judged"].sum())
    share = int(tail["accepted"].sum()) / tail_judged if tail_judged else 0.0
    words = f"{said}; of those at the last ranks ({min(tail['rank'].to_list())}–{last}) {points(share)} %"
    overall = accepted / judged
    if share > 0.5 * overall:
        return f"{words}. So many there mean that more would be found further down: a greater depth is worth its price."
    return f"{words}."


def acceptance_table(found: pl.DataFrame) -> pl.DataFrame:
    """A line a judge and rank, as texts."""
    return pl.DataFrame(
        {
            "Judge": [plain_name(judge) for judge in found["judge"]],
            "Rank": ["all" if rank is None else whole(rank) for rank in found["rank"]],
            "Judged": [whole(n) for n in found["judged"]],
            "Accepted": [whole(n) for n in found["accepted"]],
            "No answer": [whole(n) for n in found["unanswered"]],
            "Share": [NONE if rate is None else f"{points(rate)} %" for rate in found["rate"]],
        }
    )


def plain_name(judge: str) -> str:
    """A judge's name; one without is a label that came with the parent."""
    return judge or "not named"


def audits_table(found: pl.DataFrame) -> pl.DataFrame:
    """A line a judge, as texts."""
    return pl.DataFrame(
        {
            "Judge": [plain_name(judge) for judge in found["judge"]],
            "Judged": [whole(n) for n in found["audited"]],
            "Covers every sub-query": [whole(n) for n in found["covered"]],
            "Fits together": [whole(n) for n in found["consistent"]],
            "Accepted": [whole(n) for n in found["accepted"]],
            "Share": [NONE if rate is None else f"{points(rate)} %" for rate in found["rate"]],
        }
    )
