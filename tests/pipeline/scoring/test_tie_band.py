"""The tie band against every order of every tie group."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

from pipeline.scoring.compiler import compile_benchmark
from pipeline.scoring.metrics import ndcg, new_score
from pipeline.scoring.scores import score_run
from pipeline.scoring.tie_search import MOST_CONTESTED
from tests.pipeline.scoring.small_benchmarks import benchmark, ranked, run_of

TOOLS = [f"t{i}" for i in range(16)]
CUTOFFS = (1, 3, 5, 10)


def orders(results: dict[str, float]) -> Iterator[list[str]]:
    """Every ranking that the scores allow."""
    groups = [list(g) for _, g in itertools.groupby(ranked(results), key=results.__getitem__)]
    for parts in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield [tool for part in parts for tool in part]


def test_the_band_is_what_every_order_of_ties_can_reach() -> None:
    rng = random.Random(5)
    searched = 0
    for _ in range(250):
        truth = rng.sample(TOOLS[:8], rng.randint(1, 3))
        others = [rng.sample(TOOLS[:8], rng.randint(1, 3)) for _ in range(rng.randint(1, 6))]
        results: dict[str, float] = {}
        pool = rng.sample(TOOLS, len(TOOLS))
        for level in range(rng.randint(1, 4)):
            for _ in range(rng.choice([1, 2, 3, 4])):
                results[pool.pop()] = 1.0 - level / 4
        compiled = compile_benchmark(benchmark(TOOLS, {"q": ("web", "s", truth, others)}))
        row = score_run(compiled, run_of(compiled.target, {"q": results}), CUTOFFS).per_query.row(0, named=True)
        combinations = [frozenset(c) for c in [truth, *others]]
        rankings = list(itertools.islice(orders(results), 2_000))
        if len(rankings) == 2_000:
            continue
        for k in CUTOFFS:
            old = [ndcg(ranking, frozenset(truth), k) for ranking in rankings]
            new = [new_score(ndcg, ranking, combinations, k) for ranking in rankings]
            assert row[f"old_NDCG@{k}_low"] == min(old)
            assert row[f"old_NDCG@{k}_high"] == max(old)
            assert row[f"new_NDCG@{k}_high"] == max(new)
            assert row[f"new_NDCG@{k}_low"] == pytest.approx(min(new), abs=1e-12)
            assert row[f"new_NDCG@{k}_low_exact"]
            worst_each = max(min(ndcg(r, c, k) for r in rankings) for c in combinations)
            searched += min(new) > worst_each + 1e-9
    # The search is needed only where no single combination's worst order is the answer; there must be such cases.
    assert searched > 20


def test_without_ties_the_band_is_the_score() -> None:
    compiled = compile_benchmark(benchmark(TOOLS, {"q": ("web", "s", ["t1"], [["t2"]])}))
    run = run_of(compiled.target, {"q": {"t0": 0.9, "t2": 0.8, "t1": 0.7}})
    row = score_run(compiled, run).per_query.row(0, named=True)
    for view in ("old", "new"):
        assert row[f"{view}_NDCG@10_low"] == row[f"{view}_NDCG@10"] == row[f"{view}_NDCG@10_high"]


def test_too_many_tied_labels_give_a_bound_and_say_so() -> None:
    names = [f"t{i:03}" for i in range(100)]
    others = [[name] for name in names[1:]]
    compiled = compile_benchmark(benchmark(names, {"q": ("web", "s", names[:1], others)}))
    run = run_of(compiled.target, {"q": dict.fromkeys(names, 0.5)})
    row = score_run(compiled, run, (10,)).per_query.row(0, named=True)
    assert len(names) > MOST_CONTESTED
    # Some label is always on top, yet each of them alone can be pushed out of the first ten.
    assert row["new_NDCG@10_low"] == 0.0 < row["new_NDCG@10"] == row["new_NDCG@10_high"] == 1.0
    assert not row["new_NDCG@10_low_exact"]
