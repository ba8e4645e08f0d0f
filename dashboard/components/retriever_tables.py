"""What is known of a retriever, as tables of texts. Pure functions, no widgets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import polars as pl

from dashboard.components.board_table import SUB_QUERY_MARK
from dashboard.components.cost import COSTS
from dashboard.components.numbers import NONE, day, decimals_of, figure_text, points, size, whole
from dashboard.retriever_reading import ReadRetriever, Standing
from pipeline.formats.method_labels import method_label
from pipeline.retrieval.contract import Preset
from pipeline.retrieval.registry import RetrieverEntry, Source

_COMMIT = re.compile(r"[0-9a-f]{40}")
_SOURCES = {
    Source.BM25: "computed here, no weights",
    Source.PACKAGE: "weights from a Python package",
    Source.HUB: "weights from the Hugging Face hub",
    Source.FOLDER: "a folder of the worker's machine",
    Source.ENDPOINT: "an endpoint for embeddings",
}


def asked(row: dict[str, Any]) -> str:
    """How the retriever was asked in a run: method and what differs from the usual; a mark for sub-query level."""
    method = method_label(row["method"], row["contract"] or "")
    return method + (f" {SUB_QUERY_MARK}" if row["level"] == "sub-query" else "")


def came_from(row: dict[str, Any]) -> str:
    """Where a run's figures come from: the place in a paper, ``uploaded`` or ``measured``."""
    return str(row["place"] if row["provenance"] == "reported" and row["place"] else row["provenance"])


def figures_table(standing: Sequence[Standing], titles: dict[int, str]) -> pl.DataFrame:
    """One row a run that stands on a board now.

    Args:
        standing: of ``retriever_reading.standings``.
        titles: what a benchmark version is called, by its id.
    """
    rows = []
    for place in standing:
        for row in place.rows.iter_rows(named=True):
            reported = row["provenance"] == "reported"
            decimals = decimals_of(row["old_printed"], row["new_printed"])
            rows.append(
                {
                    "Benchmark": titles[place.benchmark.id],
                    "Asked with": asked(row),
                    "Source": came_from(row),
                    "Rank": NONE if row["rank"] is None else f"{row['rank']} of {row['ranked']}",
                    "Old": figure_text(row["old"], row["old_printed"]),
                    "New": figure_text(row["new"], row["new_printed"]),
                    "Lift": points(row["lift"], decimals, signed=True),
                    "Queries": whole(row["n"]),
                    "Coverage": _percent(row["coverage"]),
                    "Judged@K": _percent(row["judged"]),
                    "Trained on it": row["trained_on_benchmark"],
                    "Published": NONE if reported else day(row["published_at"]),
                }
            )
    frame = pl.DataFrame(rows)
    # What no row can have says nothing.
    empty = [name for name in ("Coverage", "Judged@K", "Published") if set(frame[name].to_list()) == {NONE}]
    return frame.drop(empty)


def _percent(share: float | None) -> str:
    return NONE if share is None else points(share, 0 if share == 1 else 1) + " %"


def runs_table(found: ReadRetriever, current: set[str], titles: dict[int, str]) -> pl.DataFrame:
    """Every published public run, newest first; ``current`` ones are rows of a board."""
    rows = [
        {
            "Published": NONE if row["provenance"] == "reported" else day(row["published_at"]),
            "Benchmark": titles.get(row["benchmark_version_id"], row["benchmark"]),
            "Asked with": asked(row),
            "Source": came_from(row),
            "NDCG": _old_new(row),
            "On the board": "now" if row["run_id"] in current else "replaced by a newer run",
            "Run": row["run_id"],
        }
        for row in found.runs.iter_rows(named=True)
    ]
    return pl.DataFrame(rows)


def _old_new(row: dict[str, Any]) -> str:
    if row["k"] is None:
        return NONE
    if row["new"] is None:
        return f"{points(row['old'])} (@{row['k']})"
    return f"{points(row['old'])} → {points(row['new'])} (@{row['k']})"


