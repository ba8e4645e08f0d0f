"""A run over fields on the whole benchmark: weights, recall by depth, single fields, variants, masked documents."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import streamlit as st

from dashboard import field_reading
from dashboard.charts import change_bars, recall_curves
from dashboard.charts.dumbbell_plot import CONFIG as DUMBBELL
from dashboard.charts.dumbbell_plot import Words, dumbbell_plot
from dashboard.components import permalinks, viewport
from dashboard.components.failures import show, shown_errors
from dashboard.components.figure import draw_chart
from dashboard.components.mftr_words import (
    METHOD_TITLES,
    field_sentence,
    figures_by_row,
    masking_rows,
    masking_sentence,
    penalty_frame,
    unused_fields,
    variant_sentence,
    weight_frame,
    weight_sentence,
)
from dashboard.components.numbers import NONE, points, whole
from dashboard.components.run_detail import text_table
from dashboard.components.theme import ground
from dashboard.components.untrusted import plain
from dashboard.current_site import the_site
from dashboard.field_reading import LabRun
from pipeline import published
from pipeline.jobs import durable
from pipeline.jobs.fields import analysis_requests as field_analysis_requests
from pipeline.jobs.fields.analyses import kinds_of
from pipeline.jobs.job_client import JobState
from store.field_analysis_models import AnalysisKind
from store.records import BenchmarkRecord

PREFIX = "lab_"
METRICS = ("NDCG", "Recall")
_MOST_BARS = 10
_WORDS = Words("one label", "every valid answer", "lift")


def show_whole(record: BenchmarkRecord, run: LabRun) -> None:
    """Draw it."""
    metric = permalinks.segments("Metric", METRICS, PREFIX + "metric", "NDCG", label_visibility="collapsed")
    figure_name = f"{metric}@10"
    st.caption(average_sentence(record))
    narrow = viewport.is_narrow()
    known = field_reading.analyses(run.id)
    _weights(run, record.kind, known.get(AnalysisKind.FIELDS))
    _recall(record, run, narrow)
    missing = [kind for kind in kinds_of(record) if kind is not AnalysisKind.TESTS and kind not in known]
    if missing:
        _ask(run, missing)
    if AnalysisKind.FIELDS in known:
        _fields(run, record.kind, figures_by_row(known[AnalysisKind.FIELDS], metric), figure_name, narrow)
    if AnalysisKind.VARIANTS in known:
        _variants(run, record.kind, figures_by_row(known[AnalysisKind.VARIANTS], metric), figure_name, narrow)
    if AnalysisKind.MASKING in known:
        _masking(run, figures_by_row(known[AnalysisKind.MASKING], metric), figure_name, narrow)
    elif AnalysisKind.MASKING not in kinds_of(record):
        st.caption("Masking takes one key of a JSON document away; skills are Markdown, so there is none for them.")


def average_sentence(record: BenchmarkRecord) -> str:
    """Which mean the page's figures are, and whether the board's is another."""
    said = "All figures on this page are means over queries (micro), as in the MFTR paper."
    if record.headline == "micro":
        return said
    return f"{said} The leaderboard of {plain(record.title)} ranks by the {record.headline} average, which differs."


def _weights(run: LabRun, kind: str, figures: pl.DataFrame | None) -> None:
    """Table 5: how much each field weighs."""
    st.subheader("What did each field come to weigh?", anchor=False)
    learned = field_reading.weights(run)
    if learned is None:
        st.caption("Nothing was learned for this run: its score is the plain mean of the four fields.")
        return
    unused = unused_fields(run.rewritten, figures)
    st.markdown(weight_sentence(learned, kind, unused))
    text_table(
        weight_frame(learned, unused), label="Learned weight of each field and its share, by fold and of the mean"
    )
    part = "the fields in use" if unused else "the four"
    st.caption(
        f"Weight, and in brackets its share of the sum of {part}, as in the MFTR paper's Table 5; where one of these "
        "weights is negative there are no shares. Each fold is ranked by weights learned on the other folds; Mean: of "
        "each weight over the folds, and the shares of these means. Weights multiply scores of different spread, so a "
        "share is no measure of quality."
    )
    with st.expander("What missing parameters cost"):
        st.caption(
            f"A parameter that is wholly missing takes this much off the score of its {kind}. It counts as half "
            "missing where its best argument scores τ, as more below and as less above; α says how sharply."
        )
        text_table(penalty_frame(learned), label="Threshold and charges of missing parameters by fold")
    printed = _printed_shares(run.found.retriever_key)
    if printed is not None:
        with st.expander("As printed in the paper, Table 5"):
            text_table(printed, label="Shares as printed in the MFTR paper's Table 5")


def _printed_shares(retriever: str) -> pl.DataFrame | None:
    """The paper's Table 5 for a retriever: one row a field, one column a dataset."""
    titles = {benchmark.slug: benchmark.title for benchmark in published.benchmarks()}
    cells: dict[str, dict[str, str]] = {}
    for figure in published.figures():
        if figure.place == "MFTR Table 5" and figure.retriever == retriever:
            cells.setdefault(titles.get(figure.benchmark, figure.benchmark), {})[figure.subject] = figure.printed
    if not cells:
        return None
    fields = list(next(iter(cells.values())))
    return pl.DataFrame({"Field": fields} | {name: [of.get(f, NONE) for f in fields] for name, of in cells.items()})


