"""One query explained, against the scores of the whole run and plain look-ups."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline.errors import BenchmarkError
from pipeline.formats.ranking import ranking_frame
from pipeline.scoring.query_card import CARD_TOOLS, QueryCard, Role, query_card
from pipeline.scoring.scores import score_run
from tests.pipeline.scoring.random_cases import Case, random_case


def rankings(case: Case) -> dict[str, pl.DataFrame]:
    return {"one": ranking_frame(case.run, case.compiled.target)}


def card_of(case: Case, query: str, k: int = 10) -> QueryCard:
    return query_card(case.benchmark, query, rankings(case), k=k)


@pytest.mark.parametrize("verified", [True, False])
@pytest.mark.parametrize("k", [1, 10])
def test_cards_agree_with_the_scores_of_the_run(verified: bool, k: int):
    case = random_case(21, queries=30, verified=verified)
    compiled = case.compiled
    per_query = score_run(compiled, case.run).per_query
    for q, row in enumerate(per_query.iter_rows(named=True)):
        query = row["query_id"]
        card = card_of(case, query, k)
        assert card.basis == compiled.equivalents_basis
        assert (card.domain, list(card.ground_truth)) == (case.domains[query], case.truth[query])
        valid = card.combinations.filter(pl.col("combination").is_not_null())
        for index, tools in valid.select("combination", "tool_ids").iter_rows():
            assert set(tools) == {compiled.tools[t] for t in compiled.combination(q, index)}
        assert valid.height == compiled.combination_offsets[q + 1] - compiled.combination_offsets[q]
        assert card.combinations["combination"].to_list() == [*range(valid.height), None]
        for winner in card.winners.iter_rows(named=True):
            name = f"{winner['metric']}@{k}"
            found = (winner["old"], winner["new"], winner["combination"])
            assert found == (row[f"old_{name}"], row[f"new_{name}"], row[f"winner_{name}"])
        steps = card.steps.filter(pl.col("rank") <= k)
        assert (steps["equivalents"].max() or 0) == row[f"equivalents_found@{k}"]
        for role, column in (
            (Role.GROUND_TRUTH, "first_truth_rank"),
            (Role.EQUIVALENT, "best_equivalent_rank"),
        ):
            assert card.steps.filter(role=role.value)["rank"].min() == row[column]
            assert card.ranks.filter(role=role.value)["rank"].min() == row[column]
        assert card.lists["tool_id"].to_list() == case.lists[query][:k]
        assert card.lists.filter(role="unjudged").height == row[f"unjudged@{k}"]


def test_ranks_and_documentation_are_those_of_the_tools():
    case = random_case(22, queries=8)
    documented = case.benchmark.tools.with_columns(
        name="tool " + pl.col("tool_id"), documentation="reads " + pl.col("tool_id")
    )
    for query in case.truth:
        bench = case.benchmark.__class__(**{**vars(case.benchmark), "tools": documented})
        card = query_card(bench, query, rankings(case))
        assert card.tools.columns == list(CARD_TOOLS)
        assert card.tools["tool_id"].is_unique().all()
        assert (card.tools["documentation"] == "reads " + card.tools["tool_id"]).all()
        judged = set(card.tools.filter(pl.col("role") != "unjudged")["tool_id"])
        assert judged == case.judged[query]
        ranking = case.lists[query]
        for tool, rank in card.ranks.select("tool_id", "rank").iter_rows():
            assert rank == (ranking.index(tool) + 1 if tool in ranking else None)
        for row in card.scores.iter_rows(named=True):
            assert row["ranks"] == [ranking.index(t) + 1 if t in ranking else None for t in row["tool_ids"]]
        for row in card.equivalents.iter_rows(named=True):
            assert row["reason"] == f"because {row['tool_id']}"
            assert row["name"] == f"tool {row['tool_id']}"
        assert (card.lists["name"] == "tool " + card.lists["tool_id"]).all()


def test_a_lazy_ranking_and_no_ranking_work_too():
    case = random_case(23, queries=5, missing=0)
    eager = query_card(case.benchmark, "q01", rankings(case))
    lazy = query_card(case.benchmark, "q01", {"one": rankings(case)["one"].lazy()})
    assert lazy.scores.equals(eager.scores) and lazy.steps.equals(eager.steps)
    bare = query_card(case.benchmark, "q01")
    assert bare.scores.height == bare.winners.height == bare.lists.height == 0
    assert bare.combinations.equals(eager.combinations)


def test_subqueries_follow_the_ground_truth_where_the_benchmark_has_none():
    case = random_case(24, queries=5)
    card = card_of(case, "q02")
    assert card.subqueries["tool_id"].to_list() == case.truth["q02"]
    assert card.subqueries["text"].null_count() == len(case.truth["q02"])


def test_an_unknown_query_is_named():
    case = random_case(25, queries=3)
    with pytest.raises(BenchmarkError, match="has no query 'q99'"):
        card_of(case, "q99")
