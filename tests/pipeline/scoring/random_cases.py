"""Random benchmarks with verdicts of every kind, and random runs over them, for brute-force comparisons."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl

from pipeline.benchmark import Benchmark
from pipeline.run import Run
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.compiler import compile_benchmark
from tests.pipeline.scoring.small_benchmarks import benchmark, ranked, run_of


@dataclass(frozen=True, eq=False)
class Case:
    """A benchmark as plain sets beside its compiled form, and one run as plain lists."""

    benchmark: Benchmark
    domains: dict[str, str]
    truth: dict[str, list[str]]
    combinations: dict[str, list[frozenset[str]]]
    outside: dict[str, set[str]]
    judged: dict[str, set[str]]
    results: dict[str, dict[str, float]]

    @cached_property
    def compiled(self) -> CompiledBenchmark:
        return compile_benchmark(self.benchmark)

    @cached_property
    def run(self) -> Run:
        return run_of(self.compiled.target, self.results)

    @cached_property
    def lists(self) -> dict[str, list[str]]:
        return {query: ranked(self.results.get(query, {})) for query in self.truth}


def random_case(
    seed: int, *, queries: int = 12, tools: int = 40, depth: int = 30, verified: bool = True, missing: float = 0.1
) -> Case:
    """A case; ``verified`` gives stage-2 verdicts, else equivalents come from the combinations."""
    rng = random.Random(seed)
    names = [f"t{i:03}" for i in range(tools)]
    labels, equivalents, invalid, results = {}, [], [], {}
    outside: dict[str, set[str]] = {}
    judged: dict[str, set[str]] = {}
    combinations: dict[str, list[frozenset[str]]] = {}
    for q in range(queries):
        query = f"q{q:02}"
        truth = rng.sample(names, rng.randint(1, 3))
        others = [rng.sample(names, rng.randint(1, 3)) for _ in range(rng.randint(0, 4))]
        labels[query] = (rng.choice(["web", "code"]), "s", truth, others)
        combinations[query] = list(dict.fromkeys(map(frozenset, [truth, *others])))
        rows: dict[tuple[int, str], str] = {}
        if verified:
            for position in range(len(truth)):
                for tool in rng.sample(names, rng.randint(0, 4)):
                    rows[position, tool] = rng.choice(["valid", "valid", "invalid", "unsure"])
        equivalents += [
            {"query_id": query, "position": p, "tool_id": tool, "verdict": verdict, "reason": f"because {tool}"}
            for (p, tool), verdict in rows.items()
        ]
        rejected = rng.sample(names, 2)
        invalid.append((query, rejected))
        named = {tool for combination in combinations[query] for tool in combination}
        if verified:
            outside[query] = {tool for (_, tool), verdict in rows.items() if verdict == "valid"} - set(truth)
        else:
            outside[query] = named - set(truth)
        judged[query] = named | set(rejected) | {tool for (_, tool), verdict in rows.items() if verdict != "unsure"}
        if rng.random() >= missing:
            liked = rng.random() * 0.5
            results[query] = {
                tool: rng.random() + liked * (tool in named or tool in outside[query])
                for tool in rng.sample(names, min(depth, tools))
            }
    made = benchmark(names, labels, equivalents=equivalents, invalid=invalid)
    rrf = [rng.choice([None, 0.5, 0.25, 0.125]) for _ in range(made.combinations.height)]
    made = replace(made, combinations=made.combinations.with_columns(pl.Series("rrf_score", rrf, dtype=pl.Float64)))
    return Case(
        made, {q: v[0] for q, v in labels.items()}, {q: list(v[2]) for q, v in labels.items()}, combinations, outside,
        judged, results,
    )  # fmt: skip
