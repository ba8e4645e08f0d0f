"""Whom the pool favours: who found what, and what every score loses without one retriever's own finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import streamlit as st

from dashboard import annotation_reading
from dashboard.components.downloads import download_menu
from dashboard.components.kind_words import counted
from dashboard.components.model_names import model_title
from dashboard.components.numbers import NONE, points, whole
from dashboard.components.run_detail import text_table
from dashboard.components.untrusted import plain
from store.records import BenchmarkRecord

if TYPE_CHECKING:
    from pipeline.jobs.annotations.following import AnnotationProgress
    from pipeline.toolex.pool_bias import PoolBias


def show_pool_bias(progress: AnnotationProgress, made: BenchmarkRecord) -> None:
    """Draw it."""
    kind = made.kind
    st.subheader(f"Who found the valid {kind}s", anchor=False)
    found = annotation_reading.pool_bias(progress.record)
    if not found.equivalents:
        st.caption(f"No {kind} beside the ground truth was accepted, so there is nothing to be found by anybody.")
        return
    st.markdown(bias_sentence(found, kind))
    text_table(members_table(found.members), key=f"an_members_{made.id}", label=f"Valid {kind}s by retriever")
    if found.members.height < 2:
        st.caption(
            f"With one retriever all valid {kind}s are its finds: what it misses, nobody is credited for. Another "
            "expansion with several retrievers says how much that is."
        )
        return
    st.subheader("Scores without one retriever's own finds", anchor=False)
    changes = annotation_reading.without_each(progress.record, made)
    if changes.is_empty():
        st.caption("No public run is scored on this version yet. Re-score stored runs under Runs.")
        return
    st.markdown(without_sentence(changes))
    text_table(
        without_table(changes), key=f"an_without_{made.id}", label="New score without each retriever", most_rows=20
    )
    st.caption(
        f"NDCG@10 against every valid answer, ×100, {made.headline} average. A {kind} that only this retriever found "
        "no longer counts, nor does a combination that needs it. A run that loses more than the others owes more to "
        "the pool."
    )
    download_menu(
        key=f"an_without_files_{made.id}",
        name=f"equirank-{made.slug}-{made.version}-pool-bias",
        data=lambda: changes,
        table=lambda: without_table(changes),
    )


def bias_sentence(found: PoolBias, kind: str) -> str:
    """How much hangs on single retrievers."""
    count = counted(found.equivalents, f"valid {kind}")
    if found.members.height < 2 or found.only_one is None:
        return f"{count} beside the ground truth."
    return (
        f"**{points(found.only_one)} %** of {count} beside the ground truth were found by a single retriever of the "
        "pool."
    )


def members_table(members: pl.DataFrame) -> pl.DataFrame:
    """A line a retriever, as texts."""
    return pl.DataFrame(
        {
            "Retriever": [model_title(member) for member in members["member"]],
            "Found": [whole(n) for n in members["found"]],
            "Share": [_share(value) for value in members["share"]],
            "Found alone": [whole(n) for n in members["only"]],
            "Share alone": [_share(value) for value in members["only_share"]],
            "Accepted of its results": [_share(value) for value in members["precision"]],
        }
    )


def _share(value: float | None) -> str:
    return NONE if value is None else f"{points(value)} %"


def without_sentence(changes: pl.DataFrame) -> str:
    """The run that loses most."""
    worst = changes.sort("change", "run").row(0, named=True)
    if worst["change"] > -0.0005:
        return "No run's score hangs on a single retriever of the pool."
    verb = "loses most" if changes["run"].n_unique() > 1 else "changes most"
    return (
        f"**{plain(worst['run'])}** {verb}: {points(worst['change'], signed=True)} points without "
        f"{plain(model_title(worst['member']))}."
    )


def without_table(changes: pl.DataFrame) -> pl.DataFrame:
    """A line a run, a column a retriever, as texts."""
    members = changes["member"].unique(maintain_order=True).to_list()
    cells = {(row["run"], row["member"]): row["change"] for row in changes.iter_rows(named=True)}
    whole_scores = dict(changes.select("run", "new").iter_rows())
    runs = sorted(whole_scores, key=lambda run: (-whole_scores[run], run))
    return pl.DataFrame(
        {"Run": runs, "New": [points(whole_scores[run]) for run in runs]}
        | {
            f"without {model_title(member)}": [points(cells.get((run, member)), signed=True) for run in runs]
            for member in members
        }
    )
