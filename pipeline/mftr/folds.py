"""Folds of the cross-validation, and which queries each fold may learn from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pipeline.errors import UsageError
from pipeline.mftr.settings import MftrSettings

LongArray = npt.NDArray[np.int64]


def query_folds(queries: int, settings: MftrSettings) -> LongArray:
    """The fold of every query: shuffled by the seed and cut into contiguous slices; int64 (queries,).

    Raises:
        UsageError: there are fewer queries than folds.
    """
    if queries < settings.folds:
        raise UsageError(f"{settings.folds} folds need as many queries; there are {queries}.")
    order = np.random.default_rng(settings.seed).permutation(queries)
    return _slices(order, settings.folds)


def tool_disjoint_folds(labels: Sequence[npt.NDArray[np.integer]], settings: MftrSettings) -> LongArray:
    """Folds for which few queries share a labelled tool with another fold; int64 (queries,).

    The labelled tools are shuffled by the seed and cut into slices; a query goes where most of its tools are (the
    first such slice), one without labels where the fewest queries are.

    Raises:
        UsageError: there are fewer labelled tools than folds, or a fold has no query.
    """
    tools = np.unique(np.concatenate([*labels, np.empty(0, dtype=np.int64)])).astype(np.int64)
    if len(tools) < settings.folds:
        raise UsageError(f"{settings.folds} tool-disjoint folds need as many labelled tools; there are {len(tools)}.")
    slice_of = _slices(np.random.default_rng(settings.seed).permutation(len(tools)), settings.folds)
    fold_of = np.zeros(len(labels), dtype=np.int64)
    sizes = np.zeros(settings.folds, dtype=np.int64)
    for query, some in enumerate(labels):
        held = np.bincount(slice_of[np.searchsorted(tools, some)], minlength=settings.folds)
        fold_of[query] = np.argmax(held) if len(some) else np.argmin(sizes)
        sizes[fold_of[query]] += 1
    if not sizes.all():
        raise UsageError(
            f"{settings.folds} tool-disjoint folds leave a fold without queries: too few tools are labelled. Use fewer "
            "folds, or folds of queries."
        )
    return fold_of


def training_queries(
    fold: int, fold_of: LongArray, labels: Sequence[npt.NDArray[np.integer]], settings: MftrSettings
) -> LongArray:
    """The queries that a fold learns from: those of the other folds.

    With ``tool_disjoint`` only those that share no labelled tool with a test query of the fold.
    """
    others = np.flatnonzero(fold_of != fold)
    if not settings.tool_disjoint:
        return others
    tested = np.unique(np.concatenate([labels[query] for query in np.flatnonzero(fold_of == fold).tolist()]))
    apart = [query for query in others.tolist() if not np.isin(labels[query], tested).any()]
    return np.array(apart, dtype=np.int64)


def _slices(order: npt.NDArray[np.integer], folds: int) -> LongArray:
    slice_of = np.empty(len(order), dtype=np.int64)
    for number, part in enumerate(np.array_split(order, folds)):
        slice_of[part] = number
    return slice_of
