from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.errors import BenchmarkError, UsageError
from pipeline.retrieval.adapted import training_pairs
from pipeline.retrieval.adapter import (
    AdapterSettings,
    Positives,
    TrainingPairs,
    _other_positives,
    adapt_out_of_fold,
    apply_adapter,
    folds_of,
    train_adapter,
)
from pipeline.retrieval.documents import run_target
from pipeline.retrieval.models import resolve_model
from pipeline.retrieval.progress import Cancelled, Progress
from pipeline.retrieval.retrieve import retrieve
from tests.pipeline.retrieval.small import benchmark


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def turned() -> tuple[np.ndarray, np.ndarray, TrainingPairs]:
    """Queries are their tools seen through a fixed rotation, with noise: something linear to learn."""
    draw = np.random.default_rng(0)
    tools = unit(draw.standard_normal((60, 16)))
    rotation = np.linalg.qr(draw.standard_normal((16, 16)))[0]
    truth = np.arange(300) % 60
    queries = unit(0.3 * tools[truth] + tools[truth] @ rotation + 0.1 * draw.standard_normal((300, 16)))
    pairs = TrainingPairs(np.arange(300), truth, np.arange(301), truth)
    return queries, tools, pairs


def hits(queries: np.ndarray, tools: np.ndarray, truth: np.ndarray) -> float:
    return float(((queries @ tools.T).argmax(axis=1) == truth).mean())


SETTINGS = AdapterSettings(epochs=30, learning_rate=0.02)


def test_it_learns_what_is_linear_and_out_of_fold_queries_profit(
    turned: tuple[np.ndarray, np.ndarray, TrainingPairs],
) -> None:
    queries, tools, pairs = turned
    fold_of = folds_of([str(i) for i in range(300)], 5, 42)
    adapted = adapt_out_of_fold(queries, tools, pairs, fold_of, SETTINGS)
    assert hits(queries, tools, pairs.tools) < 0.4
    assert hits(adapted, tools, pairs.tools) > 0.9
    assert np.linalg.norm(adapted, axis=1) == pytest.approx(np.ones(300), abs=1e-6)


def test_a_query_is_adapted_without_its_own_labels(turned: tuple[np.ndarray, np.ndarray, TrainingPairs]) -> None:
    queries, tools, pairs = turned
    fold_of = folds_of([str(i) for i in range(300)], 5, 42)
    wrong = np.where(fold_of == 2, (pairs.tools + 1) % 60, pairs.tools)
    other = TrainingPairs(pairs.queries, wrong, pairs.offsets, wrong)
    few = replace(SETTINGS, epochs=3)
    one = adapt_out_of_fold(queries, tools, pairs, fold_of, few)
    two = adapt_out_of_fold(queries, tools, other, fold_of, few)
    np.testing.assert_array_equal(one[fold_of == 2], two[fold_of == 2])
    assert not np.array_equal(one[fold_of == 1], two[fold_of == 1])


def test_the_same_seed_gives_the_same_bits_whatever_the_threads(
    turned: tuple[np.ndarray, np.ndarray, TrainingPairs],
) -> None:
    import torch

    queries, tools, pairs = turned
    learn = np.ones(300, dtype=bool)
    few = replace(SETTINGS, epochs=2)
    before = torch.get_num_threads()
    one = train_adapter(queries, tools, pairs, learn, few)
    torch.set_num_threads(1)
    two = train_adapter(queries, tools, pairs, learn, few)
    torch.set_num_threads(before)
    np.testing.assert_array_equal(one, two)
    assert torch.get_num_threads() == before
    assert not np.array_equal(one, train_adapter(queries, tools, pairs, learn, replace(few, seed=1)))


def test_it_starts_from_the_retriever_itself(turned: tuple[np.ndarray, np.ndarray, TrainingPairs]) -> None:
    queries, tools, pairs = turned
    matrix = train_adapter(queries, tools, pairs, np.ones(300, dtype=bool), replace(SETTINGS, epochs=0))
    assert not matrix.any()
    np.testing.assert_allclose(apply_adapter(matrix, queries, normalise=True), queries, rtol=1e-6)
    assert not train_adapter(queries, tools, pairs, np.zeros(300, dtype=bool), SETTINGS).any()


def test_other_right_tools_are_no_negatives() -> None:
    pairs = TrainingPairs(np.array([0, 1, 1]), np.array([5, 6, 7]), np.array([0, 2, 4]), np.array([5, 7, 6, 7]))
    mask = _other_positives(pairs, np.array([0, 1, 1]), np.array([5, 6, 7]))
    assert mask.tolist() == [[False, False, True], [False, False, True], [False, True, False]]


def test_folds_are_seeded_even_and_keep_equal_texts_together() -> None:
    texts = [f"query {i % 90}" for i in range(100)]
    folds = folds_of(texts, 5, 7)
    assert folds[:10].tolist() == folds[90:].tolist()
    assert np.bincount(folds[:90]).tolist() == [18] * 5
    assert folds.tolist() == folds_of(texts, 5, 7).tolist() != folds_of(texts, 5, 8).tolist()
    with pytest.raises(UsageError, match="there are 3"):
        folds_of(["a", "b", "c", "a"], 5, 7)


def test_reports_and_stops(turned: tuple[np.ndarray, np.ndarray, TrainingPairs]) -> None:
    queries, tools, pairs = turned
    fold_of = folds_of([str(i) for i in range(300)], 5, 42)
    seen: list[Progress] = []
    few = replace(SETTINGS, epochs=2)
    adapt_out_of_fold(queries, tools, pairs, fold_of, few, progress=seen.append)
    assert (seen[-1].stage, seen[-1].done, seen[-1].total) == ("training", 10, 10)
    with pytest.raises(Cancelled):
        adapt_out_of_fold(queries, tools, pairs, fold_of, few, cancelled=lambda: True)


SMALL = benchmark(
    {"a": "send mail", "b": "post a letter", "c": "rain", "d": "snow"},
    {f"q{i}": (f"number {i} of the mails", ["a"]) for i in range(6)},
    combinations=[(f"q{i}", ["a"]) for i in range(6)] + [("q0", ["b"]), ("q0", ["c"])],
)


def test_positives_are_the_annotated_tools_or_every_valid_one() -> None:
    target = run_target(SMALL)
    one = training_pairs(SMALL, target, Positives.GROUND_TRUTH)
    assert (one.positives.tolist(), one.offsets.tolist()) == ([0] * 6, [0, 1, 2, 3, 4, 5, 6])
    every = training_pairs(SMALL, target, Positives.EQUIVALENTS)
    assert (every.positives.tolist(), every.offsets.tolist()) == ([0, 1, 2, 0, 0, 0, 0, 0], [0, 3, 4, 5, 6, 7, 8])
    np.testing.assert_array_equal(one.tools, every.tools)
    bare = benchmark({"a": "x"}, {"q": ("y", ["a"])})
    with pytest.raises(BenchmarkError, match="no equivalents to train with"):
        training_pairs(bare, run_target(bare), Positives.EQUIVALENTS)


def test_the_adapter_as_a_method() -> None:
    model = resolve_model("minilm")
    found = retrieve(SMALL, model, "adapter")
    assert found.run.queries_answered == 6
    assert "never saw it" in found.notes[0]
    hashes = {
        model.contract().hash,
        found.contract_hash,
        retrieve(SMALL, model, "adapter", positives="equivalents").contract_hash,
        retrieve(SMALL, model, "adapter", seed=1).contract_hash,
    }
    assert len(hashes) == 4
    with pytest.raises(UsageError, match="Unknown positives"):
        retrieve(SMALL, model, "adapter", positives="all")
