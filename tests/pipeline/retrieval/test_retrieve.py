from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import ModelError, UsageError
from pipeline.formats.benchmark_folder import read_benchmark_folder
from pipeline.retrieval.dense import distinct_texts, encode_texts
from pipeline.retrieval.embedding_cache import FolderEmbeddingCache
from pipeline.retrieval.encoder import shared_encoder
from pipeline.retrieval.models import resolve_model
from pipeline.retrieval.progress import Progress
from pipeline.retrieval.rankings import run_frame
from pipeline.retrieval.retrieve import Method, Retrieval, retrieval_texts, retrieve
from pipeline.scoring.compiler import compile_benchmark
from tests.pipeline.retrieval.small import benchmark, old_figures, ranking

REPOSITORY = Path(__file__).parents[3]
TOOLS = {
    "mail": "Send an e-mail message to a recipient",
    "rain": "Weather forecast for a city",
    "yen": "Convert money between currencies",
    "éclair": "Find a recipe for a dessert",
}
QUERIES = {"q2": ("How many dollars are 50 euros?", ["yen"]), "q1": ("Will I need an umbrella in Oslo?", ["rain"])}


def test_minilm_finds_what_shares_no_word(tmp_path: Path) -> None:
    small = benchmark(TOOLS, QUERIES)
    found = retrieve(small, resolve_model("minilm"), cache=FolderEmbeddingCache(tmp_path))
    assert {query: tools[0] for query, tools in ranking(found).items()} == {"q1": "rain", "q2": "yen"}
    cost = found.efficiency
    assert (cost.dimension, cost.parameters, cost.index_bytes) == (384, 22_700_000, 4 * 384 * 4)
    assert cost.encode_seconds_per_1000_documents is not None
    assert cost.encode_seconds_per_1000_documents > 0
    again = retrieve(small, resolve_model("minilm"), cache=FolderEmbeddingCache(tmp_path))
    assert again.run.ranking_hash == found.run.ranking_hash
    np.testing.assert_array_equal(again.run.scores, found.run.scores)
    assert again.efficiency.encode_seconds_per_1000_documents == pytest.approx(
        cost.encode_seconds_per_1000_documents, rel=1e-3
    )


def test_the_run_is_over_the_ids_that_scoring_uses() -> None:
    small = benchmark(TOOLS, QUERIES)
    found = retrieve(small, resolve_model("bm25"))
    target = compile_benchmark(small).target
    assert found.target.queries.ids == target.queries.ids == ["q1", "q2"]
    assert found.target.tools.ids == target.tools.ids
    np.testing.assert_array_equal(found.target.truth_offsets, target.truth_offsets)
    np.testing.assert_array_equal(found.target.truth_tools, target.truth_tools)


def test_a_run_as_rows() -> None:
    small = benchmark({"a": "weather", "b": "weather city"}, {"q": ("city weather", ["a"])})
    found = retrieve(small, resolve_model("bm25"))
    frame = run_frame(found.run, found.target)
    assert frame.columns == ["query_id", "tool_id", "score"]
    assert frame["tool_id"].to_list() == ["b", "a"]


def test_sharded_encoding_leaves_nothing_to_encode(tmp_path: Path) -> None:
    small = benchmark(TOOLS, QUERIES)
    model = resolve_model("minilm")
    contract = model.contract("paper")
    texts = retrieval_texts(small, contract, Method.FULL_DOC)
    todo = distinct_texts([*texts.documents, *texts.queries], contract)
    for start in range(0, len(todo), 4):
        encode_texts(
            todo[start : start + 4],
            contract,
            lambda: shared_encoder(model, contract),
            FolderEmbeddingCache(tmp_path),
        )
    seen: list[Progress] = []
    retrieve(small, model, preset="paper", cache=FolderEmbeddingCache(tmp_path), progress=seen.append)
    assert [(p.stage, p.done, p.total) for p in seen if p.stage != "search"] == [
        ("documents", 4, 4),
        ("queries", 2, 2),
    ]


def test_options_that_do_not_fit() -> None:
    small = benchmark(TOOLS, QUERIES)
    model = resolve_model("bm25")
    with pytest.raises(UsageError, match="Unknown method"):
        retrieve(small, model, "full")
    with pytest.raises(UsageError, match="depth is 0"):
        retrieve(small, model, depth=0)
    with pytest.raises(UsageError, match="BM25 has none"):
        retrieve(small, model, "adapter")
    with pytest.raises(ModelError, match="Unknown preset"):
        retrieve(small, model, preset="mine")


def test_importing_it_and_searching_with_bm25_loads_no_torch() -> None:
    code = (
        "import sys; from pipeline.retrieval import retrieve, probe, models, adapted\n"
        "models.resolve_model('minilm').contract()\n"
        "print([m for m in ('torch', 'sentence_transformers', 'litellm', 'bm25s', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture(scope="module")
def minilm(shared: Path, embeddings: FolderEmbeddingCache) -> dict[str, Retrieval]:
    loaded = read_benchmark_folder(shared / "benchmarks" / "apibank")
    model = resolve_model("minilm")
    return {preset: retrieve(loaded, model, preset=preset, cache=embeddings) for preset in ("card", "paper")}


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize(("preset", "ndcg", "recall"), [("paper", 0.6112, 0.7442), ("card", 0.6026, 0.7335)])
def test_minilm_full_doc_on_apibank(
    shared: Path, minilm: dict[str, Retrieval], preset: str, ndcg: float, recall: float
) -> None:
    figures = old_figures(shared / "benchmarks" / "apibank", minilm[preset])
    assert figures == pytest.approx((ndcg, recall), abs=5e-4)
