"""Training: folds, negatives, and what is learned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.errors import UsageError
from pipeline.mftr.field_scores import field_scores
from pipeline.mftr.fields import QueryFields, ToolFields
from pipeline.mftr.folds import query_folds, tool_disjoint_folds, training_queries
from pipeline.mftr.lexical_fields import Bm25Fields
from pipeline.mftr.negatives import bm25_negatives, hard_negatives
from pipeline.mftr.schema import Field
from pipeline.mftr.search import combine, search
from pipeline.mftr.settings import PAPER, V2, MftrSettings, Penalty, Weighting, preset
from pipeline.mftr.training import TrainingScores, labels_of, train, train_folds, training_scores
from pipeline.retrieval.documents import run_target
from pipeline.retrieval.progress import Cancelled, Progress
from tests.pipeline.mftr.small_fields import query, random_dense, random_queries, random_tools, tool
from tests.pipeline.retrieval.small import benchmark


def drawn(queries: int, tools: int, seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Random labels and negatives."""
    rng = np.random.default_rng(seed)
    rows = [rng.choice(tools, 12, replace=False).astype(np.int32) for _ in range(queries)]
    return [row[: 1 + q % 2] for q, row in enumerate(rows)], [row[2:] for row in rows]


def test_folds_are_shuffled_slices_of_nearly_equal_size() -> None:
    folds = query_folds(101, PAPER)
    assert sorted(np.bincount(folds).tolist()) == [20, 20, 20, 20, 21]
    assert (folds == query_folds(101, PAPER)).all()
    assert (folds != query_folds(101, replace(PAPER, seed=1))).any()
    assert not (np.diff(folds) >= 0).all()
    with pytest.raises(UsageError, match="5 folds need as many queries; there are 4"):
        query_folds(4, PAPER)


def test_tool_disjoint_folds_learn_from_no_query_that_shares_a_tested_tool() -> None:
    labels, _ = drawn(120, 40)
    settings = replace(PAPER, tool_disjoint=True)
    folds = tool_disjoint_folds(labels, settings)
    assert set(folds.tolist()) == {0, 1, 2, 3, 4}
    shared = 0
    for fold in range(5):
        learns = training_queries(fold, folds, labels, settings)
        assert len(learns) and (folds[learns] != fold).all()
        tested = {int(t) for q in np.flatnonzero(folds == fold) for t in labels[q]}
        assert not any(tested & set(labels[q].tolist()) for q in learns.tolist())
        everything = training_queries(fold, folds, labels, PAPER)
        assert set(learns.tolist()) <= set(everything.tolist())
        shared += len(everything) - len(learns)
    assert shared > 0
    with pytest.raises(UsageError, match="there are 1"):
        tool_disjoint_folds([np.array([3])] * 9, settings)


def test_negatives_are_bm25_s_first_results_without_labels_then_the_rest_by_id() -> None:
    documents = ["weather", "weather city", "stock", "weather rain snow", "token"]
    right = [np.array([0], dtype=np.int32)]
    found = bm25_negatives(documents, ["weather"], right, PAPER)
    assert [negative.tolist() for negative in found] == [[1, 3, 4, 2]]
    few = bm25_negatives(documents, ["weather"], right, replace(PAPER, negatives=2))
    assert few[0].tolist() == [1, 3]
    shallow = bm25_negatives(documents, ["weather"], right, replace(PAPER, negative_depth=2))
    assert shallow[0].tolist() == [1]
    assert bm25_negatives([], ["weather"], [np.empty(0, dtype=np.int32)], PAPER)[0].tolist() == []


def test_v2_takes_no_tool_of_a_valid_combination_as_a_negative() -> None:
    tools = {"a": "weather", "b": "weather forecast", "c": "weather map"}
    small = benchmark(tools, {"q": ("weather", ["a"])}, combinations=[("q", ["a"]), ("q", ["b"])])
    target = run_target(small)
    assert sorted(hard_negatives(small, target, PAPER)[0].tolist()) == [1, 2]
    assert hard_negatives(small, target, V2)[0].tolist() == [2]
    assert [labels.tolist() for labels in labels_of(target)] == [[0]]


