"""OnlineRAG (Pan et al. 2025): tool embeddings that learn from whether a sampled tool was right.

For a query q the tool embeddings Θ give p = softmax(Θq / temperature). One tool i is sampled; the feedback is whether
it is correct. With g_i = (p_i − 1{i sampled and correct} / p_i) q for every tool i, an unbiased estimate of the
cross-entropy's gradient for a query with one correct tool, a batch moves θ_i by −η_t times the mean of its g_i, with
η_t = η0 / √t for the t-th batch; optionally every θ_i is then pulled back into the unit ball.

Each query is ranked by embeddings that never saw it: the training folds' queries stream past once in a seeded order,
then the embeddings are frozen and rank the fold left out. η0 is chosen within the training folds only: a fifth of
their queries is put aside, the rest streams past with each η0 of the grid, and the one with the highest NDCG@10 on the
part put aside is taken, the smallest of equal ones. (The factor 1 / temperature of the gradient is left to η0.)

Within the published range of η0 (1e-8 to 1e-5) and at temperature 1, embeddings of length 1 hardly move: MiniLM on
apigen has NDCG@10 .7128 frozen and .7128 online, with 3 correct samples in 4,000; fixed rates give .7131 (1e-2) and
.6679 (1e-1), and temperature .05 with its 862 correct samples .7129 (1e-2) and .7096 (1e-1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.errors import UsageError
from pipeline.retrieval.adapter import folds_of
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback, Stage
from pipeline.retrieval.rankings import Rankings
from pipeline.retrieval.topk import top_k
from pipeline.run import RunTarget

FloatArray = npt.NDArray[np.float32]
LongArray = npt.NDArray[np.int64]

#: The range that the paper searches.
LEARNING_RATES = (1e-8, 1e-7, 1e-6, 1e-5)
_VALIDATION_PARTS = 5
_CUTOFF = 10


@dataclass(frozen=True)
class OnlineSettings:
    """How embeddings are updated; part of the contract of the runs.

    Attributes:
        learning_rates: η0 to choose from within the training folds; a single one is taken as it is.
        batch: queries between two updates.
        projection: whether embeddings longer than 1 are pulled back to length 1 after every update.
        temperature: inner products are divided by it before the softmax; 1 as published.
        folds: of the cross-validation.
        seed: of folds, order and samples.
    """

    learning_rates: tuple[float, ...] = LEARNING_RATES
    batch: int = 20
    projection: bool = False
    temperature: float = 1.0
    folds: int = 5
    seed: int = 42

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing.

        Raises:
            UsageError: a rate, the batch or the temperature is not above 0.
        """
        if not self.learning_rates or min(self.learning_rates) < 0 or self.batch < 1 or not self.temperature > 0:
            raise UsageError("OnlineRAG needs learning rates of at least 0, a batch of at least 1 and a temperature.")


@dataclass(frozen=True, eq=False)
class Truth:
    """The correct tools of consecutive queries.

    Attributes:
        offsets: int64 (queries + 1): those of query q are ``tools[offsets[q]:offsets[q + 1]]``.
        tools: positions.
    """

    offsets: LongArray
    tools: npt.NDArray[np.int32]

    @classmethod
    def of(cls, target: RunTarget) -> Truth:
        """The annotated tools."""
        return cls(target.truth_offsets, target.truth_tools)

    def __getitem__(self, query: int) -> npt.NDArray[np.int32]:
        """The correct tools of one query."""
        return self.tools[self.offsets[query] : self.offsets[query + 1]]


@dataclass(frozen=True, eq=False)
class OnlineRankings:
    """Out-of-fold rankings.

    Attributes:
        rankings: a row for each query.
        learning_rates: η0 of each fold.
        rewards: samples of each fold's stream that were correct.
    """

    rankings: Rankings
    learning_rates: tuple[float, ...]
    rewards: tuple[int, ...]


