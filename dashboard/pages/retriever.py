"""One retriever: what is known of it, its figures on every benchmark, its relatives, what it costs, all its runs."""

from __future__ import annotations

import polars as pl
import streamlit as st

from dashboard import retriever_reading
from dashboard.charts.dumbbell_plot import CONFIG, dumbbell_plot
from dashboard.components import permalinks, viewport
from dashboard.components.board_table import ROW_HEIGHT, SUB_QUERY_MARK
from dashboard.components.failures import show, shown_errors
from dashboard.components.figure import draw_chart
from dashboard.components.gain_words import pair_sentence, test_sentence
from dashboard.components.numbers import whole
from dashboard.components.query_links import compare_link, explaining_links
from dashboard.components.retriever_tables import (
    asked,
    came_from,
    contract_table,
    cost_table,
    facts,
    figures_table,
    lift_sentence,
    notes,
    runs_table,
)
from dashboard.components.run_detail import facts_table, old_new_table, read_run, text_table
from dashboard.components.theme import ground
from dashboard.components.untrusted import plain, web_address
from dashboard.retriever_reading import ReadRetriever, Standing
from pipeline.formats.figures import significance_note
from store.errors import NotFound

PREFIX = "rt_"
KEY = "retriever"
#: Rows of a table that show before it scrolls.
MOST_ROWS = 12
#: On a phone the figures come right after the benchmark.
_NARROW_ORDER = (
    "Benchmark", "Old", "New", "Lift", "Rank", "Asked with", "Source", "Queries", "Coverage", "Judged@K",
    "Trained on it", "Published",
)  # fmt: skip

#: All columns within a window of 1,280 pixels.
_WIDTHS = {
    "Benchmark": 190, "Asked with": 130, "Source": 110, "Rank": 80, "Old": 64, "New": 64, "Lift": 64, "Queries": 74,
    "Coverage": 80, "Judged@K": 84, "Trained on it": 92, "Published": 90,
}  # fmt: skip


def nobody() -> None:
    """No retriever is named in the address."""
    st.title("No retriever chosen", anchor=False)
    st.markdown("Select a row of the leaderboard and open its retriever, or follow a link to one.")
    permalinks.leaderboard_link(label="To the leaderboard", icon=":material/arrow_back:")


def header(found: ReadRetriever) -> None:
    """Name, one line of facts, links out."""
    record = found.record
    known = dict(facts(found))
    line = [known["Family"], known["Size"], known["Training"], known["Licence"]]
    with st.container(gap="xxsmall"):
        st.title(plain(record.name), anchor=False)
        said = " · ".join(plain(part) for part in line if part and part != "—")
        if said:
            st.caption(said)
    links = [("Website", record.link)]
    if found.entry is not None and found.entry.hf_id:
        links.append(("Model card", f"https://huggingface.co/{found.entry.hf_id}"))
    shown: dict[str, str] = {}
    for label, address in links:
        safe = web_address(address)
        if safe is not None and safe not in shown.values():
            shown[label] = safe
    if shown:
        with st.container(horizontal=True, gap="small"):
            for label, address in shown.items():
                st.link_button(label, address, icon=":material/open_in_new:", key=f"rt_link_{label}")


def no_runs(found: ReadRetriever) -> None:
    """Nothing is published of it."""
    st.info("No run of this retriever is published yet.")
    if found.entry is not None:
        st.page_link(
            "pages/evaluate.py",
            label="Evaluate it on a benchmark",
            icon=":material/play_arrow:",
            query_params={"ev_model": found.record.key},
        )
    st.page_link("pages/submit.py", label="Submit a run of it", icon=":material/upload_file:")


def figure_controls(found: ReadRetriever) -> tuple[str, int]:
    """Metric and cutoff of everything below."""
    metrics, ks = retriever_reading.cutoffs(found)
    metrics, ks = metrics or ["NDCG"], ks or [10]
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        metric = permalinks.segments("Metric", metrics, PREFIX + "metric", metrics[0], label_visibility="collapsed")
        k = permalinks.select(
            "Cutoff K", ks, PREFIX + "k", 10 if 10 in ks else ks[0], format_func=lambda cutoff: f"@{cutoff}",
            label_visibility="collapsed", width=84,
        )  # fmt: skip
    return metric, int(k)


