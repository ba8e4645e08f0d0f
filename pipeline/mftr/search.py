"""MFTR's ranking: Σ w_f S_f + b − P over the full corpus (MFTR §3.4.3)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeline.mftr.field_kernels import best_tools, total_scores
from pipeline.mftr.field_scores import FieldScorer, FieldScores, chunks, field_scores
from pipeline.mftr.learned_parameters import LearnedFolds
from pipeline.mftr.schema import Field
from pipeline.mftr.settings import MftrSettings, Penalty
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback, Stage
from pipeline.retrieval.rankings import Rankings


def search(
    scorer: FieldScorer,
    settings: MftrSettings,
    learned: LearnedFolds,
    depth: int = 100,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Rankings:
    """The best tools of every query, each scored with the parameters of its fold.

    A query without any need or argument has an empty ranking.

    Args:
        scorer: corpus, queries and φ.
        settings: how to score.
        learned: from ``train_folds``, ``published_folds`` or ``mean_of_fields``.
        depth: clamped to the number of tools.
        progress: stage ``search``, in queries.
        cancelled: asked between chunks.

    Raises:
        Cancelled: on request.
        ValueError: ``depth`` is below 1.
    """
    if depth < 1:
        raise ValueError(f"depth is {depth}; it must be at least 1")
    rankings = Rankings.empty(len(scorer.queries), min(depth, len(scorer.tools)))
    stage = Stage("search", len(scorer.queries), progress, cancelled)
    if not len(scorer.tools):
        return rankings
    for start, end in chunks(scorer):
        rows = slice(start, end)
        totals = combine(scorer, settings, learned, field_scores(scorer, settings, start, end))
        best_tools(totals, rankings.tools[rows], rankings.scores[rows], rankings.counts[rows])
        stage.advance(end - start)
    rankings.counts[~scorer.queries.answerable] = 0
    return rankings


def combine(
    scorer: FieldScorer, settings: MftrSettings, learned: LearnedFolds, scores: FieldScores
) -> npt.NDArray[np.float32]:
    """S(q, t) of some queries and all tools; float32 (queries, tools)."""
    totals = np.empty((len(scores), len(scorer.tools)), dtype=np.float32)
    counted = np.array([field in settings.fields for field in Field])
    total_scores(
        scores.fields,
        scores.parameters,
        scores.charged,
        scorer.places(Field.PARAMETERS),
        scorer.tools[Field.PARAMETERS].offsets,
        scorer.tools.required,
        learned.fold_of[scores.start : scores.start + len(scores)],
        np.array([fold.weights for fold in learned.folds], dtype=np.float64) * counted,
        np.array([fold.bias for fold in learned.folds], dtype=np.float64),
        np.array([(fold.tau, fold.alpha, fold.required, fold.optional) for fold in learned.folds], dtype=np.float64),
        -1.0 if settings.penalty is Penalty.PRINTED_SIGN else 1.0,
        totals,
    )
    return totals
