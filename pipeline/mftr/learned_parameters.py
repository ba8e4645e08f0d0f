"""What MFTR learns for each fold, and its published JSON shape."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import MftrError
from pipeline.formats.json_lines import JsonFault, parse_json
from pipeline.formats.messages import listing, quote
from pipeline.mftr.schema import Field, RewrittenQuery

#: dataset → model and length of its query prefix → fold → learned parameters.
LearnedTable = dict[str, dict[str, tuple["LearnedParameters", ...]]]
#: Scores are float32: with weights of 1e38 the best tools would all have the score infinity, or none.
_LARGEST = 1e9


@dataclass(frozen=True)
class LearnedParameters:
    """One fold's parameters (MFTR §3.4).

    Attributes:
        weights: w_f in the order of ``Field``.
        bias: b; the same for every tool, so it never changes a ranking.
        tau: τ.
        required: w_req, the charge of a missing required parameter.
        optional: w_opt.
        alpha: α.
    """

    weights: tuple[float, float, float, float]
    bias: float = 0.0
    tau: float = 0.0
    required: float = 0.0
    optional: float = 0.0
    alpha: float = 15.0

    def as_json(self) -> dict[str, Any]:
        """The published shape of one fold."""
        return {
            "base_weight": [list(self.weights)],
            "base_bias": [self.bias],
            "tau": self.tau,
            "w_req": self.required,
            "w_opt": self.optional,
            "alpha": self.alpha,
        }


@dataclass(frozen=True, eq=False)
class LearnedFolds:
    """The parameters of all folds, and which of them ranks each query.

    Attributes:
        folds: parameters learned without the queries of that fold.
        fold_of: int64 (queries,), positions in ``folds``.
        losses: mean training loss of each fold's last epoch; empty when they were not trained here.
    """

    folds: tuple[LearnedParameters, ...]
    fold_of: npt.NDArray[np.int64]
    losses: tuple[float, ...] = ()

    @property
    def shares(self) -> tuple[float, float, float, float] | None:
        """``weight_shares`` of the mean over the folds (Table 5)."""
        means = [math.fsum(fold.weights[i] for fold in self.folds) / len(self.folds) for i in range(4)]
        return weight_shares((means[0], means[1], means[2], means[3]))


def weight_shares(weights: tuple[float, float, float, float]) -> tuple[float, float, float, float] | None:
    """w_f / Σ w_f (Tables 4 and 5); None where a weight is negative or all are 0, since shares mean nothing there."""
    total = math.fsum(weights)
    if min(weights) < 0 or total <= 0:
        return None
    return (weights[0] / total, weights[1] / total, weights[2] / total, weights[3] / total)


def negative_weight_notes(learned: LearnedFolds, fields: Sequence[Field]) -> tuple[str, ...]:
    """A sentence on weights below 0, for readers of the results; none where there are none.

    Args:
        learned: what ranks.
        fields: those that queries and tools both have; the weight of another changes no ranking.
    """
    below = {field: sum(fold.weights[place] < 0 for fold in learned.folds) for place, field in enumerate(Field)}
    said = [f"that of {field.value} in {below[field]} of {len(learned.folds)}" for field in fields if below[field]]
    if not said:
        return ()
    return (
        f"Some weights are below 0 ({', '.join(said)} folds): there, a tool that matches the field better ranks lower.",
    )


def mean_of_fields(queries: int, fields: Sequence[Field] = tuple(Field)) -> LearnedFolds:
    """The plain mean of some fields for all queries: nothing is learned and nothing charged."""
    share = 1.0 / len(fields)
    d, p, r, e = (share if field in fields else 0.0 for field in Field)
    return LearnedFolds((LearnedParameters((d, p, r, e)),), np.zeros(queries, dtype=np.int64))


def published_folds(folds: Sequence[LearnedParameters], queries: Sequence[RewrittenQuery]) -> LearnedFolds:
    """Imported parameters, applied by each query's ``test_fold``.

    Raises:
        MftrError: a query has no fold, or one without parameters.
    """
    fold_of = np.array([-1 if query.test_fold is None else query.test_fold for query in queries], dtype=np.int64)
    wrong = np.flatnonzero((fold_of < 0) | (fold_of >= len(folds)))
    if len(wrong):
        query = queries[int(wrong[0])]
        raise MftrError(
            f"{len(wrong):,} of {len(queries):,} queries have no test_fold from 0 to {len(folds) - 1}, the first is "
            f"{quote(query.query_id)} ({query.test_fold}). Learned parameters apply to the queries they did not see: "
            "import the rewritten queries with their folds, or train."
        )
    return LearnedFolds(tuple(folds), fold_of)


def read_learned(path: Path) -> LearnedTable:
    """Read learned parameters in the published shape.

    Raises:
        MftrError: the file cannot be read or does not have that shape; the message says where.
    """
    try:
        content = parse_json(path.read_bytes())
    except OSError as error:
        raise MftrError(f"The learned parameters {path} cannot be read: {error.strerror or error}") from None
    except JsonFault as fault:
        raise MftrError(f"The learned parameters {path} cannot be read: {fault}") from None
    return parse_learned(content)


def parse_learned(content: Any) -> LearnedTable:
    """Learned parameters from parsed JSON.

    Raises:
        MftrError: it does not have the published shape; the message says where.
    """
    table: LearnedTable = {}
    for dataset, models in _items(content, "the file"):
        for model, folds in _items(models, dataset):
            where = f"{dataset} / {model}"
            numbers = dict(_items(folds, where))
            names = [str(i) for i in range(len(numbers))]
            if not numbers or set(numbers) != set(names):
                raise MftrError(
                    f"Learned parameters, {where}: folds must be 0, 1, 2, …; found {listing(list(numbers))}."
                )
            table.setdefault(dataset, {})[model] = tuple(
                _fold(numbers[name], f"{where} / fold {name}") for name in names
            )
    return table


def write_learned(table: Mapping[str, Mapping[str, Sequence[LearnedParameters]]], path: Path) -> None:
    """Write learned parameters in the published shape."""
    path.write_text(json.dumps(learned_json(table), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def learned_json(table: Mapping[str, Mapping[str, Sequence[LearnedParameters]]]) -> dict[str, Any]:
    """The published shape."""
    return {
        dataset: {model: {str(i): fold.as_json() for i, fold in enumerate(folds)} for model, folds in models.items()}
        for dataset, models in table.items()
    }


def _items(value: Any, where: str) -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise MftrError(f"Learned parameters, {where}: expected an object, found {type(value).__name__}.")
    return list(value.items())


def _fold(value: Any, where: str) -> LearnedParameters:
    fold = dict(_items(value, where))
    weights = fold.get("base_weight")
    row = weights[0] if isinstance(weights, list) and len(weights) == 1 else None
    if not isinstance(row, list) or len(row) != len(Field):
        raise MftrError(f"Learned parameters, {where}: base_weight must be one list of four numbers.")
    bias = fold.get("base_bias")
    if not isinstance(bias, list) or len(bias) != 1:
        raise MftrError(f"Learned parameters, {where}: base_bias must be a list of one number.")
    d, p, r, e = (_number(weight, where, "base_weight") for weight in row)
    return LearnedParameters(
        (d, p, r, e),
        _number(bias[0], where, "base_bias"),
        _number(fold.get("tau"), where, "tau"),
        _number(fold.get("w_req"), where, "w_req", least=0.0),
        _number(fold.get("w_opt"), where, "w_opt", least=0.0),
        _number(fold.get("alpha"), where, "alpha", least=0.0),
    )


def _shown(value: Any) -> str:
    return "a very large number" if isinstance(value, int) and abs(value) > 10**100 else str(value)


def _number(value: Any, where: str, name: str, least: float = -math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not max(least, -_LARGEST) <= value <= _LARGEST:
        bound = f" from {max(least, -_LARGEST):g} to {_LARGEST:g}"
        raise MftrError(f"Learned parameters, {where}: {name} must be a number{bound}; found {quote(_shown(value))}.")
    return float(value)
