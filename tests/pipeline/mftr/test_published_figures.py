"""The figures of the MFTR paper's published data on APIBank, which every part of the method must reproduce."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pipeline.benchmark import Benchmark
from pipeline.formats.benchmark_folder import read_benchmark_folder
from pipeline.mftr.dense_fields import DenseFields, encode_fields
from pipeline.mftr.explain import explain
from pipeline.mftr.field_scores import FieldScorer
from pipeline.mftr.fields import QueryFields, ToolFields, query_fields, tool_fields
from pipeline.mftr.files import read_rewritten, read_standardized
from pipeline.mftr.learned_parameters import (
    LearnedFolds,
    LearnedTable,
    mean_of_fields,
    published_folds,
    read_learned,
    weight_shares,
)
from pipeline.mftr.lexical_fields import Bm25Fields
from pipeline.mftr.negatives import hard_negatives
from pipeline.mftr.schema import Field
from pipeline.mftr.search import search
from pipeline.mftr.settings import PAPER, MftrSettings, Penalty, Weighting
from pipeline.mftr.training import labels_of, train_folds
from pipeline.retrieval.bm25 import Bm25Index
from pipeline.retrieval.documents import documents_in_order, queries_in_order, run_target
from pipeline.retrieval.embedding_cache import FolderEmbeddingCache
from pipeline.retrieval.models import resolve_model
from pipeline.run import RunTarget
from pipeline.scoring.averages import scores_json, summarise
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.compiler import compile_benchmark
from pipeline.scoring.scores import score_run

pytestmark = pytest.mark.shared

MEAN = replace(PAPER, weighting=Weighting.MEAN)


@dataclass(frozen=True)
class ApiBank:
    """The published documents, queries and parameters of APIBank."""

    benchmark: Benchmark
    target: RunTarget
    compiled: CompiledBenchmark
    tools: ToolFields
    queries: QueryFields
    learned: LearnedTable

    def figures(self, scorer: FieldScorer, settings: MftrSettings, learned: LearnedFolds) -> list[float]:
        """[NDCG@10, Recall@10] against the one label, mean over queries."""
        run = search(scorer, settings, learned).run(self.target)
        old = scores_json(summarise(score_run(self.compiled, run), self.compiled))["old"]
        return [old["NDCG@10"]["micro"], old["Recall@10"]["micro"]]

    def rounded(self, scorer: FieldScorer, settings: MftrSettings, learned: LearnedFolds) -> list[float]:
        return [round(figure, 4) for figure in self.figures(scorer, settings, learned)]

    def published(self, model: str) -> LearnedFolds:
        return published_folds(self.learned["apibank"][model], self.queries.queries)


@pytest.fixture(scope="module")
def apibank(shared: Path) -> ApiBank:
    data = shared / "data" / "mftr"
    benchmark = read_benchmark_folder(shared / "benchmarks" / "apibank")
    target = run_target(benchmark)
    rewritten = read_rewritten(data / "rewritten_queries.jsonl")
    mine = [query for query in rewritten.queries if rewritten.beside[query.query_id]["dataset"] == "apibank"]
    return ApiBank(
        benchmark,
        target,
        compile_benchmark(benchmark),
        tool_fields(read_standardized(data / "standardized_tools_apibank.jsonl").tools, target.tools),
        query_fields(mine, target.queries),
        read_learned(data / "learned_params.json"),
    )


@pytest.fixture(scope="module")
def bm25(apibank: ApiBank) -> Bm25Fields:
    return Bm25Fields(apibank.tools, apibank.queries)


def test_bm25_with_the_published_parameters(apibank: ApiBank, bm25: Bm25Fields) -> None:
    assert apibank.rounded(bm25, PAPER, apibank.published("bm25__0")) == [0.6704, 0.6906]


def test_the_sign_that_the_paper_prints_is_an_erratum(apibank: ApiBank, bm25: Bm25Fields) -> None:
    printed = replace(PAPER, penalty=Penalty.PRINTED_SIGN)
    assert apibank.rounded(bm25, printed, apibank.published("bm25__0")) == [0.6323, 0.6221]


def test_the_plain_mean_of_the_four_fields_by_bm25(apibank: ApiBank, bm25: Bm25Fields) -> None:
    assert apibank.rounded(bm25, MEAN, mean_of_fields(len(apibank.queries)))[0] == 0.6495


@pytest.fixture(scope="module")
def minilm(apibank: ApiBank, embeddings: FolderEmbeddingCache) -> dict[str, DenseFields]:
    """With the prefix of the paper's harness before every need and argument, and without it."""
    model = resolve_model("minilm")
    paper = model.contract("paper")
    bare = replace(paper, query_format="{query}", bare_query_format="{query}")
    return {
        name: encode_fields(apibank.tools, apibank.queries, model, contract, embeddings)
        for name, contract in (("prefix", paper), ("no prefix", bare))
    }


