"""Downstream studies on a page: do agents pass more tasks with the equivalents that an expansion found?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import streamlit as st

from dashboard.charts.downstream_lanes import CONFIG, downstream_lanes
from dashboard.components import permalinks, viewport
from dashboard.components.downloads import download_menu
from dashboard.components.figure import draw_chart
from dashboard.components.gain_words import LEVEL, p_text, with_interval
from dashboard.components.numbers import day, whole
from dashboard.components.run_detail import text_table
from dashboard.components.theme import ground
from dashboard.components.untrusted import plain
from pipeline.downstream.report import (
    ALL,
    CAVEAT,
    NO_INTERVAL,
    DownstreamReport,
    difference_table,
    rate_table,
    reported_figures,
    reported_table,
)
from pipeline.jobs.downstream import study_report
from store.access import downstream
from store.access.downstream import DownstreamStudyRecord
from store.records import BenchmarkRecord

if TYPE_CHECKING:
    from pipeline.jobs.site import Site

PREFIX = "dn_"
#: Differences that show before the table scrolls.
_MOST_ROWS = 14
#: How the subjects of the paper's figures begin.
_COMMON = "Pass rate, "


def downstream_section(site: Site, record: BenchmarkRecord) -> None:
    """Draw it: the chosen study, what the paper prints, and how to make one.

    Args:
        site: where the studies are.
        record: the benchmark version that is looked at; studies of its other versions, and of none, are offered too.
    """
    st.markdown(
        f"An agent gets the same tasks with different {record.kind}s: the annotated set, a retriever’s best, or an "
        "equivalent combination. What counts is how many tasks it passes."
    )
    with site.database.reading() as session:
        studies = {study.id: study for study in downstream.list_studies(session, slug=record.slug)}
    if studies:
        chosen = permalinks.described_select(
            "Study",
            list(studies),
            PREFIX + "study",
            next(iter(studies)),
            describe=lambda study_id: studies[study_id].label,
            missing="it does not exist, or is of another benchmark",
            stop=False,
        )
        if chosen:
            _study(site, studies[chosen])
    else:
        st.info(f"No study of {record.slug} is stored yet: the three steps below make one.")
    _reported()
    _how_to(record, opened=not studies)


@st.cache_resource(max_entries=32, show_spinner="Comparing the settings")
def _report(place: str, _site: Site, _study: DownstreamStudyRecord, study_id: str) -> DownstreamReport:
    del place, study_id
    return study_report(_site, _study)


def _study(site: Site, study: DownstreamStudyRecord) -> None:
    made = _report(site.database.url, site, study, study.id)
    for sentence in sentences(made):
        st.markdown(sentence)
    draw_chart(
        downstream_lanes(made.rates, made.settings, ground(), all_words=ALL, narrow=viewport.is_narrow()),
        config=CONFIG,
        key=PREFIX + "lanes",
        alt="Pass rates by setting and category",
    )
    with st.expander("Data of this chart"):
        text_table(rate_table(made), key=PREFIX + "rates", label="Pass rates by setting and category")
    if not made.differences.is_empty():
        text_table(difference_table(made), key=PREFIX + "differences", label="Paired differences", most_rows=_MOST_ROWS)
        st.caption(
            "Points over the tasks that both settings have. Gained and lost: tasks that pass only under the first, or "
            "only under the second. p: sign-flip test; Holm: adjusted over the rows."
            + (f" {NO_INTERVAL}." if made.differences["low"].null_count() else "")
        )
        download_menu(
            key=PREFIX + "download",
            name="equirank-downstream",
            data=lambda: made.differences,
            table=lambda: difference_table(made),
        )
    said = [
        f"{whole(study.tasks)} {'task' if study.tasks == 1 else 'tasks'}",
        f"imported {day(study.created_at)}",
        plain(study.note),
    ]
    st.caption(" · ".join(part for part in said if part))
    for note in made.notes:
        st.caption(plain(note[:1].upper() + note[1:]) + ".")
    st.markdown(CAVEAT)


def sentences(made: DownstreamReport) -> list[str]:
    """The last setting against each before it, over all tasks; the finding of a study."""
    if made.differences.is_empty():
        return []
    last = made.settings[-1]
    rows = made.differences.filter(pl.col("category").is_null(), pl.col("setting") == last)
    said = []
    for row in rows.iter_rows(named=True):
        clear = row["p_holm"] < LEVEL
        figure = with_interval(row["difference"], row["low"], row["high"])
        figure += " (no interval)" if row["low"] is None else ""
        verdict = f"p {p_text(row['p_holm'])} after Holm" + ("" if clear else ": this may be chance")
        said.append(
            f"**{plain(last)}** against **{plain(row['baseline'])}**: {figure} points on {whole(row['tasks'])} shared "
            f"{'task' if row['tasks'] == 1 else 'tasks'}, {verdict}."
        )
    return said


def _reported() -> None:
    """The paper's own study: other tasks, so nothing here is set against it by a figure."""
    reported = reported_figures()
    ranges = [figure for figure in reported if figure.unit == "pp"]
    said = "; ".join(f"{figure.subject.removeprefix(_COMMON)}: {figure.printed} points" for figure in ranges)
    st.markdown(f"Reported in the ToolEX paper, on its own tasks, as gains in pass rate: {plain(said)}.")
    with st.expander("Figures as printed"):
        text_table(reported_table(reported), key=PREFIX + "reported", label="Reported figures")
        st.caption("With our remarks. Results by task are not published, so there are no intervals.")


def _how_to(record: BenchmarkRecord, *, opened: bool) -> None:
    with st.expander("Make a study", expanded=opened):
        st.markdown(
            "1. Write one task file a setting, in ToolBench’s shape.\n"
            "2. Run your agent on each, and let your judge say what passed.\n"
            "3. Import one table with the columns task, category, setting and passed."
        )
        st.code(how_to(record.name), language="shell", wrap_lines=True)


def how_to(name: str) -> str:
    """The commands, for this benchmark version."""
    return "\n".join(
        [
            f"equirank downstream export -b {name} --setting oracle --out oracle.json",
            f"equirank downstream export -b {name} --setting retriever --run RUN --k 5 --out retriever.json",
            f"equirank downstream export -b {name} --setting expanded --out expanded.json",
            f'equirank downstream import results.csv --label "Agent, date" -b {name}',
        ]
    )