@pytest.mark.parametrize("settings", [PAPER, V2])
def test_training_sees_the_scores_that_search_ranks_by(settings: MftrSettings) -> None:
    tools, queries = random_tools(40), random_queries(9)
    scorer = random_dense(tools, queries)
    labels, negatives = drawn(9, 40)
    kept = training_scores(scorer, settings, labels, negatives)
    whole = field_scores(scorer, settings, 0, 9)
    offsets, places = tools[Field.PARAMETERS].offsets, tools[Field.PARAMETERS].places
    item = 0
    for q in range(9):
        assert kept.offsets[q] == item and kept.positives[q] == len(labels[q])
        for t in [*labels[q].tolist(), *negatives[q].tolist()]:
            assert kept.fields[item].tolist() == whole.fields[q, :, t].tolist()
            span = slice(kept.parameter_offsets[item], kept.parameter_offsets[item + 1])
            here = slice(offsets[t], offsets[t + 1]) if whole.charged[q] else slice(0, 0)
            assert kept.parameters[span].tolist() == whole.parameters[q][places[here]].tolist()
            assert kept.required[span].tolist() == tools.required[here].tolist()
            item += 1
    assert kept.offsets[-1] == item
    pairs = kept.pairs(np.array([1, 4]))
    assert len(pairs) == len(labels[1]) * 10 + len(labels[4]) * 10


@pytest.mark.parametrize("penalty", list(Penalty))
def test_one_step_follows_the_gradient_of_the_pairwise_loss(penalty: Penalty) -> None:
    """Adam's first step moves every parameter by the learning rate against the sign of its gradient."""
    tools, queries = random_tools(40), random_queries(9)
    scorer = random_dense(tools, queries)
    labels, negatives = drawn(9, 40)
    settings = replace(PAPER, penalty=penalty, epochs=1, batch=10_000, learning_rate=1e-3)
    scores = training_scores(scorer, settings, labels, negatives)
    everything = np.arange(9)
    before, loss = train(scores, everything, replace(settings, learning_rate=1e-12))
    after, _ = train(scores, everything, settings)

    def loss_at(values: np.ndarray) -> float:
        return plain_loss(scores, values, settings)

    def inverse(charge: float) -> float:
        return float(np.log(np.expm1(charge))) if charge else 0.0

    start = np.array([*before.weights, before.tau, inverse(before.required), inverse(before.optional)])
    end = np.array([*after.weights, after.tau, inverse(after.required), inverse(after.optional)])
    assert loss == pytest.approx(loss_at(start), abs=1e-5)
    for i in range(len(start) if penalty is not Penalty.NONE else 4):
        nudge = np.zeros(len(start))
        nudge[i] = 1e-5
        slope = (loss_at(start + nudge) - loss_at(start - nudge)) / 2e-5
        assert abs(slope) > 1e-4
        assert end[i] - start[i] == pytest.approx(-1e-3 * np.sign(slope), abs=2e-5)
    if penalty is Penalty.NONE:
        assert (before.required, before.optional, after.required) == (0, 0, 0)


def plain_loss(scores: TrainingScores, values: np.ndarray, settings: MftrSettings) -> float:
    """The mean of log(1 + exp(−(S⁺ − S⁻))) in float64; the charges of ``values`` are before softplus."""
    sign = -1.0 if settings.penalty is Penalty.PRINTED_SIGN else 1.0
    totals = scores.fields.astype(np.float64) @ values[:4]
    if settings.penalty is not Penalty.NONE:
        for item in range(len(totals)):
            span = slice(scores.parameter_offsets[item], scores.parameter_offsets[item + 1])
            missing = 1 / (1 + np.exp(-sign * settings.alpha * (values[4] - scores.parameters[span].astype(float))))
            charge = np.where(scores.required[span], np.log1p(np.exp(values[5])), np.log1p(np.exp(values[6])))
            totals[item] -= (missing * charge).sum()
    pairs = scores.pairs(np.arange(len(scores.positives)))
    return float(np.log1p(np.exp(totals[pairs[:, 1]] - totals[pairs[:, 0]])).mean())


def test_it_learns_which_field_tells_tools_apart() -> None:
    """Right tools answer in the examples; descriptions mislead."""
    words = [f"word{i}" for i in range(30)]
    tools = ToolFields([tool(f"t{i:02}", words[(i + 7) % 30], [("x", True)], "same", [words[i]]) for i in range(30)])
    queries = QueryFields([query(f"q{i:02}", words[i]) for i in range(30)])
    scorer = Bm25Fields(tools, queries)
    labels = [np.array([i], dtype=np.int32) for i in range(30)]
    negatives = [np.array([j for j in range(30) if j != i], dtype=np.int32) for i in range(30)]
    for settings in (PAPER, V2):
        learned = train_folds(scorer, settings, labels, negatives)
        for fold in learned.folds:
            assert fold.weights[3] > fold.weights[0] + 0.2
        assert max(learned.losses) < 0.69
        assert (search(scorer, settings, learned, 1).tools[:, 0] == np.arange(30)).all()


