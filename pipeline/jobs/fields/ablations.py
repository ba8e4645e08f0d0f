"""The parts of MFTR compared on one benchmark and model: variants, single fields, masked fields."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.baselines.ablation_variants import VARIANTS, Combination, Variant, variant
from pipeline.baselines.field_analysis import single_field_frame, single_field_runs
from pipeline.baselines.masking import masked_runs, masking_frame
from pipeline.baselines.one_text import retrieve_one_text
from pipeline.baselines.weighted import field_inputs, field_scorer, retrieve_weighted
from pipeline.benchmark import Benchmark
from pipeline.errors import UsageError
from pipeline.jobs.fields.files import ReadTexts
from pipeline.mftr.settings import preset as mftr_preset
from pipeline.retrieval.embedding_cache import EmbeddingCache
from pipeline.retrieval.models import ModelSpec
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.run import Run
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.kernel import METRICS, evaluate

#: Columns of ``variant_frame``; figures are means over queries, fractions.
VARIANT_COLUMNS = {
    "variant": pl.String,
    "label": pl.String,
    "ndcg_10_old": pl.Float64,
    "recall_10_old": pl.Float64,
    "ndcg_10_new": pl.Float64,
    "recall_10_new": pl.Float64,
}


def ablation_frame(
    of: str,
    benchmark: Benchmark,
    compiled: CompiledBenchmark,
    read: ReadTexts,
    model: ModelSpec,
    preset: str = "card",
    mftr: str = "paper",
    *,
    only: tuple[str, ...] = (),
    cache: EmbeddingCache | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> pl.DataFrame:
    """One table of comparisons.

    Args:
        of: ``variants`` (the rows of Table 3 that the given texts allow), ``fields`` (each field alone, Figure 4) or
            ``masking`` (raw documents without one top-level field, Figure 1).
        benchmark, compiled: the benchmark and its labels.
        read: tools and queries in fields.
        model: BM25 or a dense model.
        preset: ``card`` or ``paper``, of the encoding.
        mftr: MFTR's preset.
        only: keys of variants; empty for all. Variants over rewritten queries need a file of them, else they are left
            out.
        cache: where embeddings are kept.
        progress, cancelled: as the methods.

    Returns:
        ``VARIANT_COLUMNS``; or the columns of ``single_field_frame`` or ``masking_frame``.

    Raises:
        Cancelled: on request.
        MftrError, ModelError, UsageError: as the methods.
    """
    if of == "masking":
        full, masked = masked_runs(benchmark, model, preset, cache=cache, progress=progress, cancelled=cancelled)
        return masking_frame(compiled, full, masked)
    if of == "fields":
        settings = mftr_preset(mftr)
        inputs = field_inputs(
            benchmark, variant("mftr"), standardized=read.texts.tools, rewritten=read.texts.queries, base=settings
        )
        scorer = field_scorer(inputs, model, preset, cache=cache, progress=progress, cancelled=cancelled)
        runs = single_field_runs(scorer, inputs.target, settings, progress=progress, cancelled=cancelled)
        return single_field_frame(compiled, scorer, runs)
    chosen = [variant(key) for key in only] or list(VARIANTS)
    if read.rewritten is None:
        lacking = [row.label for row in chosen if only and row.needs_rewritten and row.key != "mftr"]
        if lacking:
            raise UsageError(f"{', '.join(lacking)}: give the rewritten queries with --rewritten")
        chosen = [row for row in chosen if not row.needs_rewritten or row.key == "mftr"]
    rows = []
    for row in chosen:
        found = variant_run(
            row, benchmark, read, model, preset, mftr, cache=cache, progress=progress, cancelled=cancelled
        )
        rows.append((row.key, row.label, *_figures(compiled, found)))
    return pl.DataFrame(rows, schema=VARIANT_COLUMNS, orient="row")


def variant_run(
    row: Variant,
    benchmark: Benchmark,
    read: ReadTexts,
    model: ModelSpec,
    preset: str = "card",
    mftr: str = "paper",
    *,
    depth: int = 100,
    cache: EmbeddingCache | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Run:
    """The ranking of one variant; raises as ``ablation_frame``."""
    given: dict[str, Any] = {"standardized": read.texts.tools, "rewritten": read.texts.queries}
    if row.combination is Combination.ONE_TEXT:
        return retrieve_one_text(
            benchmark, row, model, preset, depth=depth, cache=cache, progress=progress, cancelled=cancelled, **given
        ).run
    return retrieve_weighted(
        benchmark,
        row,
        model,
        preset,
        base=mftr_preset(mftr),
        depth=depth,
        cache=cache,
        progress=progress,
        cancelled=cancelled,
        **given,
    ).run


def _figures(compiled: CompiledBenchmark, run: Run) -> tuple[float | None, ...]:
    """NDCG@10 and Recall@10, old then new, as means over queries."""
    scored = evaluate(compiled, run, (10,))
    found: list[float | None] = []
    for view in (scored.old, scored.new):
        for metric in ("NDCG", "Recall"):
            values = view[METRICS.index(metric), 0]
            found.append(float(values.mean()) if len(values) else None)
    return tuple(found)
