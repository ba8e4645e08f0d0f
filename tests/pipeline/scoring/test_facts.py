"""Facts of each query against a count by hand over the ranked list."""

from __future__ import annotations

import random

from pipeline.scoring.compiled import EquivalentsBasis
from pipeline.scoring.compiler import compile_benchmark
from pipeline.scoring.scores import score_run
from tests.pipeline.scoring.small_benchmarks import benchmark, ranked, run_of

TOOLS = [f"t{i:02}" for i in range(40)]


def rank(ranking: list[str], wanted: set[str]) -> int | None:
    return next((i for i, tool in enumerate(ranking, start=1) if tool in wanted), None)


def test_facts_equal_a_count_by_hand() -> None:
    rng = random.Random(3)
    for _ in range(40):
        labels, equivalents, invalid, subqueries, results = {}, [], [], [], {}
        verdicts: dict[str, list[tuple[int, str, str]]] = {}
        for q in ("qa", "qb", "qc"):
            truth = rng.sample(TOOLS, rng.randint(1, 3))
            labels[q] = ("web", "s", truth, [rng.sample(TOOLS, rng.randint(1, 3)) for _ in range(rng.randint(0, 4))])
            rows = {
                (p, tool): rng.choice(["valid", "valid", "invalid", "unsure"])
                for p in range(len(truth))
                for tool in rng.sample(TOOLS, 6)
            }
            verdicts[q] = [(p, tool, verdict) for (p, tool), verdict in rows.items()]
            equivalents += [
                {"query_id": q, "position": p, "tool_id": tool, "verdict": verdict} for p, tool, verdict in verdicts[q]
            ]
            invalid.append((q, rng.sample(TOOLS, 2)))
            if rng.random() < 0.5:
                subqueries += [
                    {"query_id": q, "position": p, "text": "", "tool_id": tool} for p, tool in enumerate(truth)
                ]
            if rng.random() < 0.9:
                results[q] = {tool: rng.randint(0, 9) / 9 for tool in rng.sample(TOOLS, rng.randint(1, 30))}
        bench = benchmark(TOOLS, labels, equivalents=equivalents, invalid=invalid, subqueries=subqueries)
        compiled = compile_benchmark(bench)
        assert compiled.equivalents_basis is EquivalentsBasis.VERIFIED
        frame = score_run(compiled, run_of(compiled.target, results), (1, 5, 10, 20)).per_query
        for row in frame.iter_rows(named=True):
            q = row["query_id"]
            _, _, truth, others = labels[q]
            scores = results.get(q, {})
            ranking = ranked(scores)
            outside = {tool for _, tool, verdict in verdicts[q] if verdict == "valid"} - set(truth)
            judged = {tool for _, tool, verdict in verdicts[q] if verdict != "unsure"}
            judged = judged.union(truth, *others, *(tools for query, tools in invalid if query == q))
            assert row["retrieved"] == len(ranking)
            assert row["first_truth_rank"] == rank(ranking, set(truth))
            assert row["best_equivalent_rank"] == rank(ranking, outside)
            for k in (1, 5, 10, 20):
                top = ranking[:k]
                assert row[f"equivalents_found@{k}"] == len(outside & set(top))
                assert row[f"unjudged@{k}"] == len(set(top) - judged)
                assert row[f"ties@{k}"] == sum(list(scores.values()).count(scores[tool]) > 1 for tool in top)
                for p, found in enumerate(row[f"subquery_equivalents_found@{k}"]):
                    serving = {t for at, t, verdict in verdicts[q] if at == p and verdict == "valid"}
                    assert found == len((serving - set(truth)) & set(top))
                assert len(row[f"subquery_equivalents_found@{k}"]) == len(truth)


def test_without_verdicts_equivalents_are_what_the_combinations_hold() -> None:
    labels = {"q": ("web", "s", ["t00", "t01"], [["t02", "t01"], ["t02", "t03"]])}
    compiled = compile_benchmark(benchmark(TOOLS, labels))
    run = run_of(compiled.target, {"q": {"t05": 0.9, "t03": 0.8, "t01": 0.7, "t02": 0.6}})
    row = score_run(compiled, run).per_query.row(0, named=True)
    assert compiled.equivalents_basis is EquivalentsBasis.COMBINATIONS
    assert row["best_equivalent_rank"] == 2
    assert row["first_truth_rank"] == 3
    assert row["equivalents_found@1"] == 0
    assert row["equivalents_found@10"] == 2
    assert row["subquery_equivalents_found@10"] is None
    assert row["unjudged@10"] == 1


def test_scores_that_differ_only_beyond_float32_are_ties() -> None:
    compiled = compile_benchmark(benchmark(TOOLS, {"q": ("web", "s", ["t00"], [])}))
    run = run_of(compiled.target, {"q": {"t00": 0.1, "t01": 0.1 + 1e-12, "t02": 0.05}})
    row = score_run(compiled, run).per_query.row(0, named=True)
    assert row["ties@10"] == 2
    assert row["old_NDCG@10"] == row["old_NDCG@10_low"] < row["old_NDCG@10_high"] == 1.0