def _recall(record: BenchmarkRecord, run: LabRun, narrow: bool) -> None:
    """Figure 3: recall by depth."""
    st.subheader("How deep does one have to look?", anchor=False)
    curves = field_reading.recall(record, run)
    named = curves.with_columns(pl.col("method").replace(METHOD_TITLES))
    own = METHOD_TITLES.get(run.found.method, run.found.method)
    sentence = recall_sentence(named, own)
    if sentence:
        st.markdown(sentence)
    draw_chart(
        recall_curves.recall_curves(named, own, run.family, ground(), narrow=narrow),
        config=recall_curves.CONFIG,
        key="lab_recall",
        alt=f"Recall at depths of 1 to 100 of {', '.join(named['method'].unique(maintain_order=True))}",
    )
    with st.expander("Data of this chart"):
        wide = named.with_columns(pl.col("view").replace({"old": "one label", "new": "every valid answer"}))
        table = wide.pivot(["method", "view"], index="k", values="recall", maintain_order=True)
        columns = {
            f"{method}, {view}": [points(value) for value in wide.filter(method=method, view=view)["recall"]]
            for method, view in wide.select("method", "view").unique(maintain_order=True).iter_rows()
        }
        text_table(pl.DataFrame({"K": [str(k) for k in table["k"]]} | columns), label="Recall by depth")


def recall_sentence(curves: pl.DataFrame, own: str) -> str:
    """The difference to Full-Doc at a small and a large depth, by every valid answer; empty without Full-Doc."""
    values = {
        (row["method"], row["k"]): row["recall"] for row in curves.filter(view="new").iter_rows(named=True)
    }  # fmt: skip
    if ("Full-Doc", 5) not in values or own == "Full-Doc":
        return ""
    near, far = (values[own, k] - values["Full-Doc", k] for k in (5, 100))
    verb = "more" if near >= 0 else "less"
    return (
        f"In the first 5, {own} finds **{points(abs(near))} points {verb}** of the best valid answer than Full-Doc; in "
        f"the first 100 the difference is {points(far, signed=True)}."
    )


def _ask(run: LabRun, missing: Sequence[AnalysisKind]) -> None:
    """What is missing, how far it is, and how to have it made."""
    words = {"fields": "single fields", "variants": "the ablation", "masking": "masked documents"}
    named = ", ".join(words[kind] for kind in missing)
    site = the_site()
    job = field_analysis_requests.look(site, run.id, missing) if durable.has_jobs(site) else None
    over = job is None or job.state.ended
    st.fragment(_look, run_every=None if over else 2.0)(run, [str(kind) for kind in missing], named, over)


def _look(run: LabRun, kinds: list[str], named: str, over: bool) -> None:
    with shown_errors():
        site = the_site()
        job = field_analysis_requests.look(site, run.id, kinds) if durable.has_jobs(site) else None
        ended = job is None or job.state.ended
        if ended and not over:
            st.rerun()
        if job is not None and not ended:
            reason = f": {job.waiting_for}" if job.waiting_for else ""
            state = "Waiting" if job.state is JobState.WAITING else "A worker is computing"
            st.info(
                f"{state} ({named}){reason}. The charts appear here once it is done.", icon=":material/hourglass_empty:"
            )
            return
        if job is not None and job.failures:
            show(f"Not computed: {'; '.join(job.failures)}")
        st.markdown(
            f"Not computed yet for this run: {named}. Each takes rankings of its own, with a dense model also encoding."
        )
        if st.button("Compute these figures", icon=":material/play_arrow:", key="lab_compute"):
            field_analysis_requests.ask(site, run.id, kinds)
            st.rerun()
        st.markdown("On the command line: `equirank mftr ablate --of fields` (or `variants`, `masking`).")


