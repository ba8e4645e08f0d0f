"""Methods beside each other on every dataset, as the MFTR paper's Table 2 lays them out: reported and measured rows."""

from __future__ import annotations

from typing import Any

import polars as pl
import streamlit as st

from dashboard import reading
from dashboard.components import permalinks
from dashboard.components.downloads import download_menu
from dashboard.components.mftr_words import METHOD_TITLES
from dashboard.components.numbers import NONE, points, whole
from dashboard.components.run_detail import text_table
from dashboard.components.untrusted import plain
from pipeline.scoring.method_comparison import gains_over_baseline, mean_gains

PREFIX = "lb_mt_"
LABELS = {"one label": "old", "every valid answer": "new"}
#: Below this an unadjusted test gets the paper's mark.
_LEVEL = 0.05
_SHORT = {"NDCG": "N@10", "Recall": "R@10"}

_CSS = """
.scroll { overflow-x: auto; font-family: var(--st-font); color: var(--st-text-color); }
.scroll:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 2px; }
table { border-collapse: collapse; font-size: 0.875rem; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { padding: 0.28rem 0.55rem; text-align: right; font-weight: 400; }
thead th { font-weight: 600; border-bottom: 1px solid var(--st-border-color); }
thead tr:first-child th { text-align: center; border-bottom: none; }
th.name, th.method, thead tr:first-child th.name, thead tr:first-child th.method { text-align: left; }
thead tr:first-child th.name, thead tr:first-child th.method { vertical-align: bottom;
  border-bottom: 1px solid var(--st-border-color); }
th.name { font-weight: 650; vertical-align: top; position: sticky; left: 0; background: var(--st-background-color);
  max-width: 9rem; white-space: normal; }
thead tr:first-child th.name { vertical-align: bottom; }
tbody.group { border-bottom: 1px solid var(--st-border-color); }
td strong { font-weight: 700; }
td u { text-underline-offset: 3px; }
.first { padding-left: 1.1rem; }
.setting { display: block; font-size: 0.75rem; opacity: 0.8; white-space: normal; min-width: 11rem; }
.test { display: block; font-size: 0.75rem; opacity: 0.8; }
@media (max-width: 640px) {
  .setting { min-width: 6.5rem; }
  th, td { padding: 0.28rem 0.35rem; }
  th.name { max-width: 5rem; }
}
"""

_SCRIPT = """
export default function ({ data, parentElement }) {
  const make = (tag, name, text) => {
    const made = document.createElement(tag);
    if (name) made.className = name;
    if (text !== undefined && text !== "") made.textContent = text;
    return made;
  };
  const scroll = make("div", "scroll");
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", data.label);
  const table = make("table");
  const head = make("thead"), top = make("tr"), below = make("tr");
  for (const word of ["Model", "Method"]) {
    const cell = make("th", word === "Model" ? "name" : "method", word);
    cell.rowSpan = 2; cell.scope = "col"; top.append(cell);
  }
  for (const dataset of data.datasets) {
    const cell = make("th", "first", dataset.title);
    cell.colSpan = dataset.metrics.length; cell.scope = "colgroup"; top.append(cell);
    dataset.metrics.forEach((metric, i) => {
      const under = make("th", i ? "" : "first", metric); under.scope = "col"; below.append(under);
    });
  }
  head.append(top, below);
  table.append(head);
  for (const group of data.groups) {
    const body = make("tbody", "group");
    group.rows.forEach((row, i) => {
      const line = make("tr");
      if (!i) {
        const name = make("th", "name", group.name);
        name.rowSpan = group.rows.length; name.scope = "rowgroup"; line.append(name);
      }
      const method = make("th", "method", row.method);
      method.scope = "row";
      if (row.setting) method.append(make("span", "setting", row.setting));
      line.append(method);
      row.cells.forEach((cell, j) => {
        const box = make("td", j % 2 ? "" : "first");
        const value = cell.place === 1 ? make("strong", "", cell.text)
          : cell.place === 2 ? make("u", "", cell.text) : make("span", "", cell.text);
        box.append(value);
        if (cell.mark) box.append(make("sup", "", cell.mark));
        if (cell.test) box.append(make("span", "test", cell.test));
        line.append(box);
      });
      body.append(line);
    });
    table.append(body);
  }
  scroll.append(table);
  const before = parentElement.querySelector(".scroll");
  if (before) before.replaceWith(scroll); else parentElement.append(scroll);
}
"""


