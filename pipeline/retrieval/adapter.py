"""A linear query adapter on a frozen dense retriever: the smallest fine-tuning that shows what fine-tuning does.

A query embedding q becomes q + A q (of length 1 again where the model normalises); A starts at zero, so training
starts from the retriever itself. The loss is InfoNCE with in-batch negatives over (query, tool) pairs: tools of the
other pairs of the batch, except those that are positives of the query too. Tool embeddings stay as they are, so an
index is never built again.

Each query is ranked by an adapter that never saw it: folds are made over distinct query texts (a text that occurs
twice stays in one fold), while tools are shared by all folds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import UsageError
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback, Stage

FloatArray = npt.NDArray[np.float32]
LongArray = npt.NDArray[np.int64]


class Positives(StrEnum):
    """Which tools of a training query are right: the annotated ones, or every tool of a valid combination."""

    GROUND_TRUTH = "ground_truth"
    EQUIVALENTS = "equivalents"


@dataclass(frozen=True)
class AdapterSettings:
    """How an adapter is trained; part of the contract of its runs.

    Attributes:
        positives: see ``Positives``.
        folds: of the cross-validation.
        epochs: passes over the pairs.
        batch: pairs of one step.
        learning_rate: of Adam.
        temperature: inner products are divided by it.
        decay: weight of the squared Frobenius norm of A, which pulls the adapter back to the base retriever.
        seed: of folds and order.
    """

    positives: Positives = Positives.GROUND_TRUTH
    folds: int = 5
    epochs: int = 20
    batch: int = 128
    learning_rate: float = 1e-3
    temperature: float = 0.05
    decay: float = 1e-4
    seed: int = 42

    def contract_hash(self, base: str) -> str:
        """sha256 hex of the base retriever's contract hash and every setting."""
        return hashlib.sha256(
            f"equirank adapter 1\n{base}\n{json.dumps(asdict(self), sort_keys=True)}".encode()
        ).hexdigest()


@dataclass(frozen=True, eq=False)
class TrainingPairs:
    """What a query's adapter should bring near it.

    Attributes:
        queries: int64 (pairs,), positions of queries, one for each annotated tool.
        tools: int64 (pairs,), the annotated tools.
        offsets: int64 (queries + 1): the positives of query q are ``positives[offsets[q]:offsets[q + 1]]``.
        positives: int64, every tool that counts as right, ascending within a query.
    """

    queries: LongArray
    tools: LongArray
    offsets: LongArray
    positives: LongArray


def folds_of(texts: Sequence[str], folds: int, seed: int) -> LongArray:
    """The fold of every query: distinct texts are shuffled by the seed and cut into contiguous slices; int64.

    Raises:
        UsageError: there are fewer distinct texts than folds, or fewer than two folds.
    """
    distinct = sorted(set(texts))
    if folds < 2 or len(distinct) < folds:
        raise UsageError(
            f"{folds} folds need at least 2 folds and as many distinct queries; there are {len(distinct)}."
        )
    order = np.random.default_rng(seed).permutation(len(distinct))
    slices = np.array_split(order, folds)
    fold = {distinct[i]: number for number, part in enumerate(slices) for i in part.tolist()}
    return np.array([fold[text] for text in texts], dtype=np.int64)


