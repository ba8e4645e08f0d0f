"""Learning field weights and the penalty: pairwise logistic loss over labelled tools and hard negatives (MFTR §3.4.3).

Each pair of a labelled tool and a negative of the same query adds log(1 + exp(−(S⁺ − S⁻))). Only the scores of these
tools are kept, so that training needs memory for queries × negatives, whatever the corpus. Sums run on one thread and
every random choice comes from the seed and the fold: the same input gives the same parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import UsageError
from pipeline.mftr.field_scores import FieldScorer, chunks, field_scores
from pipeline.mftr.folds import query_folds, tool_disjoint_folds, training_queries
from pipeline.mftr.learned_parameters import LearnedFolds, LearnedParameters, mean_of_fields
from pipeline.mftr.schema import Field
from pipeline.mftr.settings import MftrSettings, Penalty, Weighting
from pipeline.retrieval.adapter import one_thread
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback, Stage
from pipeline.run import RunTarget

LongArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class TrainingScores:
    """The scores of the labelled tools and negatives of every query.

    Attributes:
        offsets: int64 (queries + 1): the items of query q are ``offsets[q]:offsets[q + 1]``, labelled tools first.
        positives: int64 (queries,), how many of them are labelled.
        fields: float32 (items, 4), S_f.
        parameter_offsets: int64 (items + 1): the parameters of item i; none where the query is not charged.
        parameters: float32 (parameters,), s_p.
        required: bool (parameters,).
    """

    offsets: LongArray
    positives: LongArray
    fields: FloatArray
    parameter_offsets: LongArray
    parameters: FloatArray
    required: npt.NDArray[np.bool_]

    def pairs(self, queries: LongArray) -> LongArray:
        """Every (labelled tool, negative) of the queries; int64 (pairs, 2), items."""
        found = [np.empty((0, 2), dtype=np.int64)]
        for query in queries.tolist():
            first, end = int(self.offsets[query]), int(self.offsets[query + 1])
            middle = first + int(self.positives[query])
            grid = np.meshgrid(np.arange(first, middle), np.arange(middle, end), indexing="ij")
            found.append(np.stack([part.ravel() for part in grid], axis=1))
        return np.concatenate(found)


def labels_of(target: RunTarget) -> list[npt.NDArray[np.int32]]:
    """The labelled tools of every query."""
    bounds = zip(target.truth_offsets[:-1].tolist(), target.truth_offsets[1:].tolist(), strict=True)
    return [target.truth_tools[start:end] for start, end in bounds]


def train_folds(
    scorer: FieldScorer,
    settings: MftrSettings,
    labels: Sequence[npt.NDArray[np.int32]],
    negatives: Sequence[npt.NDArray[np.int32]],
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> LearnedFolds:
    """Parameters for each fold, learned from the queries of the others.

    With ``Weighting.MEAN`` nothing is trained.

    Args:
        scorer: corpus, queries and φ.
        settings: how to score and train.
        labels: labelled tools of every query, as ``labels_of`` gives them.
        negatives: as ``hard_negatives`` gives them.
        progress: stages ``training scores`` (queries) and ``training`` (epochs over all folds).
        cancelled: asked between chunks and epochs.

    Raises:
        Cancelled: on request.
        UsageError: there are too few queries or tools for the folds, or a fold has nothing to learn from.
    """
    if settings.weighting is Weighting.MEAN:
        return mean_of_fields(len(scorer.queries), settings.fields)
    if settings.tool_disjoint:
        fold_of = tool_disjoint_folds(labels, settings)
    else:
        fold_of = query_folds(len(scorer.queries), settings)
    scores = training_scores(scorer, settings, labels, negatives, progress=progress, cancelled=cancelled)
    stage = Stage("training", settings.folds * settings.epochs, progress, cancelled)
    trained = [
        train(scores, training_queries(fold, fold_of, labels, settings), settings, fold=fold, stage=stage)
        for fold in range(settings.folds)
    ]
    return LearnedFolds(tuple(found for found, _ in trained), fold_of, tuple(loss for _, loss in trained))


def training_scores(
    scorer: FieldScorer,
    settings: MftrSettings,
    labels: Sequence[npt.NDArray[np.int32]],
    negatives: Sequence[npt.NDArray[np.int32]],
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> TrainingScores:
    """Score the full corpus chunk by chunk and keep what training needs."""
    stage = Stage("training scores", len(scorer.queries), progress, cancelled)
    columns, offsets = scorer.places(Field.PARAMETERS), scorer.tools[Field.PARAMETERS].offsets
    kept, ends, counts = [np.empty((0, len(Field)), dtype=np.float32)], [0], []
    parameter_counts = [np.empty(0, dtype=np.int64)]
    parameters, required = [np.empty(0, dtype=np.float32)], [np.empty(0, dtype=np.bool_)]
    for start, end in chunks(scorer):
        scores = field_scores(scorer, settings, start, end)
        for row, query in enumerate(range(start, end)):
            items = np.concatenate((labels[query], negatives[query])).astype(np.int64)
            kept.append(scores.fields[row][:, items].T)
            ends.append(ends[-1] + len(items))
            counts.append(len(labels[query]))
            sizes = offsets[items + 1] - offsets[items]
            if not scores.charged[row]:
                sizes = np.zeros_like(sizes)
            places = np.repeat(offsets[items], sizes) + _within(sizes)
            parameter_counts.append(sizes)
            parameters.append(scores.parameters[row][columns[places]] if len(places) else parameters[0])
            required.append(scorer.tools.required[places])
        stage.advance(end - start)
    sizes = np.concatenate(parameter_counts)
    return TrainingScores(
        np.array(ends, dtype=np.int64),
        np.array(counts, dtype=np.int64),
        np.concatenate(kept),
        np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes))),
        np.concatenate(parameters),
        np.concatenate(required),
    )


def _within(sizes: LongArray) -> LongArray:
    """0, 1, … for each group of the given sizes, one group after another."""
    total = np.arange(int(sizes.sum()), dtype=np.int64)
    return total - np.repeat(np.cumsum(sizes) - sizes, sizes)


def train(
    scores: TrainingScores, queries: LongArray, settings: MftrSettings, *, fold: int = 0, stage: Stage | None = None
) -> tuple[LearnedParameters, float]:
    """One fold's parameters after the last epoch, and the mean loss of that epoch.

    Args:
        scores: of all queries.
        queries: int64, those to learn from.
        settings: how to train.
        fold: chooses the initial weights and the order, with the seed.
        stage: advanced by each epoch.

    Raises:
        UsageError: the queries have no pair of a labelled tool and a negative.
    """
    pairs = scores.pairs(queries)
    if not len(pairs):
        raise UsageError(
            f"Fold {fold} has nothing to learn from: no training query has a labelled tool and a negative."
        )
    import torch

    generator = np.random.default_rng((settings.seed, fold))
    with one_thread(torch):
        model = _Model(torch, settings, generator)
        loss = 0.0
        for _ in range(settings.epochs):
            loss, order = 0.0, generator.permutation(len(pairs))
            for start in range(0, len(order), settings.batch):
                batch = pairs[order[start : start + settings.batch]]
                loss += model.step(scores, batch) * len(batch)
            if stage is not None:
                stage.advance(1)
        return model.learned(), loss / len(pairs)


class _Model:
    """The parameters as torch tensors, and one step of Adam."""

    def __init__(self, torch: Any, settings: MftrSettings, generator: np.random.Generator) -> None:
        self._torch = torch
        self._settings = settings
        # As torch initialises a linear layer of four inputs: uniform within 1/√4.
        initial = generator.uniform(-0.5, 0.5, len(Field) + 1).astype(np.float32)
        self._bias = float(initial[-1])
        self._counted = torch.tensor([float(field in settings.fields) for field in Field])
        self._weights = torch.from_numpy(initial[:-1].copy()).requires_grad_()
        self._tau = torch.tensor(settings.tau_initial, requires_grad=True)
        # softplus(charge) is the charge: the initial ones are what the record says.
        charges = [float(np.log(np.expm1(c))) for c in (settings.required_initial, settings.optional_initial)]
        self._charges = torch.tensor(charges, requires_grad=True)
        self._clamp()
        self._optimiser = torch.optim.Adam([self._weights, self._tau, self._charges], lr=settings.learning_rate)

    def step(self, scores: TrainingScores, batch: LongArray) -> float:
        """Learn from (labelled tool, negative) pairs; their mean loss before the step."""
        totals = self._totals(scores, batch.T.ravel())
        margins = totals[: len(batch)] - totals[len(batch) :]
        loss = self._torch.nn.functional.softplus(-margins).mean()
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self._optimiser.step()
        self._clamp()
        return float(loss.detach())

    def _totals(self, scores: TrainingScores, items: LongArray) -> Any:
        torch = self._torch
        totals = torch.from_numpy(scores.fields[items]) @ (self._weights * self._counted)
        if not self._settings.penalised:
            return totals
        first = scores.parameter_offsets[items]
        sizes = scores.parameter_offsets[items + 1] - first
        places = np.repeat(first, sizes) + _within(sizes)
        sign = -1.0 if self._settings.penalty is Penalty.PRINTED_SIGN else 1.0
        missing = torch.sigmoid(sign * self._settings.alpha * (self._tau - torch.from_numpy(scores.parameters[places])))
        charges = torch.nn.functional.softplus(self._charges)
        charge = torch.where(torch.from_numpy(scores.required[places]), charges[0], charges[1])
        owners = torch.from_numpy(np.repeat(np.arange(len(items)), sizes))
        return totals.index_add(0, owners, missing * charge, alpha=-1)

    def _clamp(self) -> None:
        with self._torch.no_grad():
            if self._settings.tau_clamped:
                self._tau.clamp_(0.0, 1.0)
            if self._settings.nonnegative:
                self._weights.clamp_(min=0.0)

    def learned(self) -> LearnedParameters:
        """As plain numbers; charges are 0 without a penalty."""
        d, p, r, e = (self._weights * self._counted).tolist()
        charges = self._torch.nn.functional.softplus(self._charges).tolist() if self._settings.penalised else (0.0, 0.0)
        return LearnedParameters(
            (d, p, r, e), self._bias, self._tau.item(), charges[0], charges[1], self._settings.alpha
        )