def figures(standing: list[Standing], titles: dict[int, str], metric: str, k: int) -> None:
    """The figures on every benchmark."""
    sentence = lift_sentence(standing, metric, k)
    if sentence:
        st.markdown(sentence)
    table = figures_table(standing, titles)
    order = [name for name in _NARROW_ORDER if name in table.columns] if viewport.is_narrow() else None
    text_table(
        table,
        key="rt_figures",
        label=f"{metric}@{k} on every benchmark, old and new",
        most_rows=MOST_ROWS,
        order=order,
        widths=None if viewport.is_narrow() else _WIDTHS,
    )
    levels = {level for place in standing for level in place.rows["level"].to_list()}
    marked = significance_note(
        [text for place in standing for column in ("old_printed", "new_printed") for text in place.rows[column]]
    )
    st.caption(
        f"{metric}@{k} × 100, each board's own average. Old: against the one annotated answer; new: the best over all "
        "valid answers. A figure printed in a paper, an upload and a measurement here are different evidence and stand "
        "side by side. Trained on it: whether the benchmark was seen in training; never assumed."
        + (f" {marked}" if marked else "")
        + (f" {SUB_QUERY_MARK} asked one need at a time, ranked apart." if "sub-query" in levels else "")
    )


def choose_run(standing: list[Standing], titles: dict[int, str]) -> tuple[Standing, str]:
    """The run that is looked at by domain: at first one with both figures."""
    places = {row["run_id"]: (place, row) for place in standing for row in place.rows.iter_rows(named=True)}
    first = next((run for run, (_, row) in places.items() if row["lift"] is not None), next(iter(places)))

    def describe(run_id: str) -> str:
        place, row = places[run_id]
        return f"{titles[place.benchmark.id]} · {asked(row)} · {came_from(row)}"

    run_id = permalinks.described_select(
        "Run to look at",
        list(places),
        PREFIX + "run",
        first,
        describe=describe,
        label_visibility="collapsed",
        width=520,
    )
    return places[run_id][0], run_id


def by_domain(place: Standing, run_id: str, metric: str, k: int) -> None:
    """One run: its figures over the domains, and the ways to its queries."""
    page = read_run(run_id)
    domains = [domain.name for domain in page.benchmark.domains]
    table = old_new_table(page.summaries, k, domains, page.benchmark.headline)
    if table.is_empty():
        st.caption(f"This run has no figures at K = {k}.")
    else:
        values = page.summaries.filter(
            (pl.col("k") == k) & (pl.col("metric") == metric) & (pl.col("average") == "domain")
        ).pivot("view", on_columns=["old", "new"], index="domain", values="value")
        rows = values.with_columns(
            name=pl.col("domain").replace("", "no domain"), family=pl.lit(page.retriever.family)
        ).sort("new", "domain", descending=[True, False], nulls_last=True)
        if rows.drop_nulls(["old", "new"]).height > 1:
            drawing = dumbbell_plot(rows, f"{metric}@{k}", ground(), narrow=viewport.is_narrow())
            draw_chart(
                drawing, config=CONFIG, key="rt_chart",
                alt=f"Old and new {metric}@{k} of {page.retriever.name} in every domain",
            )  # fmt: skip
            with st.expander("Data of this chart"):
                text_table(table, key="rt_domains", label=f"Figures at K = {k} by domain")
        else:
            text_table(table, key="rt_domains", label=f"Figures at K = {k}")
    links(place, run_id)


def links(place: Standing, run_id: str) -> None:
    """From a run to the pages that explain it."""
    name = place.benchmark.name
    with st.container(horizontal=True, gap="medium"):
        st.page_link("pages/run.py", label="The run", icon=":material/link:", query_params={"run": run_id})
        permalinks.leaderboard_link(
            label="On the leaderboard", icon=":material/leaderboard:",
            query_params={"lb_benchmark": name, "run": run_id},
        )  # fmt: skip
        compare_link(place.benchmark, run_id)
        explaining_links(place.benchmark, read_run(run_id).run)