def adapt_out_of_fold(
    queries: FloatArray,
    tools: FloatArray,
    pairs: TrainingPairs,
    fold_of: LongArray,
    settings: AdapterSettings,
    *,
    normalise: bool = True,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> FloatArray:
    """Every query's embedding after the adapter of its fold, which was trained on the other folds.

    Args:
        queries: float32 (queries, dimension).
        tools: float32 (tools, dimension).
        pairs: what to learn from.
        fold_of: int64 (queries,), see ``folds_of``.
        settings: how to train.
        normalise: whether adapted embeddings get length 1.
        progress: stage ``training``, in epochs over all folds.
        cancelled: asked after every epoch.

    Returns:
        float32 (queries, dimension).

    Raises:
        Cancelled: on request.
    """
    adapted = np.empty_like(queries)
    stage = Stage("training", settings.folds * settings.epochs, progress, cancelled)
    for fold in range(settings.folds):
        inside = fold_of == fold
        matrix = train_adapter(queries, tools, pairs, ~inside, settings, fold=fold, normalise=normalise, stage=stage)
        adapted[inside] = apply_adapter(matrix, queries[inside], normalise=normalise)
    return adapted


def apply_adapter(matrix: FloatArray, queries: FloatArray, *, normalise: bool) -> FloatArray:
    """Move every row q to q + A q, of length 1 where asked for; summed in float64."""
    wide = queries.astype(np.float64)
    moved = wide + np.einsum("qi,oi->qo", wide, matrix.astype(np.float64))
    if normalise:
        moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    result: FloatArray = moved.astype(np.float32)
    return result


def train_adapter(
    queries: FloatArray,
    tools: FloatArray,
    pairs: TrainingPairs,
    learn: npt.NDArray[np.bool_],
    settings: AdapterSettings,
    *,
    fold: int = 0,
    normalise: bool = True,
    stage: Stage | None = None,
) -> FloatArray:
    """Train one adapter on the queries marked in ``learn``.

    With ``Positives.EQUIVALENTS`` each pair takes, in every epoch, one of its query's positives at random, so both
    kinds of training make the same number of steps.

    Returns:
        A, float32 (dimension, dimension); zero when there is nothing to learn from.
    """
    chosen = np.flatnonzero(learn[pairs.queries])
    dimension = queries.shape[1]
    if not len(chosen):
        return np.zeros((dimension, dimension), dtype=np.float32)
    import torch

    generator = np.random.default_rng((settings.seed, fold))
    with one_thread(torch):
        matrix = torch.zeros((dimension, dimension), dtype=torch.float32, requires_grad=True)
        optimiser = torch.optim.Adam([matrix], lr=settings.learning_rate)
        for _ in range(settings.epochs):
            order = generator.permutation(chosen)
            for start in range(0, len(order), settings.batch):
                batch = order[start : start + settings.batch]
                rows, targets = pairs.queries[batch], pairs.tools[batch]
                if settings.positives is Positives.EQUIVALENTS:
                    targets = _drawn(pairs, rows, generator)
                loss = _loss(torch, matrix, queries, tools, pairs, rows, targets, settings, normalise)
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                optimiser.step()
            if stage is not None:
                stage.advance(1)
        trained: FloatArray = matrix.detach().numpy().copy()
    return trained


def _drawn(pairs: TrainingPairs, rows: LongArray, generator: np.random.Generator) -> LongArray:
    """One positive of each query, each as likely as the others."""
    counts = pairs.offsets[rows + 1] - pairs.offsets[rows]
    picked: LongArray = pairs.positives[pairs.offsets[rows] + generator.integers(0, counts)]
    return picked


def _loss(
    torch: Any,
    matrix: Any,
    queries: FloatArray,
    tools: FloatArray,
    pairs: TrainingPairs,
    rows: LongArray,
    targets: LongArray,
    settings: AdapterSettings,
    normalise: bool,
) -> Any:
    base = torch.from_numpy(queries[rows])
    moved = base + base @ matrix.T
    if normalise:
        moved = torch.nn.functional.normalize(moved, dim=1)
    logits = moved @ torch.from_numpy(tools[targets]).T / settings.temperature
    logits = logits.masked_fill(torch.from_numpy(_other_positives(pairs, rows, targets)), float("-inf"))
    contrast = torch.nn.functional.cross_entropy(logits, torch.arange(len(rows)))
    return contrast + settings.decay * matrix.square().sum()


def _other_positives(pairs: TrainingPairs, rows: LongArray, targets: LongArray) -> npt.NDArray[np.bool_]:
    """Where a column's tool is right for a row's query too and must not count as a negative; bool (rows, rows)."""
    mask = np.zeros((len(rows), len(rows)), dtype=np.bool_)
    for i, row in enumerate(rows.tolist()):
        positives = pairs.positives[pairs.offsets[row] : pairs.offsets[row + 1]]
        place = np.minimum(np.searchsorted(positives, targets), len(positives) - 1)
        mask[i] = positives[place] == targets
        mask[i, i] = False
    return mask


@contextmanager
def one_thread(torch: Any) -> Iterator[None]:
    """Sums on one thread come out the same every time; matrices this small gain nothing from more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
