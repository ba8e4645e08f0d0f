from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.baselines.ablation_variants import VARIANTS, Combination, variant
from pipeline.baselines.masking import mean_score
from pipeline.baselines.one_text import retrieve_one_text, rewritten_text, standardized_text
from pipeline.baselines.weighted import field_inputs, retrieve_weighted
from pipeline.errors import UsageError
from pipeline.formats.benchmark_folder import read_benchmark_folder
from pipeline.mftr.files import read_rewritten, read_standardized
from pipeline.mftr.schema import (
    Argument,
    Example,
    Field,
    Parameter,
    RewrittenQuery,
    StandardizedTool,
    ToolNeed,
    original_query,
)
from pipeline.mftr.settings import PAPER, V2, Penalty, Weighting
from pipeline.retrieval.models import resolve_model
from pipeline.scoring.compiler import compile_benchmark
from tests.pipeline.retrieval.small import benchmark, ranking

TOOL = StandardizedTool(
    "a",
    "Wetter für morgen",
    (Parameter("city", {"type": "string", "required": True}),),
    "degrees",
    (Example("Will it rain?", {"name": "wx"}),),
)
QUERY = RewrittenQuery("q", (ToolNeed("rain?", "forecasts", "degrees"),), (Argument("city", "a town"),))


def test_the_texts_are_the_published_json():
    assert standardized_text(TOOL) == (
        '{"description": "Wetter f\\u00fcr morgen", "parameters": {"city": {"type": "string", "required": true}}, '
        '"response": "degrees", "examples": [{"user_intent": "Will it rain?", "tool_call": {"name": "wx"}}]}'
    )
    assert rewritten_text(QUERY) == (
        '{"tool_needs": [{"user_intent": "rain?", "tool_description": "forecasts", "expected_response": "degrees"}], '
        '"extracted_arguments": {"city": "a town"}}'
    )


def test_the_table_has_the_paper_s_rows():
    assert [row.label for row in VARIANTS] == [
        "Full-Doc", "Stand. Only", "Rewrite Only", "Stand. + Rewrite", "Weighting Only", "Weighting + Stand.",
        "Weighting + Rewrite", "w/o Adaptive Weighting", "w/o Missing Penalty", "MFTR",
    ]  # fmt: skip
    assert [row.needs_standardized for row in VARIANTS] == [False, True, False, True, False, True, False, *[True] * 3]
    assert [row.needs_rewritten for row in VARIANTS] == [False, False, True, True, False, False, True, *[True] * 3]
    assert variant("mftr").settings(V2) == V2
    mean = variant("without-weighting").settings()
    assert (mean.weighting, mean.penalty) == (Weighting.MEAN, Penalty.NONE)
    assert variant("without-penalty").settings().weighting is Weighting.LEARNED
    assert not variant("without-penalty").settings().penalised
    with pytest.raises(UsageError, match="whole texts"):
        variant("full-doc").settings()
    with pytest.raises(UsageError, match="Unknown variant"):
        variant("mfrt")


def test_what_was_not_standardized_or_rewritten_is_searched_as_it_is():
    small = benchmark({"a": "weather", "b": "mail"}, {"q": ("mail", ["b"]), "p": ("weather", ["a"])})
    found = retrieve_one_text(
        small, variant("standardized-rewrite"), resolve_model("bm25"), standardized=[TOOL], rewritten=[QUERY]
    )
    assert ranking(found) == {"q": ["a"], "p": []}
    assert list(found.notes) == [
        "1 tool was not standardized and searched verbatim.",
        "1 query was not rewritten and searched as it is.",
    ]
    plain = retrieve_one_text(small, variant("full-doc"), resolve_model("bm25"), standardized=[TOOL])
    assert ranking(plain) == {"q": ["b"], "p": ["a"]} and plain.notes == ()
    with pytest.raises(UsageError, match="scores fields"):
        retrieve_one_text(small, variant("mftr"), resolve_model("bm25"))


def test_each_weighted_variant_compares_what_it_says():
    small = benchmark({"a": '{"description": "raw weather"}', "b": "mail"}, {"q": ("storm", ["a"])})
    given = {"standardized": [TOOL], "rewritten": [QUERY]}
    raw = field_inputs(small, variant("weighting-only"), **given)
    assert raw.tools.tools[0].description == "raw weather"
    assert raw.queries.queries == (original_query("q", "storm"),)
    both = field_inputs(small, variant("mftr"), **given)
    assert both.tools.tools == (TOOL, StandardizedTool("b")) and both.queries.queries == (QUERY,)
    assert both.settings == PAPER
    mixed = field_inputs(small, variant("weighting-rewrite"), **given)
    assert mixed.tools.tools[0].description == "raw weather" and mixed.queries.queries == (QUERY,)


def test_a_weighted_variant_runs_without_rewriting():
    tools = {f"t{i}": f'{{"description": "does thing number{i}", "parameters": {{"x": {{}}}}}}' for i in range(8)}
    queries = {f"q{i}": (f"thing number{i} and number{i + 1}", [f"t{i}"]) for i in range(7)}
    found = retrieve_weighted(benchmark(tools, queries), variant("weighting-only"), resolve_model("bm25"), depth=3)
    assert len(found.learned.folds) == 5 and found.run.queries_answered == 7


@pytest.fixture(scope="module")
def published(shared: Path):
    loaded = read_benchmark_folder(shared / "benchmarks" / "apibank")
    ids = set(loaded.queries["query_id"])
    folder = shared / "data" / "mftr"
    return loaded, {
        "standardized": read_standardized(folder / "standardized_tools_apibank.jsonl").tools,
        "rewritten": [q for q in read_rewritten(folder / "rewritten_queries.jsonl").queries if q.query_id in ids],
    }


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize(
    ("key", "figure"),
    [("full-doc", 0.6112), ("standardized-only", 0.5774), ("rewrite-only", 0.6842), ("standardized-rewrite", 0.6622)],
)
def test_the_one_text_rows_of_table_3_on_apibank(published, embeddings, key: str, figure: float):
    loaded, given = published
    found = retrieve_one_text(loaded, variant(key), resolve_model("minilm"), "paper", cache=embeddings, **given)
    assert mean_score(compile_benchmark(loaded), found.run, "NDCG", 10) == pytest.approx(figure, abs=5e-4)


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize(
    ("model", "key", "figure", "tolerance"),
    [
        ("minilm", "without-weighting", 0.7138, 5e-4),
        ("minilm", "without-penalty", 0.7072, 0.01),
        ("minilm", "mftr", 0.7237, 0.01),
        ("minilm", "weighting-rewrite", 0.6549, 0.01),
        ("bm25", "without-weighting", 0.6495, 5e-5),
        ("bm25", "mftr", 0.6704, 0.01),
    ],
)
def test_the_weighted_rows_of_table_3_on_apibank(
    published, embeddings, model: str, key: str, figure: float, tolerance: float
):
    """The two rows with original queries depend on how a query meets parameters, which the paper does not say:

    MiniLM has .6171 here against .5926 printed (Weighting Only) and .6476 against .6012 (Weighting + Stand.).
    """
    loaded, given = published
    assert variant(key).combination is not Combination.ONE_TEXT
    found = retrieve_weighted(loaded, variant(key), resolve_model(model), "paper", cache=embeddings, **given)
    assert mean_score(compile_benchmark(loaded), found.run, "NDCG", 10) == pytest.approx(figure, abs=tolerance)
    if variant(key).trained and model == "minilm":
        assert len(found.learned.folds) == 5 and len(Field) == len(found.learned.folds[0].weights)
