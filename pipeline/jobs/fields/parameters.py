"""Learned weights as they are stored and as they score."""

from __future__ import annotations

from typing import Any

from pipeline.errors import MftrError
from pipeline.mftr.fields import QueryFields
from pipeline.mftr.learned_parameters import LearnedFolds, LearnedParameters, published_folds
from pipeline.mftr.settings import MftrSettings
from pipeline.mftr.training import labels_of
from pipeline.run import RunTarget
from store.access.mftr import FoldParameters, ParameterSet
from store.field_text_models import ParameterSource


def learned_folds(folds: ParameterSet, settings: MftrSettings, queries: QueryFields, target: RunTarget) -> LearnedFolds:
    """A stored parameter set as what ranks each query.

    Raises:
        MftrError: it is imported and the queries have no folds, or it lacks a fold.
        UsageError: the queries cannot be cut into the folds that were learned.
    """
    by_fold = {fold.fold: fold for fold in folds.folds}
    if set(by_fold) != set(range(folds.fold_count)):
        raise MftrError(f"the parameters {folds.id[:8]} lack a fold: {sorted(by_fold)} of {folds.fold_count}")
    values = tuple(parameters_of(by_fold[number]) for number in range(folds.fold_count))
    if folds.source is ParameterSource.IMPORTED:
        return published_folds(values, queries.queries)
    return LearnedFolds(values, fold_of_queries(settings, target))


def fold_of_queries(settings: MftrSettings, target: RunTarget) -> Any:
    """The fold of every query, as training cuts them; int64 (queries,)."""
    from pipeline.mftr.folds import query_folds, tool_disjoint_folds

    if settings.tool_disjoint:
        return tool_disjoint_folds(labels_of(target), settings)
    return query_folds(len(target.queries), settings)


def parameters_of(fold: FoldParameters) -> LearnedParameters:
    """A stored fold as what scores."""
    return LearnedParameters(
        fold.weights, fold.bias, fold.tau, fold.required_penalty, fold.optional_penalty, fold.alpha
    )


def stored_parameters(number: int, fold: LearnedParameters) -> FoldParameters:
    """What scores as a stored fold."""
    return FoldParameters(number, fold.weights, fold.tau, fold.alpha, fold.required, fold.optional, fold.bias)