def relatives(found: ReadRetriever, standing: list[Standing], titles: dict[int, str], metric: str, k: int) -> None:
    """Base and fine-tuned retrievers, and how much of the gain between them is real."""
    if found.base is None and not found.tuned:
        return
    st.subheader("Relatives", anchor=False)
    with st.container(horizontal=True, gap="medium"):
        if found.base is not None:
            st.page_link(
                "pages/retriever.py", label=f"Base: {plain(found.base.name)}", icon=":material/north_west:",
                query_params={KEY: found.base.key},
            )  # fmt: skip
        for tuned in found.tuned:
            st.page_link(
                "pages/retriever.py", label=f"Fine-tuned from it: {plain(tuned.name)}", icon=":material/south_east:",
                query_params={KEY: tuned.key},
            )  # fmt: skip
    gains = retriever_reading.family_gains(standing, metric, k)
    if not gains:
        st.caption(f"No board has a run of both, asked in the same way, with {metric}@{k}.")
    for gain in gains:
        row = gain.table.row(0, named=True)
        with st.container(gap="xxsmall"):
            st.markdown(
                f"{plain(gain.tuned.name)} over {plain(gain.base.name)} on {plain(titles[gain.benchmark.id])}, "
                f"{metric}@{k}: {pair_sentence(row, gain.benchmark.kind, pending=gain.pending)}"
            )
            tested = test_sentence(row)
            if tested:
                st.caption(tested)
            st.page_link(
                "pages/illusion.py", label="Real gain and artifact, by domain", icon=":material/splitscreen:",
                query_params={
                    "ill_benchmark": gain.benchmark.name, "ill_metric": metric, "ill_k": f"@{k}",
                    "ill_runs": "any two runs", "ill_base": gain.base.id, "ill_tuned": gain.tuned.id,
                },
            )  # fmt: skip


def cost(standing: list[Standing], titles: dict[int, str]) -> None:
    """What it cost where it was measured here."""
    table = cost_table(standing, titles)
    if table.is_empty():
        return
    st.subheader("What it costs", anchor=False)
    text_table(table, key="rt_cost", label="Cost of the runs that were measured here")
    measured = next(p for p in standing if p.rows["query_ms"].null_count() < p.rows.height)
    st.page_link(
        "pages/score_and_cost.py", label="Score against cost of all retrievers", icon=":material/scatter_plot:",
        query_params={"cost_benchmark": measured.benchmark.name},
    )  # fmt: skip


def description(found: ReadRetriever) -> None:
    """Facts, remarks, and how it encodes."""
    st.subheader("What is known of it", anchor=False)
    facts_table(facts(found, narrow=viewport.is_narrow()))
    for note in notes(found):
        st.text(note)
    if found.entry is None:
        st.caption("It is not in the registry: how it encodes texts is known only from whoever submitted its runs.")
    elif found.entry.dense:
        st.markdown("**How it encodes**")
        text_table(contract_table(found.entry), key="rt_contract", label="Encoding: prefixes, pooling, similarity")
        st.caption("⏎ is a line break. A run names its preset in brackets after the method.")


def all_runs(found: ReadRetriever, standing: list[Standing], titles: dict[int, str]) -> None:
    """Every published run, older ones too."""
    current = {run for place in standing for run in place.rows["run_id"].to_list()}
    table = runs_table(found, current, titles)
    st.subheader("All its runs", anchor=False)
    st.caption(f"{whole(table.height)} published {'run' if table.height == 1 else 'runs'}. Select one to open it.")
    state = st.dataframe(
        table,
        hide_index=True,
        lazy=False,
        on_select="rerun",
        selection_mode="single-row",
        key="rt_runs",
        column_config={"NDCG": st.column_config.TextColumn(alignment="right")},
        height="content" if table.height <= MOST_ROWS else ROW_HEIGHT * (MOST_ROWS + 1) + 2,
        alt="All published runs of this retriever",
    )
    rows = state["selection"]["rows"]
    if rows and rows[0] < table.height:
        run_id = table["Run"][rows[0]]
        st.page_link("pages/run.py", label=f"Open run {run_id}", icon=":material/link:", query_params={"run": run_id})


def page() -> None:
    """Draw the page."""
    key = st.query_params.get(KEY)
    if not key:
        nobody()
        return
    try:
        found = retriever_reading.retriever(key)
    except NotFound:
        st.title("This retriever cannot be shown", anchor=False)
        show(f"There is no retriever with the key {key}, or nothing of it is published.")
        permalinks.leaderboard_link(label="To the leaderboard", icon=":material/arrow_back:")
        return
    header(found)
    if found.runs.is_empty():
        no_runs(found)
        relatives(found, [], {}, "NDCG", 10)
        description(found)
        return
    metric, k = figure_controls(found)
    standing = retriever_reading.standings(found, metric, k)
    titles = retriever_reading.titles(standing)
    if standing:
        figures(standing, titles, metric, k)
        st.subheader("By domain", anchor=False)
        by_domain(*choose_run(standing, titles), metric, k)
    else:
        # What is published and what stands on a board are read one after the other: a run may go in between.
        st.info("No run of this retriever stands on a board now.")
    relatives(found, standing, titles, metric, k)
    cost(standing, titles)
    all_runs(found, standing, titles)
    description(found)


with shown_errors():
    page()
