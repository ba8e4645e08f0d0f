"""Rank slopes, headroom and redundancy against plain counts and the paper's figure."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline.published import rows
from pipeline.scoring.rank_agreement import kendall_tau
from pipeline.scoring.rank_changes import headroom, rank_slopes
from pipeline.scoring.redundancy import lift_by_domain, lift_by_redundancy, query_redundancy
from pipeline.scoring.scores import score_run
from tests.pipeline.scoring.random_cases import random_case


def test_slopes_rank_the_runs_with_both_figures():
    board = pl.DataFrame(
        {
            "run_id": ["a", "b", "c", "d", "e"],
            "old": [0.5, 0.4, 0.3, 0.9, None],
            "new": [0.6, 0.7, 0.6, None, 0.8],
            "family": ["x", "y", "z", "x", "y"],
        }
    )
    found = rank_slopes(board)
    assert found.runs.select("run_id", "family", "rank_old", "rank_new", "rank_change").rows() == [
        ("b", "y", 2, 1, 1),
        ("a", "x", 1, 2, -1),
        ("c", "z", 3, 2, 1),
    ]
    assert found.tau == kendall_tau([0.5, 0.4, 0.3], [0.6, 0.7, 0.6])
    assert rank_slopes(board.head(1)).tau is None


def published_board() -> pl.DataFrame:
    found = [
        {
            "retriever_key": r.retriever,
            "retriever": r.retriever,
            "method": r.method,
            "level": r.level,
            "provenance": "reported",
            "old": r.value("old", "NDCG", "macro"),
            "new": r.value("new", "NDCG", "macro"),
        }
        for r in rows()
        if r.benchmark == "tooleq"
    ]
    return pl.DataFrame(found)


def test_the_small_qwen_gains_12_63_points_from_sub_queries():
    table = headroom(published_board())
    row = table.filter(retriever_key="qwen3-emb-0.6b").row(0, named=True)
    assert round(100 * row["headroom_new"], 2) == 12.63
    assert row["headroom_new"] == row["subquery_new"] - row["query_new"]
    assert table["headroom_new"].drop_nulls().is_sorted(descending=True)
    assert table["retriever_key"].is_unique().all()


def test_retrievers_without_both_levels_have_no_headroom():
    board = published_board().filter(pl.col("level") == "query")
    assert headroom(board).height == 0


@pytest.mark.parametrize("verified", [True, False])
def test_redundancy_and_its_lifts_equal_a_plain_loop(verified: bool):
    case = random_case(41, queries=60, verified=verified)
    table = query_redundancy(case.compiled)
    rows_of = case.benchmark.equivalents.filter(pl.col("verdict") == "valid")
    plain: dict[str, float] = {}
    for query in case.truth:
        if verified:
            pairs = {
                (p, t)
                for q, p, t in rows_of.select("query_id", "position", "tool_id").iter_rows()
                if q == query and t not in case.truth[query]
            }
            plain[query] = len(pairs) / len(case.truth[query])
        else:
            plain[query] = len(case.outside[query]) / len(case.truth[query])
    assert dict(table.select("query_id", "redundancy").rows()) == pytest.approx(plain)

    per_query = score_run(case.compiled, case.run).per_query
    lifts = dict(zip(per_query["query_id"], per_query["new_NDCG@10"] - per_query["old_NDCG@10"], strict=True))
    groups = lift_by_redundancy(per_query, table, edges=(0, 1, 2))
    assert groups["n"].sum() == 60
    for row in groups.iter_rows(named=True):
        low = -1 if row["above"] is None else row["above"]
        high = float("inf") if row["up_to"] is None else row["up_to"]
        members = [q for q, value in plain.items() if low < value <= high]
        assert row["n"] == len(members)
        assert row["lift"] == pytest.approx(sum(lifts[q] for q in members) / len(members))
        assert row["redundancy"] == pytest.approx(sum(plain[q] for q in members) / len(members))
    for row in lift_by_domain(per_query, table).iter_rows(named=True):
        members = [q for q in plain if case.domains[q] == row["domain"]]
        assert row["lift"] == pytest.approx(sum(lifts[q] for q in members) / len(members))
