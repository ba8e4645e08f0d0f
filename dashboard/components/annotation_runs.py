"""Runs and a new version: stored ones that can be scored against it, and lift by documentation length."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import streamlit as st

from dashboard import annotation_reading
from dashboard.components import permalinks
from dashboard.components.failures import show
from dashboard.components.numbers import points, whole
from dashboard.components.run_detail import text_table
from dashboard.components.untrusted import plain
from dashboard.current_site import the_site
from pipeline.errors import EquiRankError
from pipeline.jobs.annotations import rescoring
from pipeline.jobs.submission import LOCAL_PERSON
from store.errors import StoreError
from store.records import BenchmarkRecord

#: Says once, after the page was drawn anew, what was done.
_DONE = "an_rescored"


def show_runs(made: BenchmarkRecord) -> None:
    """Draw it."""
    st.subheader("Stored runs", anchor=False)
    done = st.session_state.pop(_DONE, None)
    if done is not None and done[0] == made.id:
        st.success(f"{_runs(done[1])} on {plain(made.name)}.", icon=":material/check_circle:")
        permalinks.leaderboard_link(
            label="See them on its leaderboard", icon=":material/leaderboard:", query_params={"lb_benchmark": made.name}
        )
    _rescore(made, just_done=done is not None and done[0] == made.id)
    for words in rescoring.misfits(the_site(), made.id):
        st.caption(plain(words[:1].upper() + words[1:]) + ".")
    _quartiles(made)


def _runs(count: int) -> str:
    return "1 run is now scored" if count == 1 else f"{whole(count)} runs are now scored"


def _rescore(made: BenchmarkRecord, *, just_done: bool) -> None:
    """The runs of earlier versions, and the button; that nothing is left goes without saying after a success."""
    offered = annotation_reading.rescorable(made)
    if offered.is_empty():
        if not just_done:
            st.caption(
                "Nothing to re-score: no run of an earlier version has a stored ranking, or all are scored on this "
                "one already."
            )
        return
    count = "1 run" if offered.height == 1 else f"{whole(offered.height)} runs"
    st.markdown(
        f"**{count} of earlier versions can be scored against this one.** The ranking stays, only the labels change; "
        "each becomes a run of its own, and the old one stays as it is."
    )
    text_table(offered.drop("id"), key=f"an_rescorable_{made.id}", label="Runs that can be re-scored", most_rows=12)
    if st.button(f"Score {count} against it", type="primary", icon=":material/refresh:", key=f"an_rescore_{made.id}"):
        bar = st.progress(0.0, "Scoring")

        def report(share: float) -> None:
            bar.progress(min(max(share, 0.0), 1.0), "Scoring")

        try:
            scored = rescoring.rescore(
                the_site(), made.id, offered["id"].to_list(), person=LOCAL_PERSON,
                progress=report,
            )  # fmt: skip
        except (EquiRankError, StoreError) as error:
            bar.empty()
            show(str(error))
            return
        st.session_state[_DONE] = (made.id, len(scored))
        st.rerun()


def _quartiles(made: BenchmarkRecord) -> None:
    """Lift, and what fine-tuning gains, by the length of the labelled documents."""
    st.subheader("By documentation length", anchor=False)
    lifts, gains = annotation_reading.length_quartiles(made)
    if lifts.is_empty():
        st.caption("No public run is scored on this version yet, so there is no lift to compare.")
        return
    st.markdown("**Lift: every valid answer over one label**")
    text_table(quartile_table(lifts), key=f"an_lifts_{made.id}", label="Lift by quartile of documentation length")
    if not gains.is_empty():
        st.markdown("**Gain of fine-tuned retrievers over their base, against every valid answer**")
        text_table(quartile_table(gains), key=f"an_gains_{made.id}", label="Gain by quartile of documentation length")
    st.caption(
        "NDCG@10, points, mean over queries. Quartiles hold equally many queries, by the mean length of their "
        "ground-truth documents in tokens."
    )


def quartile_table(found: pl.DataFrame) -> pl.DataFrame:
    """A line a quartile, a column a run, as texts."""
    fixed = ("quartile", "queries", "shortest", "longest")
    runs: Sequence[str] = [name for name in found.columns if name not in fixed]
    words = ["shortest", "short", "long", "longest"]
    return pl.DataFrame(
        {
            "Documents": [words[quartile - 1] for quartile in found["quartile"]],
            "Tokens": [
                f"{whole(round(low))}–{whole(round(high))}"
                for low, high in found.select("shortest", "longest").iter_rows()
            ],
            "Queries": [whole(n) for n in found["queries"]],
        }
        | {run: [points(value, signed=True) for value in found[run]] for run in runs}
    )
