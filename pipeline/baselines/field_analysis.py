"""Each field on its own (MFTR paper, Figure 4) and recall by depth (Figure 3), as frames for charts and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.baselines.masking import mean_score
from pipeline.mftr.field_scores import FieldScorer, field_scores
from pipeline.mftr.learned_parameters import LearnedFolds, mean_of_fields
from pipeline.mftr.schema import Field
from pipeline.mftr.search import combine, search
from pipeline.mftr.settings import PAPER, MftrSettings, Penalty, Weighting
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.retrieval.rankings import Rankings
from pipeline.run import Run, RunTarget
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.kernel import METRICS, evaluate

#: Columns of ``single_field_frame``.
SINGLE_FIELD_COLUMNS: dict[str, pl.DataType] = {
    "field": pl.String(),
    "tools": pl.Int64(),
    "queries": pl.Int64(),
    "ndcg_10": pl.Float64(),
    "recall_10": pl.Float64(),
}
#: Columns of ``recall_frame``.
RECALL_COLUMNS: dict[str, pl.DataType] = {"method": pl.String(), "k": pl.Int64(), "recall": pl.Float64()}

#: The depths of Figure 3 and between.
DEPTHS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100)


def single_field_runs(
    scorer: FieldScorer,
    target: RunTarget,
    base: MftrSettings = PAPER,
    *,
    depth: int = 100,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> dict[Field, Run]:
    """Rank by S_f alone, for each field: no weights, no penalty.

    A query for which all tools score the same, as one without arguments does by the parameters, has an empty list: the
    order of ids is no ranking by the field.

    Args:
        scorer: corpus, queries and φ.
        target: the benchmark's ids, in whose order both are.
        base: how fields are scored (what a tool without the field gets, and scaling).
        depth: results kept for a query.
        progress: stage ``search``, once a field.
        cancelled: asked between chunks.

    Raises:
        Cancelled: on request.
    """
    runs = {}
    for field in Field:
        settings = replace(base, fields=(field,), weighting=Weighting.MEAN, penalty=Penalty.NONE)
        learned = mean_of_fields(len(scorer.queries), settings.fields)
        found = search(scorer, settings, learned, depth, progress=progress, cancelled=cancelled)
        found.counts[_tied(scorer, settings, learned, field, found)] = 0
        runs[field] = found.run(target)
    return runs


def _tied(
    scorer: FieldScorer, settings: MftrSettings, learned: LearnedFolds, field: Field, found: Rankings
) -> npt.NDArray[np.bool_]:
    """Which queries score all tools the same by a field; bool (queries,)."""
    tied = np.zeros(len(scorer.queries), dtype=np.bool_)
    if len(scorer.tools) < 2:
        return tied
    if not scorer.tools[field].filled.any():
        return ~tied
    asked = np.diff(scorer.queries[field].offsets) > 0
    tied[~asked] = True
    for query in np.flatnonzero(asked & (found.counts > 0)).tolist():
        listed = found.scores[query, : found.counts[query]]
        # Whoever tells two listed tools apart has something to rank by; only the others are scored again.
        if listed[0] == listed[-1]:
            totals = combine(scorer, settings, learned, field_scores(scorer, settings, query, query + 1))[0]
            tied[query] = totals.min() == totals.max()
    return tied


def single_field_frame(compiled: CompiledBenchmark, scorer: FieldScorer, runs: Mapping[Field, Run]) -> pl.DataFrame:
    """NDCG@10 and Recall@10 of each field alone, against the annotated tools, as means over all queries.

    Returns:
        One row a field in the order of ``Field``: ``field``, ``tools`` (those with a text in it), ``queries`` (those
        for which it tells tools apart; the others score 0), ``ndcg_10``, ``recall_10``; both figures null where it
        tells tools apart for no query, so that there is nothing to rank by.
    """
    rows = [
        (
            field.value,
            int(np.count_nonzero(scorer.tools[field].filled)),
            runs[field].queries_answered,
            *(
                mean_score(compiled, runs[field], metric, 10) if runs[field].queries_answered else None
                for metric in ("NDCG", "Recall")
            ),
        )
        for field in Field
        if field in runs
    ]
    return pl.DataFrame(rows, schema=SINGLE_FIELD_COLUMNS, orient="row")


def recall_frame(
    compiled: CompiledBenchmark, runs: Mapping[str, Run], depths: Sequence[int] = DEPTHS, *, run_depth: int = 100
) -> pl.DataFrame:
    """Recall@K over K against the annotated tools, as a mean over queries.

    Args:
        compiled: the labels.
        runs: label of a method → its run.
        depths: K, from 1 to 1,000.
        run_depth: where all runs were cut; K beyond it are left out, since nothing is known there. A method that ends
            its lists earlier (PLUTo without filling) keeps its recall up to this depth.

    Returns:
        One row a method and K: ``method``, ``k``, ``recall``.
    """
    cutoffs = tuple(sorted({k for k in depths if k <= run_depth}))
    rows = []
    for label, run in runs.items() if cutoffs else ():
        values = evaluate(compiled, run, cutoffs).old[METRICS.index("Recall")]
        rows += [(label, k, float(np.mean(values[j])) if values.shape[1] else 0.0) for j, k in enumerate(cutoffs)]
    return pl.DataFrame(rows, schema=RECALL_COLUMNS, orient="row")
