"""Remove one top-level field of every raw document and search again (MFTR paper, Figure 1)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from pipeline.baselines.raw_fields import json_object
from pipeline.benchmark import Benchmark, Kind
from pipeline.errors import UsageError
from pipeline.retrieval.contract import Preset
from pipeline.retrieval.documents import documents_in_order
from pipeline.retrieval.embedding_cache import EmbeddingCache
from pipeline.retrieval.models import ModelSpec
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.retrieval.retrieve import Method, retrieval_texts, search_texts
from pipeline.run import Run
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.kernel import METRICS, evaluate

#: Columns of ``masking_frame``.
MASKING_COLUMNS: dict[str, pl.DataType] = {
    "field": pl.String(),
    "tools": pl.Int64(),
    "full": pl.Float64(),
    "masked": pl.Float64(),
    "change_percent": pl.Float64(),
}
_CUTOFF = 10


@dataclass(frozen=True, eq=False)
class MaskedRun:
    """A run over documents that lack one field.

    Attributes:
        field: the key that was removed.
        tools: documents that had it.
        run: the ranking.
    """

    field: str
    tools: int
    run: Run


def top_level_fields(documents: Sequence[str]) -> dict[str, int]:
    """The top-level keys of the documents that are JSON objects, the most frequent first, and how many have each."""
    counts: Counter[str] = Counter()
    for text in documents:
        counts.update(list(json_object(text) or ()))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def mask(documentation: str, field: str) -> str:
    """The document without one top-level field.

    What remains is written as the document was (escapes, separators, indent), as far as Python's writer can tell; a
    document without the field, or one that is no JSON object, stays verbatim.
    """
    document = json_object(documentation)
    if document is None or field not in document:
        return documentation
    style = _style(documentation, document)
    del document[field]
    return json.dumps(document, **style)


def _style(documentation: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of ``json.dumps`` that give the document back; the defaults where none do."""
    for indent in (None, 2, 4):
        for separators in (None, (",", ":")):
            for escaped in (True, False):
                style: dict[str, Any] = {"indent": indent, "separators": separators, "ensure_ascii": escaped}
                if json.dumps(document, **style) == documentation.strip():
                    return style
    return {}


def masked_runs(
    benchmark: Benchmark,
    model: ModelSpec,
    preset: Preset | str = Preset.CARD,
    *,
    fields: Sequence[str] | None = None,
    depth: int = 100,
    cache: EmbeddingCache | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> tuple[Run, list[MaskedRun]]:
    """The Full-Doc run, and one for each field that is removed.

    Args:
        benchmark: a benchmark of tools.
        model: BM25 or a dense model.
        preset: ``card`` or ``paper``: how the model encodes.
        fields: keys to remove; default all that occur.
        depth: results kept for a query.
        cache: where embeddings are kept: queries and unchanged documents are encoded once.
        progress: stages of Full-Doc, once a field.
        cancelled: asked between batches.

    Raises:
        Cancelled: on request.
        ModelError: the model cannot be loaded or used.
        UsageError: the benchmark has skills, whose documents are no JSON objects, or no document has a field.
    """
    if benchmark.info.kind is Kind.SKILL:
        raise UsageError("Masking removes fields of JSON documents; skills are Markdown. Choose a benchmark of tools.")
    contract = model.contract(preset)
    texts = retrieval_texts(benchmark, contract, Method.FULL_DOC)
    documents = documents_in_order(benchmark, texts.target)
    counts = top_level_fields(documents)
    chosen = list(counts) if fields is None else list(fields)
    if not any(counts.get(field) for field in chosen):
        raise UsageError(f"No document of {texts.target.name} is a JSON object with one of the fields to remove.")

    def search(rows: Sequence[str]) -> Run:
        masked = replace(texts, documents=[contract.document(text) for text in rows])
        return search_texts(masked, model, contract, depth, cache=cache, progress=progress, cancelled=cancelled).run

    full = search(documents)
    runs = [
        MaskedRun(field, counts.get(field, 0), search([mask(text, field) for text in documents])) for field in chosen
    ]
    return full, runs


def masking_frame(compiled: CompiledBenchmark, full: Run, masked: Sequence[MaskedRun]) -> pl.DataFrame:
    """How NDCG@10 (mean over queries, against the annotated tools) changes when a field is removed.

    Returns:
        One row a field, the greatest loss first: ``field``, ``tools`` (documents that had it), ``full``, ``masked``,
        ``change_percent`` (null where the Full-Doc run scores 0).
    """
    before = mean_score(compiled, full, "NDCG", _CUTOFF)
    rows = []
    for run in masked:
        after = mean_score(compiled, run.run, "NDCG", _CUTOFF)
        rows.append((run.field, run.tools, before, after, 100 * (after / before - 1) if before else None))
    rows.sort(key=lambda row: (row[4] is None, row[4], row[0]))
    return pl.DataFrame(rows, schema=MASKING_COLUMNS, orient="row")


def mean_score(compiled: CompiledBenchmark, run: Run, metric: str, cutoff: int) -> float:
    """One figure of a run against the annotated tools, as a mean over queries; 0 for no queries."""
    values = evaluate(compiled, run, (cutoff,)).old[METRICS.index(metric), 0]
    return float(np.mean(values)) if len(values) else 0.0
