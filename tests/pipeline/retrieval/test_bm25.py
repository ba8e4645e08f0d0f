from __future__ import annotations

import random
from pathlib import Path

import bm25s
import numpy as np
import pytest

from pipeline.formats.benchmark_folder import read_benchmark_folder
from pipeline.retrieval.bm25 import Bm25Index, query_terms
from pipeline.retrieval.models import resolve_model
from pipeline.retrieval.retrieve import retrieve
from tests.pipeline.retrieval.small import benchmark, old_figures, ranking

WORDS = [
    "weather",
    "city",
    "convert",
    "currency",
    "amount",
    "mail",
    "send",
    "file",
    "image",
    "text",
    "search",
    "flight",
    "book",
    "price",
    "map",
]


def texts(count: int, seed: int, longest: int = 8) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, longest))) for _ in range(count)]


@pytest.mark.parametrize("depth", [1, 7, 100, 5000])
def test_scores_and_order_are_those_of_bm25s_with_ties_by_position_descending(depth: int) -> None:
    documents, queries = texts(3000, 1), texts(200, 2)
    reference = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    reference.index(bm25s.tokenize(documents, stopwords="english", show_progress=False), show_progress=False)
    index = Bm25Index(documents)
    found = index.search(queries, depth)
    for row, terms in enumerate(query_terms(queries)):
        scores = reference.get_scores(terms)
        order = np.lexsort((np.arange(len(scores)), scores))[::-1][:depth]
        order = order[scores[order] > 0]
        assert found.counts[row] == len(order)
        np.testing.assert_array_equal(found.tools[row, : len(order)], order)
        np.testing.assert_array_equal(found.scores[row, : len(order)], scores[order])
        np.testing.assert_array_equal(index.scores(queries[row]), scores)


def test_documents_that_share_no_term_are_left_out() -> None:
    found = Bm25Index(["weather city", "currency", "weather"]).search(["weather", "flight", "the of", ""], 3)
    assert found.counts.tolist() == [2, 0, 0, 0]


def test_a_query_without_terms_is_the_literal_none() -> None:
    assert query_terms(["the", "", "Weather!"]) == [["NONE"], ["NONE"], ["weather"]]


def test_blank_documents_and_an_empty_corpus() -> None:
    assert Bm25Index(["", "  "]).search(["weather"], 10).counts.tolist() == [0]
    assert Bm25Index([]).search(["weather"], 10).counts.tolist() == [0]
    assert Bm25Index(["", "weather"]).search(["weather"], 10).tools[0, 0] == 1


def test_equal_documents_go_by_id_bytes_descending_at_the_cut_too() -> None:
    small = benchmark({f"t{i:02}": "weather in a city" for i in range(40)}, {"q": ("weather", ["t00"])})
    found = retrieve(small, resolve_model("bm25"), depth=5)
    assert ranking(found) == {"q": ["t39", "t38", "t37", "t36", "t35"]}


def test_the_instruction_comes_before_the_query_when_it_is_wanted() -> None:
    tools = {"a": "weather", "b": "currency"}
    small = benchmark(tools, {"q": ("weather", ["a"])}, instruction="currency currency")
    model = resolve_model("bm25")
    assert ranking(retrieve(small, model)) == {"q": ["a"]}
    assert ranking(retrieve(small, model, instruction=True)) == {"q": ["b", "a"]}
    assert retrieve(small, model).contract_hash != retrieve(small, model, instruction=True).contract_hash


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "ndcg", "recall"), [("apibank", 0.5167, 0.6139), ("gorilla-huggingface", 0.2379, 0.3520)]
)
def test_full_doc_figures_of_the_mftr_paper(shared: Path, name: str, ndcg: float, recall: float) -> None:
    folder = shared / "benchmarks" / name
    found = retrieve(read_benchmark_folder(folder), resolve_model("bm25"), preset="paper")
    assert [round(value, 4) for value in old_figures(folder, found)] == [ndcg, recall]
