"""The kernels against the plain definitions and pytrec_eval: equal to the last bit."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.benchmark import Benchmark
from pipeline.scoring.compiler import compile_benchmark
from pipeline.scoring.kernel import METRICS
from pipeline.scoring.metrics import REFERENCE_METRICS, new_score
from pipeline.scoring.scores import RunScores, score_run
from tests.pipeline.scoring.small_benchmarks import Labels, benchmark, canonical, ranked, run_of

Results = dict[str, dict[str, float]]


def random_case(
    rng: random.Random, *, queries: int, tools: int, depth: int, combinations: int, largest: int, levels: int
) -> tuple[Benchmark, Labels, Results]:
    """Random labels and a run with few score levels (many ties), some queries unanswered."""
    names = [f"tool_{i}" for i in range(tools)]
    labels: dict[str, tuple[str, str, list[str], list[list[str]]]] = {}
    results: Results = {}
    for q in range(queries):
        pool = rng.sample(names, min(tools, 3 * largest))
        sets = [rng.sample(pool, rng.randint(1, largest)) for _ in range(rng.randint(1, combinations))]
        labels[f"q{q}"] = (rng.choice(["web", "code"]), rng.choice(["s", "t"]), sets[0], sets[1:])
        if rng.random() < 0.9:
            taken = rng.sample(names, rng.randint(1, depth))
            results[f"q{q}"] = {tool: rng.randint(0, levels) / levels for tool in taken}
    return benchmark(names, labels), labels, results


def scored(bench: Benchmark, results: Results, cutoffs: tuple[int, ...]) -> RunScores:
    compiled = compile_benchmark(bench)
    return score_run(compiled, run_of(compiled.target, results), cutoffs)


@pytest.mark.parametrize(
    ("cutoffs", "tools", "depth", "largest"),
    [
        ((1, 5, 10), 60, 30, 4),
        ((1, 5, 10, 16), 60, 60, 20),
        ((1, 5, 10, 20), 60, 50, 4),
        ((3, 17, 40, 63, 64), 200, 150, 30),
        ((2, 10, 64, 65, 100, 1000), 1200, 1100, 40),
    ],
)
def test_scores_equal_the_plain_definitions(cutoffs: tuple[int, ...], tools: int, depth: int, largest: int) -> None:
    rng = random.Random(repr(cutoffs))
    for _ in range(12):
        bench, labels, results = random_case(
            rng, queries=8, tools=tools, depth=depth, combinations=25, largest=largest, levels=rng.choice([3, 50, 999])
        )
        scores = scored(bench, results, cutoffs)
        for row in scores.per_query.iter_rows(named=True):
            _, _, truth, others = labels[row["query_id"]]
            combinations = canonical([truth, *others])
            run = ranked(results.get(row["query_id"], {}))
            for (name, metric), k in itertools.product(REFERENCE_METRICS.items(), cutoffs):
                assert row[f"old_{name}@{k}"] == metric(run, frozenset(truth), k)
                best = new_score(metric, run, combinations, k)
                assert row[f"new_{name}@{k}"] == best
                first = next(i for i, c in enumerate(combinations) if metric(run, c, k) == best)
                assert row[f"winner_{name}@{k}"] == first


def test_old_metrics_equal_pytrec_eval_with_zeros_for_missing_queries() -> None:
    cutoffs = (1, 5, 10, 20, 100)
    listed = ",".join(map(str, cutoffs))
    measures = {f"ndcg_cut.{listed}", f"recall.{listed}"}
    rng = random.Random(20)
    compared = 0
    for _ in range(60):
        bench, labels, results = random_case(
            rng, queries=20, tools=300, depth=200, combinations=1, largest=6, levels=rng.choice([2, 10, 100, 10**8])
        )
        qrels = {query: dict.fromkeys(truth, 1) for query, (_, _, truth, _) in labels.items()}
        reference = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(results)
        for row in scored(bench, results, cutoffs).per_query.iter_rows(named=True):
            theirs = reference.get(row["query_id"], {})
            for k in cutoffs:
                assert row[f"old_NDCG@{k}"] - theirs.get(f"ndcg_cut_{k}", 0.0) == 0.0
                assert row[f"old_Recall@{k}"] - theirs.get(f"recall_{k}", 0.0) == 0.0
                compared += 1
    assert compared == 60 * 20 * len(cutoffs)


def test_new_metrics_equal_the_best_pytrec_eval_score_over_combinations() -> None:
    rng = random.Random(21)
    for _ in range(10):
        bench, labels, results = random_case(rng, queries=20, tools=80, depth=60, combinations=12, largest=4, levels=20)
        best: dict[str, dict[str, float]] = {}
        for index in range(12):
            qrels = {q: dict.fromkeys([v[2], *v[3]][index], 1) for q, v in labels.items() if len(v[3]) >= index}
            evaluated = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10,20", "recall.10,20"}).evaluate(results)
            for query, values in evaluated.items():
                seen = best.setdefault(query, values)
                best[query] = {name: max(seen[name], value) for name, value in values.items()}
        for row in scored(bench, results, (10, 20)).per_query.iter_rows(named=True):
            for k in (10, 20):
                assert row[f"new_NDCG@{k}"] == best.get(row["query_id"], {}).get(f"ndcg_cut_{k}", 0.0)
                assert row[f"new_Recall@{k}"] == best.get(row["query_id"], {}).get(f"recall_{k}", 0.0)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Labels, Results]:
    """Up to three queries over twelve tools, with tied scores and unanswered queries."""
    tools = [f"t{i}" for i in range(12)]
    sets = st.lists(st.sampled_from(tools), min_size=1, max_size=5)
    labels = {
        f"q{q}": ("web", "s", draw(sets), draw(st.lists(sets, max_size=5))) for q in range(draw(st.integers(1, 3)))
    }
    scores = st.dictionaries(st.sampled_from(tools), st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=12)
    return labels, draw(st.dictionaries(st.sampled_from(sorted(labels)), scores, max_size=3))


TOOLS = [f"t{i}" for i in range(12)]
CUTOFFS = (1, 3, 10, 20, 100)


@given(cases())
@settings(max_examples=150, deadline=None)
def test_bounds_hold_for_every_query_metric_and_cutoff(case: tuple[Labels, Results]) -> None:
    labels, results = case
    evaluation = scored(benchmark(TOOLS, labels), results, CUTOFFS).evaluation
    assert (evaluation.new >= evaluation.old).all()
    for values in (evaluation.old, evaluation.new):
        assert ((values >= 0) & (values <= 1)).all()
        recall, comp = values[METRICS.index("Recall")], values[METRICS.index("Comp")]
        assert (comp <= recall).all()
        assert (np.diff(values[METRICS.index("Recall")], axis=0) >= 0).all()


@given(cases())
@settings(max_examples=60, deadline=None)
def test_with_one_combination_new_equals_old(case: tuple[Labels, Results]) -> None:
    labels, results = case
    alone = {query: (domain, source, truth, []) for query, (domain, source, truth, _) in labels.items()}
    evaluation = scored(benchmark(TOOLS, alone), results, CUTOFFS).evaluation
    assert (evaluation.new == evaluation.old).all()
    assert (evaluation.winner == 0).all()


@given(cases(), st.lists(st.sampled_from(TOOLS), min_size=1, max_size=5))
@settings(max_examples=100, deadline=None)
def test_adding_a_combination_never_lowers_a_score(case: tuple[Labels, Results], extra: list[str]) -> None:
    labels, results = case
    before = scored(benchmark(TOOLS, labels), results, CUTOFFS).evaluation
    wider = {q: (domain, source, truth, [*others, extra]) for q, (domain, source, truth, others) in labels.items()}
    after = scored(benchmark(TOOLS, wider), results, CUTOFFS).evaluation
    assert (after.new >= before.new).all()
    assert (after.old == before.old).all()


@given(cases(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_the_order_of_rows_changes_nothing(case: tuple[Labels, Results], rng: random.Random) -> None:
    labels, results = case
    shuffled: Results = {}
    for query in rng.sample(sorted(results), len(results)):
        rows = list(results[query].items())
        rng.shuffle(rows)
        shuffled[query] = dict(rows)
    bench = benchmark(TOOLS, labels)
    first, second = scored(bench, results, CUTOFFS), scored(bench, shuffled, CUTOFFS)
    assert first.per_query.equals(second.per_query)


def test_an_unanswered_query_scores_zero() -> None:
    labels: Labels = {"q0": ("web", "s", ["t0"], [["t1"]]), "q1": ("web", "s", ["t0"], [])}
    frame = scored(benchmark(TOOLS, labels), {"q0": {"t1": 1.0}}, (10, 100)).per_query
    missing = frame.row(1, named=True)
    assert missing["retrieved"] == 0
    assert [missing[f"{v}_{m}@{k}"] for v in ("old", "new") for m in METRICS for k in (10, 100)] == [0.0] * 12
    assert missing["first_truth_rank"] is None
    assert frame["new_Comp@10"].to_list() == [1.0, 0.0]


@pytest.mark.parametrize("cutoffs", [(), (0,), (1001,), (-1, 10)])
def test_cutoffs_out_of_range_are_refused(cutoffs: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="cutoffs must lie between 1 and 1000"):
        scored(benchmark(TOOLS, {"q0": ("web", "s", ["t0"], [])}), {}, cutoffs)


def test_a_run_over_another_benchmark_is_refused() -> None:
    one = compile_benchmark(benchmark(TOOLS, {"q0": ("web", "s", ["t0"], [])}))
    two = compile_benchmark(benchmark(TOOLS, {f"q{i}": ("web", "s", ["t0"], []) for i in range(2)}))
    with pytest.raises(ValueError, match="read it against this benchmark"):
        score_run(two, run_of(one.target, {}))
