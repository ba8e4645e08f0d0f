"""What became of a run file: how it was read, what to mend, and its scores; for the page where it is dropped."""

from __future__ import annotations

import polars as pl
import streamlit as st

from dashboard.components import permalinks
from dashboard.components.numbers import points, whole
from dashboard.components.run_detail import old_new_table, rounding_note, text_table
from pipeline.formats.flag_words import flag_words
from pipeline.jobs.submission import CheckedRun
from pipeline.run import RunReport, Verdict

_VERDICTS = {
    Verdict.ACCEPT: ("accepted as it is", "green", ":material/check_circle:"),
    Verdict.NORMALISE: ("accepted after small repairs", "green", ":material/check_circle:"),
    Verdict.REFUSE: ("refused; nothing is stored", "red", ":material/cancel:"),
}
_COUNTS = {"lines": "lines", "queries": "queries", "depth": "results for the longest list"}


def show_reading(report: RunReport) -> None:
    """Format, verdict, counts, problems with their lines, notes and flags."""
    words, colour, icon = _VERDICTS[report.verdict]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.badge(words, color=colour, icon=icon)  # type: ignore[arg-type]
        counts = ", ".join(
            f"{whole(report.counts[key])} {what}" for key, what in _COUNTS.items() if key in report.counts
        )
        read_as = f"Read as {report.format}" if report.format else "Not a format known here"
        st.text(f"{read_as}: {counts}." if counts else f"{read_as}.")
    if report.problems:
        shown = len(report.problems)
        more = f"; {_shown_of(shown)}" if report.problem_count > shown else ""
        number = max(report.problem_count, shown)
        st.markdown(f"**{whole(number)} {'problem' if number == 1 else 'problems'} to mend**{more}")
        with st.container(gap="xxsmall", key="submit_problems"):
            for problem in report.problems:
                said = problem.line is None or problem.message.startswith("line ")
                st.text(problem.message if said else f"line {problem.line}: {problem.message}")
    flags = flag_words(report.flags)
    with st.container(gap="xxsmall"):
        for note in report.notes:
            st.text(f"Note: {note}")
        if flags:
            st.text("Flags: " + ", ".join(flags))


def _shown_of(shown: int) -> str:
    return "one line stands for all of them" if shown == 1 else f"the first {whole(shown)} are listed"


def show_scores(checked: CheckedRun) -> None:
    """Old and new scores of a checked run at a chosen K, with the main result in words."""
    summary, version = checked.summary, checked.version
    if summary is None:
        return
    ks = sorted(set(summary["k"].to_list()))
    first = 10 if 10 in ks else ks[0]
    k = permalinks.segments(
        "Cutoff K", ks, "submit_k", first, format_func=lambda cutoff: f"@{cutoff}", label_visibility="collapsed"
    )
    st.markdown(sentence(summary, int(k), version.headline))
    frame = old_new_table(summary, int(k), [domain.name for domain in version.domains], version.headline)
    text_table(frame, key="submit_scores", label=f"Old and new scores at K = {k}")
    note = rounding_note(frame)
    if note:
        st.caption(note)
    if "partial" in checked.reading.report.flags:
        st.caption("Fewer than half of the queries are answered: the run is scored, marked partial, and not ranked.")


def sentence(summary: pl.DataFrame, k: int, headline: str) -> str:
    """The main result: ``NDCG@10: 12.3 → 45.6``."""
    rows = summary.filter(pl.col("metric") == "NDCG", pl.col("k") == k, pl.col("average") == headline)
    values = dict(zip(rows["view"], rows["value"], strict=True))
    old, new = values.get("old"), values.get("new")
    if old is None or new is None:
        return ""
    if new == old:
        return f"**NDCG@{k}: {points(old)}** ({headline} average). Valid answers beyond the label change nothing."
    return (
        f"**NDCG@{k}: {points(old)} → {points(new)}** ({headline} average). One label a query hides "
        f"{points(new - old)} points of this run."
    )
