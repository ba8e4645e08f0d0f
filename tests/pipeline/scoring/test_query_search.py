"""Search and filters of queries against plain loops."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from pipeline.scoring.query_search import (
    QUERY_TABLE,
    QueryFilter,
    Range,
    by_disagreement,
    filter_queries,
    missed_but_equivalent,
    query_table,
    search_queries,
)
from pipeline.scoring.scores import score_run
from tests.pipeline.scoring.random_cases import random_case

TEXTS = pl.DataFrame(
    {
        "query_id": ["q1", "q2", "q3"],
        "text": ["Find the Weather in Berlin", "Berlin hotels, find cheap ones (50 %)", None],
        "instruction": ["", "use [maps]", "Wetter ÜBER Zürich"],
    }
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["q1", "q2", "q3"]),
        ("   ", ["q1", "q2", "q3"]),
        ("berlin", ["q1", "q2"]),
        ("find BERLIN", ["q1", "q2"]),
        ('"in berlin"', ["q1"]),
        ('"berlin find"', []),
        ("[maps]", ["q2"]),
        ("(50", ["q2"]),
        (".*", []),
        ("über zürich", ["q3"]),
        ("q3", ["q3"]),
        ('"', []),
    ],
)
def test_words_and_phrases(text: str, expected: list[str]):
    assert search_queries(TEXTS, text)["query_id"].to_list() == expected


def test_the_table_counts_labels():
    case = random_case(31, queries=20)
    table = query_table(case.benchmark, case.compiled)
    assert table.schema == pl.Schema(QUERY_TABLE)
    for row in table.iter_rows(named=True):
        query = row["query_id"]
        assert row["tools"] == len(case.truth[query])
        assert row["combinations"] == len(case.combinations[query])
        assert row["equivalents"] == len(case.outside[query])


def test_every_filter_and_its_undo():
    case = random_case(32, queries=40)
    table = query_table(case.benchmark, case.compiled)
    everything = QueryFilter()
    for change, keep in [
        ({"domains": ["web"]}, lambda r: r["domain"] == "web"),
        ({"domains": []}, lambda r: False),
        ({"sources": ["s"]}, lambda r: True),
        ({"tools": Range(2, 2)}, lambda r: r["tools"] == 2),
        ({"combinations": Range(low=3)}, lambda r: r["combinations"] >= 3),
        ({"equivalents": Range(high=1)}, lambda r: r["equivalents"] <= 1),
        ({"text": "Q0"}, lambda r: "q0" in r["query_id"]),
    ]:
        chosen = replace(everything, **change)
        expected = [r["query_id"] for r in table.iter_rows(named=True) if keep(r)]
        assert filter_queries(table, chosen)["query_id"].to_list() == expected
    assert filter_queries(table, everything).equals(table)


def test_disagreement_and_missed_queries_equal_a_plain_loop():
    case, other = random_case(33, queries=40), random_case(33, queries=40)
    swapped = {q: {t: -s for t, s in scores.items()} for q, scores in other.results.items()}
    first = score_run(case.compiled, case.run).per_query
    second = score_run(case.compiled, replace(other, results=swapped).run).per_query
    table = query_table(case.benchmark, case.compiled)
    found = by_disagreement(table, first, second)
    expected = dict(zip(first["query_id"], second["new_NDCG@10"] - first["new_NDCG@10"], strict=True))
    assert dict(found.select("query_id", "disagreement").rows()) == expected
    assert found["disagreement"].abs().is_sorted(descending=True)
    missed = missed_but_equivalent(table, first, 5)
    plain = [
        q
        for q in case.truth
        if not set(case.lists[q][:5]) & set(case.truth[q]) and set(case.lists[q][:5]) & case.outside[q]
    ]
    assert missed["query_id"].to_list() == plain and plain
    with pytest.raises(ValueError, match="same queries"):
        by_disagreement(table, first, second.head(2))
