"""MFTR lab: where a rank comes from, field by field, and what each part of the method is worth."""

from __future__ import annotations

import streamlit as st

from dashboard import field_reading, reading
from dashboard.components import permalinks
from dashboard.components.benchmark_choice import choose_version, first_with_queries
from dashboard.components.empty import no_benchmarks
from dashboard.components.failures import shown_errors
from dashboard.components.mftr_query import PREFIX, show_query
from dashboard.components.mftr_whole import show_whole
from dashboard.components.untrusted import plain
from dashboard.field_reading import LabRun
from pipeline.formats.method_labels import method_label, method_title
from store.records import BenchmarkRecord

ONE, ALL = "one query", "all queries"
#: The page starts with the one of so many runs that differs most from Full-Doc.
_MOST_COMPARED = 8


def described(run: LabRun, several: bool) -> str:
    """Model, method and preset, with encoding and who made the fields where that differs."""
    if several:
        return f"{run.found.retriever} · {method_label(run.found.method, run.found.contract)}"
    return f"{run.found.retriever} · {method_title(run.found.method)} {run.found.preset}".strip()


def choose_run(found: dict[str, LabRun]) -> LabRun:
    """A select box of runs over fields; the published MFTR first."""
    names = {run_id: described(run, several=False) for run_id, run in found.items()}
    repeated = {name for name in names.values() if list(names.values()).count(name) > 1}
    said = {run_id: described(run, several=names[run_id] in repeated) for run_id, run in found.items()}
    compared = [run for run in found.values() if run.full_doc and run.found.method == "mftr"][:_MOST_COMPARED]
    first = max(compared, key=field_reading.mean_change).id if compared else next(iter(found))
    return found[
        permalinks.described_select(
            "Model and preset", list(found), PREFIX + "run", first, describe=lambda run_id: said[run_id]
        )
    ]


def nothing_measured(record: BenchmarkRecord) -> None:
    """No run over fields of this benchmark yet."""
    with st.container(border=True):
        st.markdown(
            f"**No MFTR run of {plain(record.title)} is published yet.** It needs no language model: rules put "
            "documents into fields, and each query stands for itself. On a demo benchmark it is measured in the "
            "background after the first start, within minutes."
        )
        st.page_link(
            "pages/evaluate.py",
            label="Evaluate a model with MFTR",
            icon=":material/play_arrow:",
            query_params={"ev_benchmark": record.name, "ev_method": "mftr"},
        )
        # Code in a caption is too pale to read.
        st.markdown("Or on the command line: `equirank retrieve --method mftr --publish`.")


def page() -> None:
    """Draw the page."""
    with st.container(gap="xxsmall"):
        st.title("Where does a rank come from?", anchor=False)
        st.markdown(
            "MFTR compares a query with a tool or skill in four fields, weighs them by what it learned, and charges "
            "for parameters that the query cannot fill. Full-Doc compares the query with the whole document at once."
        )
    records = [record for record in reading.benchmarks() if record.has_content]
    if not records:
        no_benchmarks()
        return
    measured = [record for record in records if field_reading.lab_runs(record)]
    left, right = st.columns(2, gap="small")
    with left:
        benchmark = choose_version(
            records, PREFIX + "benchmark", first_with_queries(measured or records), label="Benchmark"
        )
    found = field_reading.lab_runs(benchmark)
    if not found:
        nothing_measured(benchmark)
        return
    with right:
        run = choose_run(found)
    view = permalinks.segments("Look at", [ONE, ALL], PREFIX + "view", ONE, label_visibility="collapsed")
    if view == ONE:
        show_query(benchmark, run)
    else:
        show_whole(benchmark, run)
    with st.container(horizontal=True, gap="medium"):
        st.page_link(
            "pages/run.py", label="Open this run", icon=":material/open_in_full:", query_params={"run": run.id}
        )
        if run.full_doc:
            st.page_link(
                "pages/compare.py",
                label="Compare with Full-Doc query by query",
                icon=":material/compare_arrows:",
                query_params={"cmp_benchmark": benchmark.name, "cmp_base": run.full_doc, "cmp_tuned": run.id},
            )


with shown_errors():
    page()
