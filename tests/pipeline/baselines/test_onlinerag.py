from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.baselines.onlinerag import OnlineSettings, Truth, rank_out_of_fold, sample, softmax, stream
from pipeline.baselines.onlinerag_retrieval import retrieve_onlinerag
from pipeline.errors import UsageError
from pipeline.retrieval.adapter import folds_of
from pipeline.retrieval.dense import encode_texts
from pipeline.retrieval.embedding_cache import FolderEmbeddingCache
from pipeline.retrieval.encoder import shared_encoder
from pipeline.retrieval.models import resolve_model
from pipeline.retrieval.progress import Cancelled
from pipeline.retrieval.topk import top_k
from pipeline.scoring.metrics import ndcg
from tests.pipeline.retrieval.small import benchmark, ranking


def problem(queries: int = 60, tools: int = 12, dimension: int = 8, seed: int = 0):
    """Queries near their tool, with an error that is the same for all queries of a tool: feedback can learn it."""
    generator = np.random.default_rng(seed)
    right = np.arange(queries) % tools
    wanted = generator.normal(size=(tools, dimension))
    vectors = wanted[right] + 0.3 * generator.normal(size=(queries, dimension))
    embeddings = wanted + 0.9 * generator.normal(size=(tools, dimension))
    truth = Truth(np.arange(queries + 1, dtype=np.int64), right.astype(np.int32))
    return vectors.astype(np.float32), embeddings.astype(np.float32), truth, [f"query {i}" for i in range(queries)]


def first_right(rankings, truth) -> float:
    return float(np.mean([rankings.tools[q, 0] in truth[q] for q in range(len(rankings.tools))]))


def test_the_update_is_the_stated_one():
    queries, tools, truth, _ = problem()
    settings = OnlineSettings(batch=4)
    order = np.arange(10, dtype=np.int64)
    learned, rewards = stream(queries, tools, truth, order, 0.3, settings, seed=(5,))
    generator = np.random.default_rng((5,))
    theta, right = tools.astype(np.float64), 0
    for step, start in enumerate(range(0, 10, 4), start=1):
        batch = order[start : start + 4]
        logits = queries[batch] @ theta.T
        chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        drawn = sample(chances, generator)
        gradient = np.zeros_like(theta)
        for row, query in enumerate(batch):
            for tool in range(len(theta)):
                weight = chances[row, tool]
                if tool == drawn[row] and tool in truth[int(query)]:
                    weight -= 1 / chances[row, tool]
                    right += 1
                gradient[tool] += weight * queries[query] / len(batch)
        theta -= 0.3 / np.sqrt(step) * gradient
    assert rewards == right > 0
    np.testing.assert_allclose(learned, theta, rtol=1e-4, atol=1e-5)


def test_feedback_on_other_queries_helps():
    queries, tools, truth, texts = problem(600)
    settings = OnlineSettings(learning_rates=(0.0, 0.01, 0.1, 1.0), batch=5)
    frozen = first_right(top_k(queries, tools, 1), truth)
    found = rank_out_of_fold(queries, tools, truth, texts, settings, depth=5)
    assert min(found.learning_rates) > 0 and min(found.rewards) > 0
    assert first_right(found.rankings, truth) > frozen + 0.1


def test_what_is_put_aside_decides_against_a_harmful_rate():
    queries, tools, truth, texts = problem(200)
    found = rank_out_of_fold(queries, tools, truth, texts, OnlineSettings(learning_rates=(0.0, 1e4)), depth=3)
    assert found.learning_rates == (0.0,) * 5
    np.testing.assert_array_equal(found.rankings.tools, top_k(queries, tools, 3).tools)


def test_labels_of_the_fold_left_out_change_nothing_for_it():
    queries, tools, truth, texts = problem(100)
    settings = OnlineSettings(learning_rates=(0.01, 0.1))
    fold = folds_of(texts, 5, settings.seed) == 2
    other = Truth(truth.offsets, np.where(fold, (truth.tools + 1) % 12, truth.tools).astype(np.int32))
    one = rank_out_of_fold(queries, tools, truth, texts, settings)
    two = rank_out_of_fold(queries, tools, other, texts, settings)
    np.testing.assert_array_equal(one.rankings.scores[fold], two.rankings.scores[fold])
    assert one.learning_rates[2] == two.learning_rates[2]
    assert (one.rankings.scores[~fold] != two.rankings.scores[~fold]).any()


def test_the_same_seed_gives_the_same_and_another_seed_another_run():
    queries, tools, truth, texts = problem()
    one, same = (rank_out_of_fold(queries, tools, truth, texts, OnlineSettings(learning_rates=(0.1,))) for _ in "ab")
    np.testing.assert_array_equal(one.rankings.scores, same.rankings.scores)
    other = rank_out_of_fold(queries, tools, truth, texts, OnlineSettings(learning_rates=(0.1,), seed=7))
    assert (one.rankings.scores != other.rankings.scores).any()


