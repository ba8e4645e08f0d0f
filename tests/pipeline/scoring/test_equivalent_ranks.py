"""Rank curves and the four-way split against counts by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from pipeline.scoring.equivalent_ranks import (
    Found,
    Target,
    four_way_split,
    negative_ranks,
    queries_at,
    rank_curves,
    rank_table,
)
from pipeline.scoring.scores import score_run
from tests.pipeline.scoring.random_cases import Case, random_case


def first_rank(ranking: list[str], wanted: set[str]) -> int | None:
    return next((i for i, tool in enumerate(ranking, start=1) if tool in wanted), None)


def table_of(case: Case, **options: object) -> pl.DataFrame:
    scores = score_run(case.compiled, case.run)
    return rank_table(scores.per_query, case.compiled, negative_ranks(case.compiled, case.run), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("verified", [True, False])
@pytest.mark.parametrize("domain", [None, "web"])
def test_curves_and_split_equal_a_count_by_hand(verified: bool, domain: str | None):
    case = random_case(3, queries=60, tools=150, depth=120, verified=verified)
    table = table_of(case, domain=domain, k=10)
    eligible = [q for q in case.truth if case.outside[q] and domain in (None, case.domains[q])]
    assert table["query_id"].to_list() == eligible
    found = rank_curves(table)
    best = {
        Target.TRUTH: {q: first_rank(case.lists[q], set(case.truth[q])) for q in eligible},
        Target.EQUIVALENT: {q: first_rank(case.lists[q], case.outside[q]) for q in eligible},
    }
    for target, ranks in best.items():
        rows = found.curves.filter(target=target.value)
        assert rows["rank"].to_list() == list(range(1, 21))
        for row in rows.iter_rows(named=True):
            behind = [q for q in eligible if (r := ranks[q]) is not None and r <= row["rank"]]
            assert (row["queries"], row["n"]) == (len(behind), len(eligible))
            assert row["fraction"] == len(behind) / len(eligible)
            assert sorted(queries_at(table, target, row["rank"])["query_id"]) == sorted(behind)

    def within(target: Target, query: str) -> bool:
        rank = best[target][query]
        return rank is not None and rank <= 10

    cells = [(within(Target.TRUTH, q), within(Target.EQUIVALENT, q)) for q in eligible]
    split = four_way_split(table)
    expected = [cells.count(c) for c in ((True, True), (True, False), (False, True), (False, False))]
    assert split["found"].to_list() == [f.value for f in Found]
    assert split["queries"].to_list() == expected
    assert split["fraction"].sum() == pytest.approx(1)


def test_negatives_are_non_relevant_tools_of_the_first_hundred():
    case = random_case(4, queries=60, tools=150, depth=120)
    drawn = negative_ranks(case.compiled, case.run)
    for query, rank in zip(case.compiled.queries.ids, drawn.tolist(), strict=True):
        if len(case.lists[query]) < 100:
            assert rank == 0
            continue
        assert 1 <= rank <= 100
        valid = case.outside[query].union(*case.combinations[query])
        assert case.lists[query][rank - 1] not in valid
    assert len(set(drawn.tolist())) > 25
    assert np.array_equal(drawn, negative_ranks(case.compiled, case.run))
    assert not np.array_equal(drawn, negative_ranks(case.compiled, case.run, seed=1))


def test_negatives_are_uniform_over_the_first_hundred():
    case = random_case(5, queries=40, tools=150, depth=120, missing=0)
    ranks = np.concatenate([negative_ranks(case.compiled, case.run, seed=s) for s in range(50)])
    assert ranks.mean() == pytest.approx(50.5, abs=3)
    assert np.histogram(ranks, bins=10, range=(0.5, 100.5))[0].min() > 120


def test_a_shallow_run_has_no_negative_curve_and_says_why():
    case = random_case(6, queries=30, tools=150, depth=99)
    found = rank_curves(table_of(case))
    assert found.negatives == 0
    assert set(found.curves["target"]) == {"truth", "equivalent"}
    assert "fewer than 100 results" in found.why_no_negative


def test_only_deep_queries_count_for_the_negative():
    case = random_case(7, queries=30, tools=150, depth=120, missing=0.5)
    table = table_of(case)
    found = rank_curves(table)
    deep = [q for q in table["query_id"] if len(case.lists[q]) >= 100]
    assert 0 < found.negatives == len(deep) < found.queries
    assert found.curves.filter(target="negative")["n"].unique().to_list() == [len(deep)]


def test_no_equivalents_no_curves():
    case = random_case(8)
    table = rank_table(score_run(case.compiled, case.run).per_query, case.compiled).clear()
    found = rank_curves(table)
    assert found.curves.height == 0
    assert "No query has an equivalent" in found.why_no_negative
    assert four_way_split(table)["fraction"].null_count() == 4