@pytest.mark.slow
@pytest.mark.parametrize(("name", "wanted"), [("prefix", [0.7237, 0.7863]), ("no prefix", [0.7197, 0.7764])])
def test_minilm_with_the_published_parameters(
    apibank: ApiBank, minilm: dict[str, DenseFields], name: str, wanted: list[float]
) -> None:
    assert apibank.rounded(minilm[name], PAPER, apibank.published("all-MiniLM-L6-v2__16")) == wanted


@pytest.mark.slow
def test_the_plain_mean_of_the_four_fields_by_minilm(apibank: ApiBank, minilm: dict[str, DenseFields]) -> None:
    assert apibank.rounded(minilm["prefix"], MEAN, mean_of_fields(len(apibank.queries)))[0] == 0.7138


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        (PAPER, [0.6700, 0.6939]),
        (replace(PAPER, penalty=Penalty.NONE), [0.6472]),
        (replace(PAPER, nonnegative=True), [0.6728]),
        (replace(PAPER, tau_clamped=False), [0.6680]),
    ],
    ids=["paper", "no penalty", "nonnegative", "tau unclamped"],
)
def test_trained_from_scratch(apibank: ApiBank, bm25: Bm25Fields, settings: MftrSettings, wanted: list[float]) -> None:
    """The published figures are means of five seeds; benchmarks/mftr_figures.py measures those too."""
    negatives = hard_negatives(apibank.benchmark, apibank.target, settings)
    learned = train_folds(bm25, settings, labels_of(apibank.target), negatives)
    found = apibank.figures(bm25, settings, learned)
    assert found[: len(wanted)] == pytest.approx(wanted, abs=0.01)


def test_weight_shares_of_the_published_case(apibank: ApiBank) -> None:
    """Table 4: Gorilla, BM25, fold 0."""
    shares = weight_shares(apibank.learned["gorilla-huggingface"]["bm25__0"][0].weights)
    assert shares is not None
    assert [round(100 * share, 1) for share in shares] == [21.4, 13.3, 23.0, 42.3]


def test_published_weights_are_often_negative(apibank: ApiBank) -> None:
    weights = [w for models in apibank.learned.values() for folds in models.values() for f in folds for w in f.weights]
    assert (sum(weight < 0 for weight in weights), len(weights)) == (114, 900)


def test_full_doc_ranks_the_tool_of_the_case_study_at_24(shared: Path) -> None:
    loaded = read_benchmark_folder(shared / "benchmarks" / "gorilla-huggingface")
    target = run_target(loaded)
    query = int(target.queries.find(["gorilla_huggingface_query_130"])[0])
    tool = int(target.tools.find(["gorilla_huggingface_tool_783"])[0])
    text = queries_in_order(loaded, target)[0][query]
    found = Bm25Index(documents_in_order(loaded, target)).search([text], 100)
    assert found.tools[0].tolist().index(tool) + 1 == 24


def test_an_explanation_of_published_data(apibank: ApiBank, bm25: Bm25Fields) -> None:
    learned = apibank.published("bm25__0")
    found = search(bm25, PAPER, learned, 3)
    for query in range(len(apibank.queries)):
        told = explain(bm25, PAPER, learned, query, int(found.tools[query, 1]))
        assert told.rank == 2
        assert told.fold == apibank.queries.queries[query].test_fold
        matched = [match for match in told.fields if match.score > 0 and match.field is not Field.PARAMETERS]
        assert all(match.query_text and match.tool_text for match in matched)
