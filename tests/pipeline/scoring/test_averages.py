"""Averages over all queries of the benchmark."""

from __future__ import annotations

import random

import polars as pl
import pytest

from pipeline.scoring.averages import SUMMARY, mean, scores_json, summarise
from pipeline.scoring.compiler import compile_benchmark
from pipeline.scoring.scores import score_run
from tests.pipeline.scoring.small_benchmarks import benchmark, run_of

LABELS = {
    "q1": ("web", "s", ["a"], [["b"]]),
    "q2": ("web", "s", ["a"], []),
    "q3": ("web", "t", ["b"], []),
    "q4": ("code", "t", ["c"], []),
}
RESULTS = {"q1": {"b": 1.0}, "q2": {"a": 1.0}, "q4": {"c": 1.0}}


def test_missing_queries_count_and_macro_is_the_mean_of_domain_means() -> None:
    compiled = compile_benchmark(benchmark("abc", LABELS))
    scores = score_run(compiled, run_of(compiled.target, RESULTS))
    summary = summarise(scores, compiled)
    assert dict(summary.schema) == SUMMARY
    at10 = scores_json(summary)
    third = 1 / 3
    assert at10["old"]["Comp@10"] == {
        "macro": (third + 1) / 2,
        "micro": 0.5,
        "domains": {"web": third, "code": 1.0},
        "sources": {"s": 0.5, "t": 0.5},
    }
    assert at10["new"]["NDCG@10"] == {
        "macro": (2 / 3 + 1) / 2,
        "micro": 0.75,
        "domains": {"web": 2 / 3, "code": 1.0},
        "sources": {"s": 1.0, "t": 0.5},
    }
    assert list(at10) == ["old", "new"]
    assert len(at10["old"]) == 12
    counts = summary.filter(metric="NDCG", k=10, view="new").select("average", "domain", "n").rows()
    assert counts == [
        ("macro", None, 4),
        ("micro", None, 4),
        ("domain", "web", 3),
        ("domain", "code", 1),
        ("source", "s", 2),
        ("source", "t", 2),
    ]


def test_stored_per_query_scores_give_the_same_summary() -> None:
    compiled = compile_benchmark(benchmark("abc", LABELS))
    scores = score_run(compiled, run_of(compiled.target, RESULTS), (3, 10))
    keys = ["view", "metric", "k", "average", "domain"]
    from_frame = summarise(scores.per_query, compiled).sort(keys)
    assert from_frame.equals(summarise(scores, compiled).sort(keys))
    with pytest.raises(ValueError, match="not those of the queries"):
        summarise(scores.per_query.reverse(), compiled)


def test_a_domain_without_a_name_is_a_domain() -> None:
    labels = {"q1": ("", "", ["a"], []), "q2": ("web", "", ["b"], [])}
    compiled = compile_benchmark(benchmark("ab", labels))
    summary = summarise(score_run(compiled, run_of(compiled.target, {"q1": {"a": 1.0}})), compiled)
    figures = scores_json(summary)["old"]["NDCG@10"]
    assert figures == {"macro": 0.5, "micro": 0.5, "domains": {"": 1.0, "web": 0.0}, "sources": {"": 0.5}}
    assert summary.filter(pl.col("average") == "macro")["domain"].null_count() == 24


def test_a_mean_does_not_depend_on_the_order_of_queries() -> None:
    rng = random.Random(1)
    values = [rng.random() for _ in range(1000)]
    expected = mean(values)
    for _ in range(20):
        rng.shuffle(values)
        assert mean(values) == expected
