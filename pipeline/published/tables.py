"""Leaderboard cells of both papers' tables, as rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from operator import itemgetter
from typing import Literal, get_args

from pipeline.published.catalogue import retrievers
from pipeline.published.files import DASH, parse_printed, read_csv
from pipeline.published.records import Averaged, Level, Metric, PublishedRow, PublishedValue, View
from pipeline.published.remarks import cell_note, row_notes

#: The one cutoff both papers report.
K = 10
_METRICS: tuple[Metric, ...] = get_args(Metric)
_VIEWS: tuple[View, ...] = get_args(View)
_SIGNIFICANT = "†"
#: Column prefix of MFTR's tables; the benchmark is ``mftr-<prefix>``.
_DATASETS = ("toolbench", "apigen", "apibank", "gorilla", "toolink", "mixed")


@dataclass(frozen=True)
class _Place:
    """Where cells are read from: which row they form, and so which remarks they carry."""

    place: str
    benchmark: str
    retriever: str
    method: str
    level: Level
    unit: Literal["%", ""]

    @property
    def fields(self) -> dict[str, str]:
        names = ("place", "benchmark", "retriever", "method", "level")
        return {name: getattr(self, name) for name in names}

    def cell(self, view: View, metric: Metric, average: Averaged, domain: str, text: str) -> PublishedValue:
        printed = text.removesuffix(_SIGNIFICANT)
        return PublishedValue(
            view=view,
            metric=metric,
            k=K,
            average=average,
            domain=domain,
            value=None if printed == DASH else float(parse_printed(printed, self.unit == "%")),
            printed=printed,
            unit=self.unit,
            note=self._note(view, metric, average, domain),
            mark=text[len(printed) :],
        )

    def macro(self, view: View, metric: Metric, cells: list[PublishedValue]) -> PublishedValue:
        # Summed as printed decimals, so that the mean is rounded to a float once.
        exact = sum((parse_printed(cell.printed, self.unit == "%") for cell in cells), Decimal(0)) / len(cells)
        return PublishedValue(
            view=view,
            metric=metric,
            k=K,
            average="macro",
            domain="",
            value=float(exact),
            printed="",
            unit=self.unit,
            note=self._note(view, metric, "macro", ""),
            computed=True,
        )

    def row(self, values: list[PublishedValue]) -> PublishedRow:
        contamination = {retriever.key: retriever.contamination(self.benchmark) for retriever in retrievers()}
        return PublishedRow(
            benchmark=self.benchmark,
            retriever=self.retriever,
            method=self.method,
            level=self.level,
            place=self.place,
            notes=row_notes(self.fields),
            values=tuple(values),
            contamination=contamination.get(self.retriever, "unknown"),
        )

    def _note(self, view: View, metric: Metric, average: Averaged, domain: str) -> str:
        return cell_note(self.fields, {"metric": metric, "view": view, "domain": domain, "average": average})


def toolex_table_2() -> Iterator[PublishedRow]:
    """ToolEq: three domains a row as printed, plus their macro mean. No average over queries is printed."""
    for (level, retriever), group in groupby(read_csv("toolex_table2.csv"), key=itemgetter("level", "retriever")):
        domains = list(group)
        place = (
            _Place("ToolEX Table 2", "tooleq", retriever, "sub-query", "sub-query", "%")
            if level == "sub-query"
            else _Place("ToolEX Table 2", "tooleq", retriever, "full-doc", "query", "%")
        )
        values: list[PublishedValue] = []
        for metric in _METRICS:
            for view in _VIEWS:
                column = f"{metric.lower()}_{view}"
                cells = [place.cell(view, metric, "domain", line["domain"], line[column]) for line in domains]
                values += [*cells, place.macro(view, metric, cells)]
        yield place.row(values)


def toolex_table_3() -> Iterator[PublishedRow]:
    """SkillEq: means over queries."""
    for line in read_csv("toolex_table3.csv"):
        place = _Place("ToolEX Table 3", "skilleq", line["retriever"], "full-doc", "query", "%")
        yield place.row(
            [
                place.cell(view, metric, "micro", "", line[f"{metric.lower()}_{view}"])
                for metric in _METRICS
                for view in _VIEWS
            ]
        )


def _mftr(name: str, table: str) -> Iterator[PublishedRow]:
    """One row a retriever, method and dataset; means over queries against the one label of each."""
    for line in read_csv(name):
        for dataset in _DATASETS:
            printed = {m: text for m in _METRICS if (text := line.get(f"{dataset}_{m.lower()}")) is not None}
            if printed:
                place = _Place(table, f"mftr-{dataset}", line["retriever"], line["method"], "query", "")
                yield place.row([place.cell("old", m, "micro", "", text) for m, text in printed.items()])


def mftr_table_2() -> Iterator[PublishedRow]:
    """Five methods on six datasets; a dash (OnlineRAG with BM25) is a value of None."""
    return _mftr("mftr_table2.csv", "MFTR Table 2")


def mftr_table_3() -> Iterator[PublishedRow]:
    """The ablation in full, with the Full-Doc and MFTR rows that repeat Table 2."""
    return _mftr("mftr_table3.csv", "MFTR Table 3")