def test_training_repeats_itself_and_the_seed_matters() -> None:
    scorer = random_dense(random_tools(40), random_queries(20))
    labels, negatives = drawn(20, 40)
    first = train_folds(scorer, PAPER, labels, negatives)
    assert train_folds(scorer, PAPER, labels, negatives).folds == first.folds
    assert train_folds(scorer, replace(PAPER, seed=7), labels, negatives).folds != first.folds
    assert len({fold.weights for fold in first.folds}) == 5


def test_clamps_hold_and_options_are_obeyed() -> None:
    scorer = Bm25Fields(random_tools(40), random_queries(30))
    labels, negatives = drawn(30, 40)

    def folds(settings: MftrSettings) -> tuple[object, ...]:
        return train_folds(scorer, settings, labels, negatives).folds

    free = train_folds(scorer, replace(PAPER, tau_clamped=False, tau_initial=3.0), labels, negatives).folds
    assert any(not 0 <= fold.tau <= 1 for fold in free)
    clamped = train_folds(scorer, replace(PAPER, tau_initial=3.0), labels, negatives).folds
    assert all(0 <= fold.tau <= 1 for fold in clamped)
    assert any(min(fold.weights) < 0 for fold in clamped)
    bounded = train_folds(scorer, replace(PAPER, nonnegative=True), labels, negatives).folds
    assert all(min(fold.weights) >= 0 for fold in bounded)
    assert all(fold.required > 0 and fold.optional > 0 for fold in bounded)
    masked = train_folds(scorer, replace(PAPER, fields=(Field.RESPONSE,)), labels, negatives).folds
    assert all(fold.weights[i] == 0 for fold in masked for i in (0, 1, 3))
    mean = train_folds(scorer, replace(PAPER, weighting=Weighting.MEAN), labels, negatives)
    assert mean.folds[0].weights == (0.25, 0.25, 0.25, 0.25) and mean.losses == ()
    disjoint = train_folds(scorer, replace(PAPER, tool_disjoint=True), labels, negatives)
    assert len(disjoint.folds) == 5
    assert folds(PAPER) != disjoint.folds


def test_a_query_without_labels_or_negatives_adds_no_pair() -> None:
    scorer = Bm25Fields(random_tools(40), random_queries(10))
    labels, negatives = drawn(10, 40)
    labels[3], negatives[5] = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32)
    scores = training_scores(scorer, PAPER, labels, negatives)
    assert len(scores.pairs(np.array([3, 5]))) == 0
    with pytest.raises(UsageError, match="Fold 2 has nothing to learn from"):
        train(scores, np.array([3, 5]), PAPER, fold=2)


def test_progress_is_told_and_training_can_be_stopped() -> None:
    scorer = Bm25Fields(random_tools(40), random_queries(20))
    labels, negatives = drawn(20, 40)
    told: list[Progress] = []
    train_folds(scorer, PAPER, labels, negatives, progress=told.append)
    assert {step.stage for step in told} == {"training scores", "training"}
    assert (told[-1].done, told[-1].total) == (25, 25)
    with pytest.raises(Cancelled):
        train_folds(scorer, PAPER, labels, negatives, cancelled=lambda: len(told) > 0)


def test_presets_by_name_and_settings_in_the_identity() -> None:
    assert preset("paper") is PAPER and preset("v2") is V2
    with pytest.raises(UsageError, match='"v3"; choose paper or v2'):
        preset("v3")
    with pytest.raises(UsageError, match="folds is 1"):
        replace(PAPER, folds=1)
    with pytest.raises(UsageError, match="at least one field"):
        replace(PAPER, fields=())
    hashes = {s.contract_hash(base) for s in (PAPER, V2, replace(PAPER, seed=1)) for base in ("a", "b")}
    assert len(hashes) == 6
    assert PAPER.contract_hash("a") == MftrSettings().contract_hash("a")


def test_combined_scores_of_learned_folds_use_each_query_s_own_fold() -> None:
    tools, queries = random_tools(40), random_queries(20)
    scorer = random_dense(tools, queries)
    labels, negatives = drawn(20, 40)
    learned = train_folds(scorer, PAPER, labels, negatives)
    totals = combine(scorer, PAPER, learned, field_scores(scorer, PAPER, 0, 20))
    assert set(learned.fold_of.tolist()) == {0, 1, 2, 3, 4}
    for q in range(20):
        alone = replace(learned, folds=(learned.folds[int(learned.fold_of[q])],), fold_of=np.zeros(20, dtype=np.int64))
        assert combine(scorer, PAPER, alone, field_scores(scorer, PAPER, 0, 20))[q].tolist() == totals[q].tolist()
