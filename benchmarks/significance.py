"""Sign-flip tests of all pairs of ten runs, against one pair with ranx or scipy, in the same process.

    python benchmarks/significance.py [--queries 7360] [--runs 10] [--flips 10000] [--repetitions 3]

ranx's ``fisher_randomization_test`` (compiled, on all cores) is the peer where ranx is installed (``pip install ranx``;
it is no dependency), else scipy's ``permutation_test``. Target: all 45 pairs in a tenth of the peer's time for one.
Wall and processor time are both printed: the peer may use several cores, this code uses one. (Called
``statistics.py`` this file would stand in for Python's own module in every script of this folder.)
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipeline.benchmark import Average
from pipeline.scoring.randomization import compare_pairs, query_weights


@dataclass(frozen=True)
class Cost:
    """Wall and processor seconds, the best of several repetitions each."""

    wall: float
    processor: float


def best_cost(work: Callable[[], object], repetitions: int) -> Cost:
    """The least that the work took."""
    walls, processors = [], []
    for _ in range(repetitions):
        wall, processor = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        processors.append(time.process_time() - processor)
    return Cost(min(walls), min(processors))


def show(what: str, cost: Cost) -> None:
    """One line."""
    print(f"  {what:44} {cost.wall * 1e3:10.1f} ms wall {cost.processor * 1e3:10.1f} ms processor")


def with_ranx(before: np.ndarray, after: np.ndarray, flips: int) -> float:
    """The p value of ranx's test of one pair."""
    from ranx.statistical_tests import fisher_randomization_test

    return float(fisher_randomization_test(before, after, n_permutations=flips)[0])


def with_scipy(before: np.ndarray, after: np.ndarray, flips: int) -> float:
    """The p value of scipy's test of one pair, vectorised in batches."""
    from scipy.stats import permutation_test

    def statistic(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
        difference: np.ndarray = y.mean(axis=axis) - x.mean(axis=axis)
        return difference

    found = permutation_test(
        (before, after),
        statistic,
        permutation_type="samples",
        vectorized=True,
        n_resamples=flips,
        batch=500,
        rng=np.random.default_rng(1),
    )
    return float(found.pvalue)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=7360)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--flips", type=int, default=10_000)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(7)
    difficulty = rng.random(options.queries)
    scores = np.clip(difficulty + rng.normal(0, 0.2, (options.runs, options.queries)), 0, 1)
    pairs: list[tuple[int, int | None]] = list(itertools.combinations(range(options.runs), 2))
    weights = query_weights(np.zeros(options.queries, dtype=np.int64), Average.MICRO)

    def ours(chosen: list[tuple[int, int | None]]) -> list[float]:
        return [test.p for test in compare_pairs(scores, chosen, weights, flips=options.flips)]

    print(f"{options.queries:,} queries, {options.flips:,} flips")
    all_p = ours(pairs)
    same = ours(pairs) == all_p
    mine = best_cost(lambda: ours(pairs), options.repetitions)
    one = best_cost(lambda: compare_pairs(scores[:2], [(0, 1)], weights, flips=options.flips), options.repetitions)
    show(f"{len(pairs)} pairs of {options.runs} runs", mine)
    show("one pair", one)
    print(f"  identical p values in two runs: {same}")
    peers = {"scipy": with_scipy}
    if importlib.util.find_spec("ranx") is not None:
        peers["ranx"] = with_ranx
    else:
        print("  ranx is not installed (pip install ranx): compared with scipy only")
    for name, peer in peers.items():
        p = peer(scores[0], scores[1], options.flips)  # compiles what is compiled
        theirs = best_cost(lambda peer=peer: peer(scores[0], scores[1], options.flips), 1 if name == "scipy" else 2)
        show(f"{name}, one pair (p {p:.4f}, ours {all_p[0]:.4f})", theirs)
        ratios = mine.wall / theirs.wall, mine.processor / theirs.processor
        print(f"    all pairs / {name}'s one pair: {ratios[0]:.4f} wall, {ratios[1]:.4f} processor (target 0.1)")


if __name__ == "__main__":
    main()