def rank_out_of_fold(
    queries: FloatArray,
    tools: FloatArray,
    truth: Truth,
    texts: Sequence[str],
    settings: OnlineSettings = OnlineSettings(),
    *,
    depth: int = 100,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> OnlineRankings:
    """Rank each query by the embeddings that the other folds' queries left behind.

    Args:
        queries: float32 (queries, dimension).
        tools: float32 (tools, dimension), not changed.
        truth: what feedback is given by.
        texts: the queries' texts; equal ones stay in one fold.
        settings: see ``OnlineSettings``.
        depth: results kept for a query, clamped to the number of tools.
        progress: stage ``training``, in streams.
        cancelled: asked after every batch.

    Raises:
        Cancelled: on request.
        UsageError: there are too few distinct queries for the folds.
    """
    fold_of = folds_of(texts, settings.folds, settings.seed)
    trials = len(settings.learning_rates) if len(settings.learning_rates) > 1 else 0
    stage = Stage("training", settings.folds * (trials + 1), progress, cancelled)
    out = Rankings.empty(len(queries), min(depth, len(tools)))
    rates, rewards = [], []
    for fold in range(settings.folds):
        generator = np.random.default_rng([settings.seed, fold])
        train = generator.permutation(np.flatnonzero(fold_of != fold)).astype(np.int64)
        rate = _chosen_rate(queries, tools, truth, train, settings, fold, stage)
        learned, right = stream(queries, tools, truth, train, rate, settings, seed=(settings.seed, fold), stage=stage)
        stage.advance(1)
        test = np.flatnonzero(fold_of == fold)
        found = top_k(queries[test], learned, depth)
        out.tools[test], out.scores[test], out.counts[test] = found.tools, found.scores, found.counts
        rates.append(rate)
        rewards.append(right)
    return OnlineRankings(out, tuple(rates), tuple(rewards))


def _chosen_rate(
    queries: FloatArray,
    tools: FloatArray,
    truth: Truth,
    train: LongArray,
    settings: OnlineSettings,
    fold: int,
    stage: Stage,
) -> float:
    """η0 by the rule of the module; labels of the fold left out are not looked at."""
    rates = sorted(set(settings.learning_rates))
    if len(rates) == 1:
        return rates[0]
    aside = train[: max(1, len(train) // _VALIDATION_PARTS)]
    rest = train[len(aside) :]
    best, best_score = rates[0], -1.0
    for rate in rates:
        learned, _ = stream(queries, tools, truth, rest, rate, settings, seed=(settings.seed, fold), stage=stage)
        score = _ndcg(top_k(queries[aside], learned, _CUTOFF), truth, aside)
        if score > best_score + 1e-9:
            best, best_score = rate, score
        stage.advance(1)
    return best


def stream(
    queries: FloatArray,
    tools: FloatArray,
    truth: Truth,
    order: LongArray,
    rate: float,
    settings: OnlineSettings,
    *,
    seed: Sequence[int] = (42,),
    stage: Stage | None = None,
) -> tuple[FloatArray, int]:
    """Let queries pass by once.

    Args:
        queries: float32 (queries, dimension).
        tools: float32 (tools, dimension), where the embeddings begin; not changed.
        truth: what feedback is given by.
        order: positions of the queries, in the order they come.
        rate: η0.
        settings: batch, projection and temperature.
        seed: of the samples.
        stage: asked after every batch whether to stop.

    Returns:
        (embeddings afterwards, how many samples were correct).
    """
    generator = np.random.default_rng(seed)
    theta = np.array(tools, dtype=np.float32)
    rewards = 0
    for step, start in enumerate(range(0, len(order) if len(theta) else 0, settings.batch), start=1):
        batch = order[start : start + settings.batch]
        vectors = queries[batch]
        chances = softmax(vectors @ theta.T / np.float32(settings.temperature))
        sampled = sample(chances, generator)
        scale = np.float32(rate / np.sqrt(step) / len(batch))
        theta -= scale * (chances.T.astype(np.float32) @ vectors)
        for row, tool in enumerate(sampled.tolist()):
            if tool in truth[int(batch[row])]:
                rewards += 1
                theta[tool] += scale * np.float32(1.0 / chances[row, tool]) * vectors[row]
        if settings.projection:
            theta /= np.maximum(np.linalg.norm(theta, axis=1, keepdims=True), np.float32(1))
        if stage is not None:
            stage.check()
    return theta, rewards


def softmax(logits: FloatArray) -> npt.NDArray[np.float64]:
    """Chances of each row's columns, in float64 and free of overflow; rows sum to 1."""
    shifted = logits.astype(np.float64)
    shifted -= shifted.max(axis=1, keepdims=True)
    np.exp(shifted, out=shifted)
    shifted /= shifted.sum(axis=1, keepdims=True)
    return shifted


def sample(chances: npt.NDArray[np.float64], generator: np.random.Generator) -> LongArray:
    """A column of each row, drawn by its chances; one of chance 0 is never drawn."""
    ends = np.cumsum(chances, axis=1)
    drawn = generator.random(len(chances)) * ends[:, -1]
    places = [int(np.searchsorted(row, point, side="right")) for row, point in zip(ends, drawn, strict=True)]
    found: LongArray = np.minimum(np.array(places, dtype=np.int64), chances.shape[1] - 1)
    return found


def _ndcg(rankings: Rankings, truth: Truth, rows: LongArray) -> float:
    """Mean NDCG@10 of some queries; those without a correct tool count 0."""
    discounts = 1.0 / np.log2(np.arange(2, _CUTOFF + 2))
    total = 0.0
    for place, row in enumerate(rows.tolist()):
        right = truth[row]
        if len(right):
            hits = np.isin(rankings.tools[place, : rankings.counts[place]], right)
            total += float((hits * discounts[: len(hits)]).sum() / discounts[: len(right)].sum())
    return total / len(rows) if len(rows) else 0.0
