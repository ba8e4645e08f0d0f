"""Ranking: order, ties, depth, masks and stopping."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pipeline.mftr.field_kernels import best_tools
from pipeline.mftr.field_scores import field_scores
from pipeline.mftr.fields import QueryFields, ToolFields
from pipeline.mftr.learned_parameters import LearnedFolds, LearnedParameters, mean_of_fields
from pipeline.mftr.lexical_fields import Bm25Fields
from pipeline.mftr.schema import Field
from pipeline.mftr.search import combine, search
from pipeline.mftr.settings import PAPER, V2, MftrSettings, Weighting
from pipeline.retrieval.progress import Cancelled
from pipeline.retrieval.topk import rank_order
from tests.pipeline.mftr.small_fields import one_fold, query, random_dense, random_queries, random_tools, tool

LEARNED = LearnedParameters((0.7, -0.2, 0.4, 0.9), 0.3, 0.4, 0.8, 0.25)


@given(
    arrays(np.float32, (3, 17), elements=st.sampled_from([-3.5, -1.0, -0.0, 0.0, 1e-40, 0.25, 2.0, 3e30])),
    st.integers(1, 17),
)
@settings(deadline=None, max_examples=60)
def test_the_best_are_cut_by_the_ranking_rule(scores: np.ndarray, depth: int) -> None:
    tools, kept = np.zeros((3, depth), dtype=np.int32), np.zeros((3, depth), dtype=np.float32)
    counts = np.zeros(3, dtype=np.int64)
    best_tools(scores, tools, kept, counts)
    everything = np.arange(17, dtype=np.int32)
    for row in range(3):
        wanted = rank_order(scores[row] + np.float32(0), everything)[:depth]
        assert tools[row].tolist() == wanted.tolist()
        assert kept[row].tolist() == scores[row][wanted].tolist()
    assert counts.tolist() == [depth] * 3


@pytest.mark.parametrize("preset", [PAPER, V2])
def test_search_ranks_by_the_combined_score_over_the_full_corpus(preset: MftrSettings) -> None:
    tools, queries = random_tools(80), random_queries(30)
    scorer = random_dense(tools, queries)
    learned = LearnedFolds(
        (LEARNED, replace(LEARNED, weights=(1.0, 2.0, 3.0, 4.0), tau=0.9)), np.arange(30, dtype=np.int64) % 2
    )
    found = search(scorer, preset, learned, 7)
    totals = combine(scorer, preset, learned, field_scores(scorer, preset, 0, 30))
    for row in range(30):
        wanted = rank_order(totals[row], np.arange(80, dtype=np.int32))[:7]
        assert found.tools[row].tolist() == wanted.tolist()
        assert found.scores[row].tolist() == totals[row][wanted].tolist()
    assert found.counts.tolist() == [7] * 30


def test_equal_tools_go_by_id_bytes_descending() -> None:
    tools = ToolFields([tool(f"t{i}", "weather in a city", [("city", True)], "weather", ["rain"]) for i in range(9)])
    queries = QueryFields([query("q", "weather", arguments=["city"])])
    for scorer in (Bm25Fields(tools, queries), random_dense(tools, queries)):
        found = search(scorer, PAPER, one_fold(1, LEARNED), 5)
        assert found.tools[0].tolist() == [8, 7, 6, 5, 4]


def test_one_field_alone_ranks_by_its_score() -> None:
    tools, queries = random_tools(50), random_queries(10)
    scorer = Bm25Fields(tools, queries)
    alone = replace(PAPER, fields=(Field.EXAMPLES,), weighting=Weighting.MEAN)
    found = search(scorer, alone, mean_of_fields(10, alone.fields), 50)
    scores = field_scores(scorer, PAPER, 0, 10).fields[:, 3]
    for row in range(10):
        assert found.scores[row].tolist() == sorted(scores[row].tolist(), reverse=True)


def test_the_plain_mean_has_no_penalty() -> None:
    tools, queries = random_tools(50), random_queries(10)
    scorer = random_dense(tools, queries)
    mean = replace(PAPER, weighting=Weighting.MEAN)
    found = search(scorer, mean, mean_of_fields(10), 50)
    wanted = field_scores(scorer, PAPER, 0, 10).fields.mean(axis=1)
    assert found.scores == pytest.approx(-np.sort(-wanted, axis=1), abs=1e-6)


def test_depth_is_checked_and_clamped_and_a_search_can_be_stopped() -> None:
    scorer = Bm25Fields(random_tools(5), random_queries(2))
    assert search(scorer, PAPER, one_fold(2, LEARNED), 100).tools.shape == (2, 5)
    with pytest.raises(ValueError, match="depth is 0"):
        search(scorer, PAPER, one_fold(2, LEARNED), 0)
    with pytest.raises(Cancelled):
        search(scorer, PAPER, one_fold(2, LEARNED), 10, cancelled=lambda: True)
