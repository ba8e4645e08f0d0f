from __future__ import annotations

import numpy as np
import pytest

from pipeline.benchmark import Kind
from pipeline.errors import BenchmarkError
from pipeline.formats.skill_document import join_skill_document
from pipeline.retrieval.documents import full_doc_texts
from pipeline.retrieval.fusion import fuse
from pipeline.retrieval.models import resolve_model
from pipeline.retrieval.retrieve import retrieve
from tests.pipeline.retrieval.small import benchmark, ranking


def ids(*tools: int) -> np.ndarray:
    return np.array(tools, dtype=np.int32)


def test_scores_are_sums_of_reciprocal_ranks() -> None:
    tools, scores = fuse([ids(4, 7), ids(7, 9, 4)])
    assert tools.tolist() == [7, 4, 9]
    np.testing.assert_array_equal(scores, np.float32([1 / 62 + 1 / 61, 1 / 61 + 1 / 63, 1 / 62]))


def test_ties_go_by_position_descending_and_the_order_of_the_lists_does_not_matter() -> None:
    assert fuse([ids(1, 2), ids(2, 1)])[0].tolist() == [2, 1]
    lists = [np.random.default_rng(i).permutation(30).astype(np.int32) for i in range(7)]
    one, two = fuse(lists), fuse(lists[::-1])
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])
    assert len(fuse([])[0]) == len(fuse([ids()])[0]) == 0


TOOLS = {"mail": "send an email", "rain": "weather forecast", "yen": "convert currency", "zoo": "email forecast"}


def test_sub_queries_retrieve_apart_and_are_fused() -> None:
    small = benchmark(
        TOOLS,
        {"q1": ("email me the forecast", ["mail", "rain"]), "q2": ("currency", ["yen"])},
        subqueries=[("q1", 1, "weather forecast", "rain"), ("q1", 0, "send email", "mail")],
    )
    found = retrieve(small, resolve_model("bm25"), "sub-query")
    assert ranking(retrieve(small, resolve_model("bm25")))["q1"][0] == "zoo"
    assert ranking(found) == {"q1": ["zoo", "rain", "mail"], "q2": ["yen"]}
    assert found.run.scores[:3] == pytest.approx([2 / 62, 1 / 61, 1 / 61])
    assert "a ceiling" in found.notes[0]
    assert found.notes[1] == "1 query has no sub-query and went as a whole."


def test_sub_queries_keep_twenty_each_and_the_depth_in_all() -> None:
    tools = {f"a{i:02}": "apple" for i in range(30)} | {f"b{i:02}": "banana" for i in range(30)}
    small = benchmark(tools, {"q": ("x", ["a00"])}, subqueries=[("q", 0, "apple", "a00"), ("q", 1, "banana", "b00")])
    model = resolve_model("bm25")
    assert len(ranking(retrieve(small, model, "sub-query"))["q"]) == 40
    assert ranking(retrieve(small, model, "sub-query", depth=3))["q"] == ["b29", "a29", "b28"]


def test_without_sub_queries_the_method_does_not_apply() -> None:
    small = benchmark(TOOLS, {"q": ("x", ["mail"])})
    with pytest.raises(BenchmarkError, match=r"small@1 has no sub-queries.*use full-doc"):
        retrieve(small, resolve_model("bm25"), "sub-query")


def test_a_skill_is_searched_by_name_description_and_document() -> None:
    given = '---\nname: x\ndescription: Says "hello".\n---\nBody'
    added = join_skill_document("Of the row", "# Body only")
    skills = benchmark({"a": given, "b": added}, {"q": ("x", ["a"])}, kind=Kind.SKILL)
    assert full_doc_texts(skills) == [f'A | Says "hello". | {given}', "B | Of the row | # Body only"]
    assert full_doc_texts(benchmark({"a": given}, {"q": ("x", ["a"])})) == [given]