def _drawn(rows: pl.DataFrame, run: LabRun, kind: str, figure_name: str, narrow: bool, key: str, alt: str) -> None:
    draw_chart(
        dumbbell_plot(
            rows.select(name="label", family=pl.lit(run.family), old="old", new="new"), figure_name, ground(), _WORDS,
            narrow=narrow,
        ),
        config=DUMBBELL,
        key=key,
        alt=alt,
    )  # fmt: skip
    with st.expander("Data of this chart"):
        columns = {
            "": rows["label"].to_list(),
            "one label": [points(value) for value in rows["old"]],
            "every valid answer": [points(value) for value in rows["new"]],
        }
        if rows["tools"].null_count() < rows.height:
            columns[f"{kind}s that have it"] = [NONE if n is None else whole(n) for n in rows["tools"]]
        text_table(pl.DataFrame(columns), label=alt)


def _fields(run: LabRun, kind: str, rows: pl.DataFrame, figure_name: str, narrow: bool) -> None:
    """Figure 4: each field alone."""
    st.subheader("How good is each field alone?", anchor=False)
    st.markdown(field_sentence(rows, figure_name))
    _drawn(rows, run, kind, figure_name, narrow, "lab_fields", f"{figure_name} of each field alone and of all together")


def _variants(run: LabRun, kind: str, rows: pl.DataFrame, figure_name: str, narrow: bool) -> None:
    """Table 3: the parts of MFTR."""
    st.subheader("Which part of MFTR does the work?", anchor=False)
    st.markdown(variant_sentence(rows, figure_name, run.rewritten))
    _drawn(rows, run, kind, figure_name, narrow, "lab_variants", f"{figure_name} of the variants of MFTR")
    printed = _printed_variants(run.found.retriever_key)
    if printed is not None:
        with st.expander("As printed in the paper, Table 3"):
            st.caption("NDCG@10 × 100 with documents and queries of a language model, one label a query.")
            text_table(printed, label="The ablation as printed in the MFTR paper's Table 3")


def _printed_variants(retriever: str) -> pl.DataFrame | None:
    titles = {benchmark.slug: benchmark.title for benchmark in published.benchmarks()}
    labels = {method.key: method.printed[0] for method in published.methods() if method.printed}
    cells: dict[str, dict[str, str]] = {}
    for row in published.rows():
        if row.place == "MFTR Table 3" and row.retriever == retriever:
            name = labels.get(row.method, row.method)
            cells.setdefault(name, {})[titles.get(row.benchmark, row.benchmark)] = points(row.values[0].value)
    if not cells:
        return None
    datasets = list(dict.fromkeys(name for of in cells.values() for name in of))
    return pl.DataFrame(
        {"Variant": list(cells)} | {name: [of.get(name, NONE) for of in cells.values()] for name in datasets}
    )


def _masking(run: LabRun, rows: pl.DataFrame, figure_name: str, narrow: bool) -> None:
    """Figure 1: raw documents without one key."""
    st.subheader("What if a part of the raw document were missing?", anchor=False)
    changes = masking_rows(rows)
    st.markdown(masking_sentence(changes, figure_name))
    draw_chart(
        change_bars.change_bars(most_changed(changes, _MOST_BARS), figure_name, run.family, ground(), narrow=narrow),
        config=change_bars.CONFIG,
        key="lab_masking",
        alt=f"Change of {figure_name} of Full-Doc when one key of every document is left out",
    )
    with st.expander("Data of this chart"):
        text_table(
            pl.DataFrame(
                {
                    "Key left out": changes["name"].to_list(),
                    "one label, %": [points(value, signed=True) for value in changes["old"]],
                    "every valid answer, %": [points(value, signed=True) for value in changes["new"]],
                    "documents that have it": [NONE if n is None else whole(n) for n in changes["tools"]],
                }
            ),
            label="Change when a key is left out",
        )
    left_out = f" The {_MOST_BARS} keys that matter most are drawn." if changes.height > _MOST_BARS else ""
    st.caption(
        f"Full-Doc over raw documents, queries as they were asked; one top-level key left out at a time.{left_out}"
    )


def most_changed(changes: pl.DataFrame, most: int) -> pl.DataFrame:
    """Those rows whose change is greatest by either label, in the order they came in."""
    size = pl.max_horizontal(pl.col("old").abs(), pl.col("new").abs())
    kept = changes.with_row_index("_place").sort(size.fill_null(0.0), descending=True, maintain_order=True).head(most)
    return kept.sort("_place").drop("_place")
