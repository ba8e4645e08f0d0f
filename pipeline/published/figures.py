"""Printed figures that are no leaderboard cells: Table 1 of both papers, mean lifts, Tables 4 and 5, facts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from pipeline.published.files import HUNDREDTHS, numbers_in, parse_printed, read_csv
from pipeline.published.records import PublishedFigure
from pipeline.published.remarks import figure_note

#: Column of MFTR's Table 1 → what it counts, and its unit ("" for a text).
_MFTR_TABLE_1 = {
    "queries": ("Queries", "queries"),
    "tools": ("Tools", "tools"),
    "tools_per_query": ("Relevant tools per query", "tools per query"),
    "tool_source": ("Tool source", ""),
}
_FIELDS = ("description", "parameters", "response", "examples")


def _figure(
    key: str, place: str, subject: str, figure: str, printed: str, unit: str, benchmark: str, retriever: str = ""
) -> PublishedFigure:
    return PublishedFigure(
        key=key,
        paper=place.split()[0],
        place=place,
        subject=subject,
        figure=figure,
        value=float(parse_printed(printed, unit in HUNDREDTHS)) if unit else None,
        printed=printed,
        unit=unit,
        note=figure_note(key),
        benchmark=benchmark,
        retriever=retriever,
    )


def _statistics() -> Iterator[PublishedFigure]:
    for row in read_csv("toolex_table1.csv"):
        for slug in ("tooleq", "skilleq"):
            key = f"toolex-table1-{slug}-{row['id']}"
            yield _figure(key, "ToolEX Table 1", "evaluation set", row["figure"], row[slug], row["unit"], slug)
    for row in read_csv("mftr_table1.csv"):
        slug = row["benchmark"]
        for column, (figure, unit) in _MFTR_TABLE_1.items():
            key = f"mftr-table1-{slug}-{column}"
            yield _figure(key, "MFTR Table 1", "dataset", figure, row[column], unit, slug)


def _mean_lifts() -> Iterator[PublishedFigure]:
    """The Δ column of ToolEX: new minus old, averaged over NDCG, Recall and Comp at 10."""
    figure = "mean lift of NDCG, Recall and Comp at 10"
    for row in read_csv("toolex_table2.csv"):
        retriever = row["retriever"]
        key = f"toolex-table2-{row['level']}-{retriever}-{row['domain']}-mean-lift"
        subject = f"{row['domain']}, {row['level']} level"
        yield _figure(key, "ToolEX Table 2", subject, figure, row["mean_lift"], "pp", "tooleq", retriever)
    for row in read_csv("toolex_table3.csv"):
        retriever = row["retriever"]
        key = f"toolex-table3-{retriever}-mean-lift"
        yield _figure(key, "ToolEX Table 3", "all queries", figure, row["mean_lift"], "pp", "skilleq", retriever)


def _mftr_weights() -> Iterator[PublishedFigure]:
    """Table 4: one Gorilla query with BM25. Table 5: weight shares of two retrievers on three datasets."""
    for row in read_csv("mftr_table4.csv"):
        subject, figure = row["subject"], row["figure"]
        key = f"mftr-table4-{subject}-{figure}".lower().replace(" ", "-")
        yield _figure(key, "MFTR Table 4", subject, figure, row["printed"], row["unit"], "mftr-gorilla", "bm25s")
    for row in read_csv("mftr_table5.csv"):
        slug, retriever = row["benchmark"], row["retriever"]
        for name in _FIELDS:
            key = f"mftr-table5-{retriever}-{slug}-{name}"
            yield _figure(key, "MFTR Table 5", name, "learned weight", row[name], "%", slug, retriever)


def _facts() -> Iterator[PublishedFigure]:
    for row in read_csv("facts.csv"):
        numbers = [float(number) for number in numbers_in(row["printed"], row["unit"])]
        single = len(numbers) == 1
        yield PublishedFigure(
            key=row["id"],
            paper=row["paper"],
            place=f"{row['paper']} {row['place']}",
            subject=row["subject"],
            figure=row["figure"],
            value=numbers[0] if single else None,
            values=() if single else tuple(numbers),
            printed=row["printed"],
            unit=row["unit"],
            derived=row["derived"] == "yes",
            note=figure_note(row["id"]),
            benchmark=row["benchmark"],
            retriever=row["retriever"],
        )


@cache
def all_figures() -> tuple[PublishedFigure, ...]:
    """Every figure in reading order, not yet validated."""
    return (*_statistics(), *_mean_lifts(), *_mftr_weights(), *_facts())
