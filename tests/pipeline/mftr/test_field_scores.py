"""Field scores: against the formulas written down plainly, scaled, and at their edges."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from pipeline.errors import MftrError
from pipeline.identifiers import IdTable
from pipeline.mftr.dense_fields import DenseFields, dense_fields, dense_texts
from pipeline.mftr.field_scores import FieldScorer, field_scores
from pipeline.mftr.fields import FieldTexts, QueryFields, ToolFields, query_fields, tool_fields
from pipeline.mftr.learned_parameters import LearnedParameters
from pipeline.mftr.lexical_fields import Bm25Fields
from pipeline.mftr.schema import Field, Parameter, RewrittenQuery, StandardizedTool
from pipeline.mftr.search import combine, search
from pipeline.mftr.settings import PAPER, V2, AbsentField, EmptyArguments, FieldScale, MftrSettings, Penalty
from pipeline.retrieval.bm25 import Bm25Index
from pipeline.retrieval.contract import PromptedText
from pipeline.retrieval.dense import Encoded
from pipeline.retrieval.models import resolve_model
from tests.pipeline.mftr.small_fields import (
    one_fold,
    plain_scores,
    query,
    random_dense,
    random_queries,
    random_tools,
    tool,
)

LEARNED = LearnedParameters((0.7, -0.2, 0.4, 0.9), 0.3, 0.4, 0.8, 0.25)


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def dense_phi(scorer: DenseFields) -> Callable[[Field, str, str], float]:
    def phi(field: Field, asked: str, text: str) -> float:
        held = scorer.embeddings[field]
        left = held.queries[scorer.queries[field].texts.index(asked)]
        return float(left @ held.tools[scorer.tools[field].texts.index(text)])

    return phi


def lexical_phi(scorer: Bm25Fields) -> Callable[[Field, str, str], float]:
    indexes = {field: Bm25Index(scorer.tools[field].occurrences) for field in Field}

    def phi(field: Field, asked: str, text: str) -> float:
        return float(indexes[field].scores(asked)[scorer.tools[field].occurrences.index(text)])

    return phi


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("dense", [False, True])
def test_scores_are_those_of_the_formulas(dense: bool, sign: float) -> None:
    tools, queries = random_tools(40), random_queries(25)
    scorer: DenseFields | Bm25Fields = random_dense(tools, queries) if dense else Bm25Fields(tools, queries)
    phi = dense_phi(scorer) if isinstance(scorer, DenseFields) else lexical_phi(scorer)
    settings = PAPER if sign > 0 else replace(PAPER, penalty=Penalty.PRINTED_SIGN)
    found = field_scores(scorer, settings, 0, 25)
    totals = combine(scorer, settings, one_fold(25, LEARNED), found)
    for q, asked in enumerate(queries.queries):
        for t, held in enumerate(tools.tools):
            fields, total = plain_scores(asked, held, phi, LEARNED, sign)
            assert found.fields[q, :, t] == pytest.approx(fields, abs=2e-6)
            assert totals[q, t] == pytest.approx(total, abs=1e-5)


@pytest.mark.parametrize("dense", [False, True])
def test_chunks_do_not_change_scores(dense: bool) -> None:
    tools, queries = random_tools(30), random_queries(12)
    scorer: FieldScorer = random_dense(tools, queries) if dense else Bm25Fields(tools, queries)
    whole = field_scores(scorer, V2, 0, 12)
    for q in range(12):
        part = field_scores(scorer, V2, q, q + 1)
        assert part.fields[0] == pytest.approx(whole.fields[q], abs=1e-5)
        assert part.parameters[0] == pytest.approx(whole.parameters[q], abs=1e-5)
        assert part.charged[0] == whole.charged[q]


def test_a_z_score_has_mean_0_and_deviation_1_over_the_tools_that_have_the_field() -> None:
    tools, queries = random_tools(60), random_queries(8)
    found = field_scores(random_dense(tools, queries), V2, 0, 8)
    for place, field in enumerate(Field):
        filled = tools[field].filled
        assert 0 < filled.sum() < 60
        for row in range(8):
            if field is Field.PARAMETERS and not queries.queries[row].arguments:
                assert not found.fields[row, place].any()
                continue
            assert found.fields[row, place, filled].mean() == pytest.approx(0, abs=1e-5)
            assert found.fields[row, place, filled].std() == pytest.approx(1, abs=1e-5)
            assert not found.fields[row, place, ~filled].any()


def test_an_absent_field_gets_the_mean_of_the_others_only_where_asked_for() -> None:
    tools, queries = random_tools(60), random_queries(3)
    scorer = random_dense(tools, queries)
    plain = field_scores(scorer, PAPER, 0, 3)
    imputed = field_scores(scorer, replace(PAPER, absent_field=AbsentField.CORPUS_MEAN), 0, 3)
    for place, field in enumerate(Field):
        filled = tools[field].filled
        assert not plain.fields[:, place, ~filled].any()
        assert (imputed.fields[:, place, filled] == plain.fields[:, place, filled]).all()
        means = plain.fields[:, place, filled].mean(axis=1, keepdims=True)
        assert imputed.fields[:, place, ~filled] == pytest.approx(np.repeat(means, (~filled).sum(), axis=1), abs=1e-6)


def test_lexical_parameter_scores_are_scaled_over_all_parameters_of_the_corpus() -> None:
    tools, queries = random_tools(60), random_queries(20)
    settings = replace(PAPER, scaled_lexical_parameters=True)
    found = field_scores(Bm25Fields(tools, queries), settings, 0, 20).parameters
    raw = field_scores(Bm25Fields(tools, queries), PAPER, 0, 20).parameters
    matched = raw.any(axis=1)
    assert 5 < matched.sum() < 20
    assert not found[~matched].any()
    wanted = (raw - raw.mean(axis=1, keepdims=True))[matched] / raw[matched].std(axis=1, keepdims=True)
    assert found[matched] == pytest.approx(wanted, abs=1e-5)
    dense = random_dense(tools, queries)
    same = field_scores(dense, settings, 0, 20).parameters
    assert (same == field_scores(dense, PAPER, 0, 20).parameters).all()


def test_fields_that_do_not_count_are_zero_and_the_penalty_stays() -> None:
    tools, queries = random_tools(30), random_queries(5)
    found = field_scores(random_dense(tools, queries), replace(PAPER, fields=(Field.RESPONSE,)), 0, 5)
    assert found.fields[:, 2].any()
    assert not found.fields[:, [0, 1, 3]].any()
    assert found.parameters.any() and found.charged.all()


def test_a_query_without_arguments_is_charged_in_full_or_not_at_all() -> None:
    tools = ToolFields([tool("a", "weather", [("city", True), ("unit", False)]), tool("b", "weather")])
    scorer = Bm25Fields(tools, QueryFields([query("q", "weather")]))
    learned = one_fold(1, LearnedParameters((0, 0, 0, 0), 0, 1.0, 0.8, 0.2))
    full = combine(scorer, PAPER, learned, field_scores(scorer, PAPER, 0, 1))
    assert full[0] == pytest.approx([-1.0, 0.0], abs=1e-5)
    none = replace(PAPER, empty_arguments=EmptyArguments.NO_PENALTY)
    assert combine(scorer, none, learned, field_scores(scorer, none, 0, 1))[0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("settings", [PAPER, V2, replace(PAPER, field_scale=FieldScale.Z_SCORE)])
@pytest.mark.parametrize("dense", [False, True])
def test_edges_give_defined_results(dense: bool, settings: MftrSettings) -> None:
    tools = ToolFields(
        [
            StandardizedTool("a"),
            tool("b", "wetter in köln 天気", [(f"größe{i}", i % 2 == 0) for i in range(300)], "ответ", ["", "  "]),
            tool("c", "stock price", [], "", ["price of 株"]),
            StandardizedTool("d", "​", (Parameter("", {}),)),
        ]
    )
    queries = QueryFields(
        [
            RewrittenQuery("empty", ()),
            query("arguments only", arguments=["größe7"]),
            query("no arguments", "天気 köln"),
            query("blank needs", "", "   "),
            query("stopwords", "the of and", arguments=["the"]),
            query("long", *["weather"] * 9, arguments=["größe1"] * 40),
        ]
    )
    scorer: FieldScorer = random_dense(tools, queries) if dense else Bm25Fields(tools, queries)
    found = field_scores(scorer, settings, 0, len(queries))
    assert np.isfinite(found.fields).all() and np.isfinite(found.parameters).all()
    learned = one_fold(len(queries), LEARNED)
    rankings = search(scorer, settings, learned, 100)
    assert rankings.counts.tolist() == [0, 4, 4, 0, 4, 4]
    assert np.isfinite(rankings.scores).all()
    for row in (1, 2, 4, 5):
        assert sorted(rankings.tools[row].tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize("settings", [PAPER, V2])
def test_empty_corpora_and_no_queries(settings: MftrSettings) -> None:
    for tools, queries in ((ToolFields([]), random_queries(3)), (random_tools(3), QueryFields([]))):
        rankings = search(Bm25Fields(tools, queries), settings, one_fold(len(queries), LEARNED), 10)
        assert rankings.counts.tolist() == [0] * len(queries)


def test_texts_are_kept_once_and_found_again() -> None:
    texts = FieldTexts.of([["b", "a"], [], ["a", "a"]])
    assert texts.texts == ("b", "a")
    assert texts.occurrences == ["b", "a", "a", "a"]
    assert texts.offsets.tolist() == [0, 2, 2, 4]
    assert texts.filled.tolist() == [True, False, True]


def test_the_query_prefix_goes_before_every_need_and_argument_and_no_document() -> None:
    tools, queries = random_tools(4), QueryFields([query("q", "weather", arguments=["city"])])
    texts = dense_texts(tools, queries, resolve_model("minilm").contract("paper"))
    assert {text.whole for text in texts.queries} == {
        "Instruct: \nQuery: weather",
        "Instruct: \nQuery: city: city",
    }
    assert not any(text.whole.startswith("Instruct") for text in texts.tools)
    card = dense_texts(tools, queries, resolve_model("minilm").contract("card"))
    assert {text.whole for text in card.queries} == {"weather", "city: city"}


def test_texts_that_nothing_is_compared_with_are_not_encoded_and_scores_stay() -> None:
    tools = random_tools(20)
    plain = QueryFields([query(f"q{i}", "weather city", "stock") for i in range(4)])
    contract = resolve_model("minilm").contract("card")
    texts = dense_texts(tools, plain, contract)
    assert len(texts.tools) == sum(len(tools[field].texts) for field in Field if field is not Field.PARAMETERS)
    asked = QueryFields([*plain.queries, query("q9", "weather", arguments=["city"])])
    every = dense_texts(tools, asked, contract)
    assert len(every.tools) == len(texts.tools) + len(tools[Field.PARAMETERS].texts)

    def embedded(some: list[PromptedText]) -> Encoded:
        rows = [np.random.default_rng(list(text.whole.encode())).standard_normal(8) for text in some]
        return Encoded(np.array(rows, dtype=np.float32), 0, len(rows), 0.0, ())

    small = dense_fields(tools, plain, embedded(texts.tools), embedded(texts.queries))
    large = dense_fields(tools, asked, embedded(every.tools), embedded(every.queries))
    for settings in (PAPER, V2):
        found, wanted = field_scores(small, settings, 0, 4), field_scores(large, settings, 0, 4)
        assert found.fields == pytest.approx(wanted.fields, abs=1e-6)
        assert (found.parameters == wanted.parameters).all()
    assert small.text_scores(Field.PARAMETERS, 0).shape == (0, len(tools[Field.PARAMETERS].texts))


def test_records_go_in_the_order_of_the_benchmark_and_missing_ones_are_empty() -> None:
    table = IdTable.from_ids(["a", "b", "é"])
    tools = tool_fields([tool("é", "last"), tool("a", "first")], table)
    assert [held.description for held in tools.tools] == ["first", "", "last"]
    queries = query_fields([query("b", "need")], table)
    assert queries.answerable.tolist() == [False, True, False]
    with pytest.raises(MftrError, match='1 of 1 tool ids are not of this benchmark, the first is "A"'):
        tool_fields([tool("A")], table)
    with pytest.raises(MftrError, match='query "b" comes twice'):
        query_fields([query("b", "x"), query("b", "y")], table)