def show_method_table() -> None:
    """Draw controls, sentence, table and what stands under it."""
    every = reading.method_board()
    if every.is_empty():
        st.info("No run of MFTR or of one of its rivals is published yet: evaluate a model with one of them.")
        return
    titles = dict(every.select("dataset", "title").unique("dataset", maintain_order=True).iter_rows())
    names = dict(every.select("retriever_key", "retriever").unique("retriever_key", maintain_order=True).iter_rows())
    ordered = _dataset_order(every, titles)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        label = permalinks.segments("Scored against", list(LABELS), PREFIX + "labels", "one label")
        datasets = permalinks.several("Datasets", ordered, PREFIX + "data", placeholder="all", width=300)
        retrievers = permalinks.several("Models", list(names), PREFIX + "model", placeholder="all", width=300)
    view = LABELS[label]
    shown = every.filter(
        pl.col("view") == view,
        pl.col("dataset").is_in(datasets or ordered),
        pl.col("retriever_key").is_in(retrievers or list(names)),
    )
    # The paper's claims are about one label.
    for sentence in golden_sentences(every) if view == "old" else ():
        st.markdown(sentence)
    rows = with_values(shown)
    if rows.is_empty():
        st.info(
            "No figure here counts every valid answer: the paper’s benchmarks have one label a query. Runs measured on "
            "a benchmark with equivalents do."
            if view == "new"
            else "No figure is known for this choice. Clear a filter to see the others."
        )
        return
    kept = [name for name in ordered if name in set(rows["dataset"])]
    data = table_data(rows, kept, titles, names)
    _component()(key="lb_method_table", data=data)
    st.caption(reading_line(rows))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        download_menu(
            key="lb_mt_download",
            name=f"equirank-methods-{view}",
            data=lambda: rows,
            table=lambda: flat_table(data),
        )
        st.page_link("pages/mftr_lab.py", label="MFTR field by field", icon=":material/view_column:")
    _gains(every, view, kept, titles)


def with_values(cells: pl.DataFrame) -> pl.DataFrame:
    """Rows (retriever, method, source, setting) that have any figure."""
    row = ["retriever_key", "method", "source", "setting"]
    # OnlineRAG is not defined for BM25: the paper prints a row of dashes, and so does this table beside other figures.
    printed = (pl.col("source") == "reported") & (pl.col("view") == "old")
    return cells.filter((pl.col("value").is_not_null() | printed).any().over(row))


def _dataset_order(cells: pl.DataFrame, titles: dict[str, str]) -> list[str]:
    """The paper's datasets in its order, then others."""
    printed = cells.filter(pl.col("source") == "reported")["dataset"].unique(maintain_order=True).to_list()
    return printed + [name for name in titles if name not in printed]


def table_data(
    rows: pl.DataFrame, datasets: list[str], titles: dict[str, str], names: dict[str, str]
) -> dict[str, Any]:
    """What the script draws."""
    groups = []
    metrics = list(_SHORT)
    for key in rows["retriever_key"].unique(maintain_order=True):
        of = rows.filter(pl.col("retriever_key") == key)
        lines = []
        for method, source, setting in of.select("method", "source", "setting").unique(maintain_order=True).iter_rows():
            own = of.filter(pl.col("method") == method, pl.col("source") == source, pl.col("setting") == setting)
            cells = {(row["dataset"], row["metric"]): row for row in own.iter_rows(named=True)}
            lines.append(
                {
                    "method": METHOD_TITLES.get(method, method),
                    "setting": "" if source == "reported" else f"{source}, {setting}" if setting else source,
                    "cells": [_cell(cells.get((dataset, metric))) for dataset in datasets for metric in metrics],
                }
            )
        groups.append({"name": names[key], "rows": lines})
    return {
        "label": "Methods on every dataset, as the MFTR paper's Table 2",
        "datasets": [{"title": titles[name], "metrics": list(_SHORT.values())} for name in datasets],
        "groups": groups,
    }


def _cell(row: dict[str, Any] | None) -> dict[str, Any]:
    if row is None or row["value"] is None:
        return {"text": NONE, "place": 0, "mark": "", "test": ""}
    return {
        "text": points(row["value"], 2),
        "place": 1 if row["best"] else 2 if row["second"] else 0,
        "mark": "†" if significant(row) else "",
        "test": "" if row["p_holm"] is None else f"Holm {p_text(row['p_holm'])}",
    }


def significant(row: dict[str, Any]) -> bool:
    """Whether a cell carries the †: as printed, or a measured gain with p below 5 %, unadjusted as in the paper."""
    if row["source"] == "reported":
        return "†" in row["printed"]
    return row["p"] is not None and row["p"] < _LEVEL and row["value"] > row["rival_value"]


def p_text(p: float) -> str:
    """``p .003``; ``p < .001`` below that."""
    return "p < .001" if p < 0.001 else "p " + f"{p:.3f}".removeprefix("0")


