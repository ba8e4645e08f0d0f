from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.benchmark import Average
from pipeline.scoring.averages import scores_json, summarise
from pipeline.scoring.compiler import compile_benchmark
from pipeline.scoring.run_facts import run_facts
from pipeline.scoring.scores import score_run
from tests.pipeline.scoring.small_benchmarks import benchmark, run_of

LABELS = {
    "q1": ("web", "s", ["a"], [["b"]]),
    "q2": ("web", "s", ["c"], []),
    "q3": ("web", "s", ["c"], []),
    "q4": ("code", "s", ["a"], []),
}
SECOND = 0.6309297535714575  # NDCG of one hit at rank 2


def test_coverage_judged_share_and_band_of_a_run() -> None:
    compiled = compile_benchmark(benchmark("abcd", LABELS))
    results = {"q1": {"a": 0.5, "d": 0.5, "b": 0.1}, "q2": {"c": 0.9, "b": 0.2}, "q4": {"a": 1.0}}
    scores = score_run(compiled, run_of(compiled.target, results))
    facts = run_facts(scores)
    assert (facts.k, facts.queries, facts.answered) == (10, 4, 3)
    assert facts.judged == pytest.approx(4 / 6)
    assert (facts.tied_queries, facts.tied_tools) == (1, 2)
    assert facts.old_band == pytest.approx((((SECOND + 1) / 3 + 1) / 2, (2 / 3 + 1) / 2))
    assert facts.new_band == facts.old_band
    assert facts.band_is_exact
    reached = scores_json(summarise(scores, compiled))["old"]["NDCG@10"]
    assert facts.old_band[0] <= reached["macro"] <= facts.old_band[1]
    micro = replace(compiled, headline=Average.MICRO)
    assert run_facts(replace(scores, compiled=micro)).old_band == pytest.approx(((SECOND + 2) / 4, 3 / 4))


def test_an_empty_run_has_no_judged_share_and_unscored_cutoffs_are_refused() -> None:
    compiled = compile_benchmark(benchmark("abcd", LABELS))
    scores = score_run(compiled, run_of(compiled.target, {}), (5,))
    assert run_facts(scores, 5).judged is None
    with pytest.raises(ValueError, match="not at 10"):
        run_facts(scores)
