"""Explanations add up to the score and name what matched."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.mftr.explain import explain, rank_of
from pipeline.mftr.fields import QueryFields, ToolFields
from pipeline.mftr.learned_parameters import LearnedParameters
from pipeline.mftr.lexical_fields import Bm25Fields
from pipeline.mftr.schema import Field
from pipeline.mftr.search import search
from pipeline.mftr.settings import PAPER, V2, MftrSettings, Penalty
from tests.pipeline.mftr.small_fields import one_fold, query, random_dense, random_queries, random_tools, tool

LEARNED = LearnedParameters((0.7, 0.2, 0.4, 0.9), 0.3, 0.4, 0.8, 0.25)


@pytest.mark.parametrize(
    "settings", [PAPER, V2, replace(PAPER, penalty=Penalty.PRINTED_SIGN, fields=(Field.RESPONSE,))]
)
@pytest.mark.parametrize("dense", [False, True])
def test_the_parts_add_up_and_ranks_are_those_of_the_search(dense: bool, settings: MftrSettings) -> None:
    tools, queries = random_tools(40), random_queries(12)
    scorer = random_dense(tools, queries) if dense else Bm25Fields(tools, queries)
    learned = one_fold(12, LEARNED)
    found = search(scorer, settings, learned, 40)
    for q in range(0, 12, 3):
        for rank in (1, 7, 40):
            position = int(found.tools[q, rank - 1])
            told = explain(scorer, settings, learned, q, position, found)
            assert (told.query_id, told.tool_id) == (f"q{q:03}", f"t{position:03}")
            assert (told.rank, told.full_doc_rank, told.tools) == (rank, rank, 40)
            assert told.penalty == pytest.approx(sum(parameter.penalty for parameter in told.parameters))
            weighed = sum(match.weight * match.scaled for match in told.fields)
            assert told.score == pytest.approx(weighed + told.bias - told.penalty, abs=1e-5)
            assert told.score == pytest.approx(float(found.scores[q, rank - 1]), abs=1e-5)
            assert sum(match.share or 0 for match in told.fields) == pytest.approx(1)
            assert [p.name for p in told.parameters] == [p.name for p in tools.tools[position].parameters]


def test_it_names_the_need_the_example_and_the_argument_that_match() -> None:
    tools = ToolFields(
        [
            tool("a", "weather forecast", [("city", True), ("unit", False)], "rain", ["is it", "weather in paris"]),
            tool("b", "stock price", [("ticker", True)], "price", ["what does it cost"]),
            tool("c"),
        ]
    )
    queries = QueryFields([query("q", "stock today", "weather in rome", arguments=["city", "day"])])
    scorer = Bm25Fields(tools, queries)
    told = explain(scorer, PAPER, one_fold(1, LEARNED), 0, 0)
    description, parameters, response, examples = told.fields
    assert (description.query_text, description.tool_text) == ("weather in rome", "weather forecast")
    assert (examples.query_text, examples.tool_text) == ("weather in rome", "weather in paris")
    assert (parameters.query_text, parameters.tool_text) == ("", "")
    assert response.score == 0.0
    assert response.rank is None, "what matches nothing has no rank, only the place of its id"
    assert (description.rank, examples.rank) == (2, 1)
    assert [parameter.argument for parameter in told.parameters] == ["city: city", ""]
    assert told.parameters[0].score > 0 == told.parameters[1].score
    assert told.parameters[0].missing < 0.5 < told.parameters[1].missing
    assert told.parameters[1].penalty == pytest.approx(told.parameters[1].missing * LEARNED.optional)
    assert told.full_doc_rank is None
    empty = explain(scorer, PAPER, one_fold(1, LEARNED), 0, 2)
    assert empty.parameters == () and empty.penalty == 0
    assert [match.tool_text for match in empty.fields] == ["", "", "", ""]


def test_ranks_follow_the_ranking_rule() -> None:
    scores = np.array([1.0, 3.0, 1.0, 2.0, 1.0], dtype=np.float32)
    assert [rank_of(scores, tool) for tool in range(5)] == [5, 1, 4, 2, 3]