def test_projection_keeps_embeddings_in_the_unit_ball():
    queries, tools, truth, _ = problem()
    tools /= np.linalg.norm(tools, axis=1, keepdims=True)
    order = np.arange(60, dtype=np.int64)
    free, _ = stream(queries, tools, truth, order, 1.0, OnlineSettings())
    held, _ = stream(queries, tools, truth, order, 1.0, OnlineSettings(projection=True))
    assert np.linalg.norm(free, axis=1).max() > 1.1
    assert np.linalg.norm(held, axis=1).max() <= 1 + 1e-6


def test_softmax_is_stable_over_many_tools():
    generator = np.random.default_rng(1)
    logits = generator.normal(scale=500, size=(3, 20_476)).astype(np.float32)
    chances = softmax(logits)
    assert np.isfinite(chances).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-12)
    assert (chances.argmax(axis=1) == logits.argmax(axis=1)).all()
    flat = softmax(np.full((1, 20_476), -1e30, dtype=np.float32))
    np.testing.assert_allclose(flat, 1 / 20_476)


def test_samples_follow_the_chances_and_never_hit_an_impossible_tool():
    chances = np.tile([0.0, 0.2, 0.0, 0.8, 0.0], (20_000, 1))
    drawn = sample(chances, np.random.default_rng(2))
    counts = np.bincount(drawn, minlength=5)
    assert counts[[0, 2, 4]].sum() == 0
    assert counts[1] / 20_000 == pytest.approx(0.2, abs=0.01)


def test_it_is_not_defined_for_bm25():
    small = benchmark({"a": "weather"}, {"q": ("weather", ["a"])})
    with pytest.raises(UsageError, match="BM25 has none, so the method is not defined"):
        retrieve_onlinerag(small, resolve_model("bm25"))


def test_settings_that_mean_nothing():
    for wrong in ({"batch": 0}, {"temperature": 0.0}, {"learning_rates": ()}, {"learning_rates": (-1.0,)}):
        with pytest.raises(UsageError, match="OnlineRAG needs"):
            OnlineSettings(**wrong)


def test_a_run_over_a_benchmark(tmp_path: Path):
    tools = {f"t{i}": text for i, text in enumerate(["Weather forecast", "Send an e-mail", "Convert money"])}
    queries = {
        f"q{i}": (f"{text}, number {i}", [f"t{i % 3}"]) for i, text in enumerate(["rain", "letter", "euros"] * 2)
    }
    cache = FolderEmbeddingCache(tmp_path)
    small = benchmark(tools, queries)
    found = retrieve_onlinerag(small, resolve_model("minilm"), cache=cache, depth=2)
    assert {len(ranked) for ranked in ranking(found).values()} == {2}
    assert any("Learning rates chosen" in note for note in found.notes)
    other = retrieve_onlinerag(small, resolve_model("minilm"), settings=OnlineSettings(batch=5), cache=cache, depth=2)
    assert other.contract_hash != found.contract_hash
    assert found.efficiency.llm_calls_per_query is None
    with pytest.raises(Cancelled):
        retrieve_onlinerag(small, resolve_model("minilm"), cache=cache, cancelled=lambda: True)


def apigen(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt") as stream:
        return [row for row in map(json.loads, stream) if row["source"] == "apigen"]


@pytest.mark.slow
@pytest.mark.shared
def test_on_apigen_it_ends_no_lower_than_its_frozen_baseline(shared: Path, tmp_path_factory: pytest.TempPathFactory):
    """Every eighth query, its tools and 100 others: encoding all 3,605 documents takes minutes on two cores."""
    rows = {name: apigen(shared / "data" / f"{name}.jsonl.gz") for name in ("tools", "queries")}
    wanted = rows["queries"][::8]
    labelled = {tool for row in wanted for tool in row["gt_ids"]}
    tools = sorted(rows["tools"], key=lambda row: (row["id"] not in labelled, row["id"]))[: len(labelled) + 100]
    place = {row["id"]: i for i, row in enumerate(tools)}
    model = resolve_model("minilm")
    contract = model.contract("paper")

    def encode(texts):
        cache = FolderEmbeddingCache(tmp_path_factory.mktemp("apigen"))
        return encode_texts(texts, contract, lambda: shared_encoder(model, contract), cache).embeddings

    documents = encode([contract.document(row["documentation"]) for row in tools])
    queries = encode([contract.query(row["query"]) for row in wanted])
    truth = Truth(
        np.concatenate([[0], np.cumsum([len(row["gt_ids"]) for row in wanted])]).astype(np.int64),
        np.array([place[tool] for row in wanted for tool in row["gt_ids"]], dtype=np.int32),
    )

    def score(rankings) -> float:
        return float(
            np.mean(
                [
                    ndcg([str(t) for t in rankings.tools[q].tolist()], frozenset(map(str, truth[q].tolist())), 10)
                    for q in range(len(wanted))
                ]
            )
        )

    frozen = score(top_k(queries, documents, 10))
    online = rank_out_of_fold(queries, documents, truth, [row["query"] for row in wanted], depth=10)
    assert frozen > 0.6
    assert score(online.rankings) >= frozen - 0.002
    assert set(online.learning_rates) <= {1e-8, 1e-7, 1e-6, 1e-5}