def reading_line(rows: pl.DataFrame) -> str:
    """How to read the table."""
    parts = [
        "NDCG@10 and Recall@10 × 100, means over queries. **Bold**: best, underlined: second, per model, dataset and "
        "metric, reported and measured rows each among themselves; measured rows may differ in who wrote the fields."
    ]
    if rows.filter(pl.col("source") == "reported").height:
        parts.append(
            "Reported: MFTR Table 2 as printed, with the paper’s own †: significant over its strongest baseline, "
            "p < .05, unadjusted."
        )
    if rows["p"].null_count() < rows.height:
        tests = rows["p"].count()
        parts.append(
            "Measured: † where MFTR beats its strongest baseline here with p < .05 in a two-sided sign-flip test over "
            f"queries, unadjusted as in the paper; under it p after Holm’s adjustment over all such tests of this view "
            f"({whole(tests)} are shown), also where MFTR loses."
        )
    return " ".join(parts)


def golden_sentences(cells: pl.DataFrame) -> list[str]:
    """What the paper claims of its table, computed from the reported rows; empty without them."""
    reported = cells.filter(pl.col("source") == "reported", pl.col("view") == "old")
    gains = gains_over_baseline(reported)
    one = gains.filter(retriever_key="minilm-l6", dataset="gorilla", metric="Recall")
    general = general_models(reported)
    means = {
        (row["dataset"], row["metric"]): row["gain"]
        for row in mean_gains(gains.filter(pl.col("retriever_key").is_in(general))).iter_rows(named=True)
    }
    if one.is_empty() or ("mixed", "Recall") not in means:
        return []
    best = one.row(0, named=True)
    return [
        f"**Reported: over the best baseline of each of the {whole(len(general))} general models, MFTR gains "
        f"{_percent(means['apigen', 'NDCG'])} on APIGen (NDCG@10) and {_percent(means['mixed', 'NDCG'])} and "
        f"{_percent(means['mixed', 'Recall'])} on Mixed (NDCG@10, Recall@10)**, means of ratios. The paper’s example: "
        f"{plain(best['retriever'])} on Gorilla, Recall@10 {points(best['baseline_value'])} with "
        f"{METHOD_TITLES[best['baseline']]} to {points(best['value'])}, {_percent(best['gain'])}."
    ]


def general_models(cells: pl.DataFrame) -> list[str]:
    """Retrievers that were not fine-tuned for tools."""
    general: list[str] = cells.filter(pl.col("fine_tuned").fill_null(False).not_())["retriever_key"].unique().to_list()
    return sorted(general)


def _percent(gain: float | None) -> str:
    return NONE if gain is None else f"{points(gain, 2, signed=True)} %"


def _gains(cells: pl.DataFrame, view: str, datasets: list[str], titles: dict[str, str]) -> None:
    """Mean gain over the strongest baseline by dataset."""
    shown = cells.filter(pl.col("view") == view, pl.col("dataset").is_in(datasets))
    gains = gains_over_baseline(shown).filter(pl.col("retriever_key").is_in(general_models(shown)))
    if gains.is_empty():
        return
    with st.expander("Gain over the strongest baseline, by dataset"):
        st.caption(
            "MFTR over the best baseline of the same model, minus 1; mean over the general models (those not trained "
            "for tools). Measured: the first setting of MFTR in the table."
        )
        rows: dict[tuple[str, str], dict[str, str]] = {}
        for row in mean_gains(gains).iter_rows(named=True):
            cell = rows.setdefault((row["dataset"], row["source"]), {"models": whole(row["retrievers"])})
            cell[row["metric"]] = _percent(row["gain"])
        text_table(
            pl.DataFrame(
                [
                    {
                        "Dataset": titles[dataset],
                        "Source": source,
                        "NDCG@10": cell.get("NDCG", NONE),
                        "Recall@10": cell.get("Recall", NONE),
                        "models": cell["models"],
                    }
                    for (dataset, source), cell in rows.items()
                ]
            ),
            label="Mean gain of MFTR over the strongest baseline",
        )


def flat_table(data: dict[str, Any]) -> pl.DataFrame:
    """The table with one header line, for Markdown and LaTeX."""
    columns = [f"{dataset['title']} {metric}" for dataset in data["datasets"] for metric in dataset["metrics"]]
    rows = []
    for group in data["groups"]:
        for line in group["rows"]:
            method = f"{line['method']} ({line['setting']})" if line["setting"] else line["method"]
            cells = [f"{cell['text']}{cell['mark']}" for cell in line["cells"]]
            rows.append((group["name"], method, *cells))
    return pl.DataFrame(rows, schema=["Model", "Method", *columns], orient="row")


@st.cache_resource
def _component() -> Any:
    return st.components.v2.component("method_table", css=_CSS, js=_SCRIPT)