def cost_table(standing: Sequence[Standing], titles: dict[int, str]) -> pl.DataFrame:
    """What its runs cost that were measured here; one row a run, empty where none was."""
    measured = [COSTS[key] for key in ("encoding", "query", "index")]
    rows = []
    for place in standing:
        for row in place.rows.iter_rows(named=True):
            if all(row[cost.column] is None for cost in measured):
                continue
            costs = {
                cost.title: NONE if row[cost.column] is None else cost.write(row[cost.column] / cost.scale)
                for cost in measured
            }
            rows.append(
                {"Benchmark": titles[place.benchmark.id], "Asked with": asked(row)}
                | costs
                | {"Measured on": row["device"] or NONE}
            )
    return pl.DataFrame(rows)


def facts(found: ReadRetriever, *, narrow: bool = False) -> list[tuple[str, str]]:
    """What the registry and the papers say of it, in words; unknown things are empty.

    Args:
        found: the retriever.
        narrow: shorten a commit to the digits that fit on a phone: a table does not break words.
    """
    record, entry = found.record, found.entry
    training = {True: "fine-tuned", False: "base model", None: ""}[record.fine_tuned]
    base = found.base.name if found.base is not None else record.base_key
    if base and record.fine_tuned is not False:
        training = f"fine-tuned from {base}"
    known = [
        ("Family", record.family),
        ("Size", size(record.parameters)),
        ("Dimension", whole(record.dimension)),
        ("Training", training),
        ("Weights", {True: "open", False: "closed", None: ""}[record.open_weights]),
        ("Licence", record.licence),
    ]
    if entry is not None:
        revision = entry.revision[:12] if narrow and _COMMIT.fullmatch(entry.revision) else entry.revision
        pinned = revision if entry.pinned else "not pinned: the same name may come to mean other weights"
        known += [
            ("Comes from", _SOURCES[entry.source]),
            ("Hub id", entry.hf_id),
            ("Revision", pinned),
            ("Also called", ", ".join(entry.aliases)),
        ]
    return [*known, ("Key", record.key)]


def notes(found: ReadRetriever) -> list[str]:
    """Remarks on the retriever, each said once."""
    said = [found.record.notes, found.entry.notes if found.entry is not None else ""]
    return [note for note in dict.fromkeys(said) if note]


def contract_table(entry: RetrieverEntry) -> pl.DataFrame:
    """How it encodes: a row a setting, a column a preset; one column where the presets do not differ."""
    columns = {preset: _contract(entry, preset) for preset in (Preset.CARD, Preset.PAPER)}
    card, paper = columns[Preset.CARD], columns[Preset.PAPER]
    table = {"Setting": list(card), "As the model card says": list(card.values())}
    if card != paper:
        table["As the papers did"] = [paper[name] for name in card]
    return pl.DataFrame(table)


def _contract(entry: RetrieverEntry, preset: Preset) -> dict[str, str]:
    how = entry.encoding(preset)
    return {
        "Query": _one_line(how.query),
        "Query with an instruction": _one_line(how.query_with_instruction),
        "Document": _one_line(how.document),
        "Pooling": str(how.pooling or NONE).replace("lasttoken", "last token")
        + ("" if how.prompt_pooled else ", without the prefix"),
        "Normalised": "yes" if how.normalise else "no",
        "Similarity": str(how.similarity),
        "Number format": str(how.dtype),
        "Longest text": "as the repository says" if how.max_tokens is None else f"{whole(how.max_tokens)} tokens",
    }


def _one_line(template: str) -> str:
    return template.replace("\n", " ⏎ ")


def lift_sentence(standing: Sequence[Standing], metric: str, k: int) -> str:
    """What every valid answer changes for it, in one sentence of Markdown; empty where no row has both figures."""
    both = [
        row
        for place in standing
        for row in place.rows.iter_rows(named=True)
        if row["lift"] is not None and row["level"] == "query"
    ]
    if not both:
        return ""
    least, most = min(row["lift"] for row in both), max(row["lift"] for row in both)
    boards = sum(
        1 for place in standing if place.rows.filter(pl.col("lift").is_not_null() & (pl.col("level") == "query")).height
    )
    where = "on the one benchmark" if boards == 1 else f"on the {boards} benchmarks"
    gained = (
        f"**{points(most)} points**"
        if points(least) == points(most)
        else f"**{points(least)} to {points(most)} points**"
    )
    return f"Counting every valid answer lifts its {metric}@{k} by {gained} {where} where both figures are known."
