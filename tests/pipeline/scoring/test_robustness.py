"""Random control, aggregations and holes against plain set computations."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from pipeline.scoring.aggregations import AGGREGATIONS, Aggregation, aggregate, aggregation_table
from pipeline.scoring.averages import summarise
from pipeline.scoring.holes import HOLES, hole_table, holes
from pipeline.scoring.kernel import METRICS, evaluate
from pipeline.scoring.metrics import REFERENCE_METRICS, ndcg
from pipeline.scoring.random_control import RANDOM_CONTROL, random_control, random_labels
from pipeline.scoring.run_facts import run_facts
from pipeline.scoring.scores import score_run
from tests.pipeline.scoring.random_cases import random_case

CASES = [random_case(seed, queries=25) for seed in range(4)] + [random_case(9, queries=25, verified=False)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("k", [1, 5, 10, 25])
def test_aggregations_equal_plain_ones(case, k):
    found = aggregate(case.compiled, case.run, k)
    for q, query in enumerate(case.compiled.queries.ids):
        ranking = case.lists[query]
        scored = np.array(
            [[metric(ranking, c, k) for metric in REFERENCE_METRICS.values()] for c in case.combinations[query]]
        )
        union = frozenset().union(*case.combinations[query])
        assert found[0, :, q] == pytest.approx(scored.max(axis=0))
        assert found[1, :, q] == pytest.approx(scored.mean(axis=0))
        assert found[2, :, q] == pytest.approx(scored.min(axis=0))
        assert found[3, :, q] == pytest.approx([metric(ranking, union, k) for metric in REFERENCE_METRICS.values()])
        assert found[4, :, q] == pytest.approx(max(scored.tolist()))
    assert np.array_equal(found[0], evaluate(case.compiled, case.run, (k,)).new[:, 0])


def test_the_aggregation_table_has_the_headline_as_its_maximum():
    case = CASES[0]
    table = aggregation_table(case.compiled, case.run)
    assert table.schema == pl.Schema(AGGREGATIONS)
    summary = summarise(score_run(case.compiled, case.run), case.compiled).filter(view="new", k=10)
    best = table.filter(aggregation=Aggregation.MAX.value)
    joined = best.join(summary, on=["metric", "average", "domain"], nulls_equal=True)
    assert joined.height == best.height == 12
    assert joined["value"].equals(joined["value_right"])
    wide = table.pivot("aggregation", index=["metric", "average", "domain"], values="value")
    assert (wide["min"] <= wide["mean"]).all() and (wide["mean"] <= wide["max"]).all()
    assert (wide["joint"] <= wide["max"]).all()


@pytest.mark.parametrize("case", CASES)
def test_holes_equal_plain_computations(case):
    k = 5
    found = holes(case.compiled, case.run, k)
    for q, query in enumerate(case.compiled.queries.ids):
        ranking, judged = case.lists[query], case.judged[query]
        condensed = [tool for tool in ranking if tool in judged]
        truth, *_ = combinations = case.combinations[query]

        def filled(combination: frozenset[str], ranking=ranking, judged=judged) -> list[float]:
            """The best over all ways to let unjudged tools of the first k replace members."""
            hits = [i for i, t in enumerate(ranking[:k]) if t in combination or t not in judged]
            reference = frozenset(ranking[i] for i in hits[: len(combination)])
            rest = [f"missing{i}" for i in range(len(combination) - len(reference))]
            reference = reference.union(rest)
            return [metric(ranking, reference, k) for metric in REFERENCE_METRICS.values()]

        for m, metric in enumerate(REFERENCE_METRICS.values()):
            assert found.lower[0, m, q] == pytest.approx(metric(ranking, truth, k))
            assert found.lower[1, m, q] == pytest.approx(max(metric(ranking, c, k) for c in combinations))
            assert found.condensed[0, m, q] == pytest.approx(metric(condensed, truth, k))
            assert found.condensed[1, m, q] == pytest.approx(max(metric(condensed, c, k) for c in combinations))
            assert found.upper[0, m, q] == pytest.approx(filled(truth)[m])
            assert found.upper[1, m, q] == pytest.approx(max(filled(c)[m] for c in combinations))
        assert found.judged[q] == sum(tool in judged for tool in ranking[:k])
        assert found.shown[q] == len(ranking[:k])
    assert (found.lower <= found.upper).all() and (found.upper <= 1).all()


def test_the_hole_table_has_the_figures_and_the_judged_share():
    case = CASES[1]
    table = hole_table(case.compiled, case.run)
    assert table.schema == pl.Schema(HOLES)
    scores = score_run(case.compiled, case.run)
    summary = summarise(scores, case.compiled).filter(k=10)
    joined = table.join(summary, on=["view", "metric", "average", "domain"], nulls_equal=True)
    assert joined.height == table.height == 24
    assert joined["lower"].equals(joined["value"])
    assert table.filter(average="micro")["judged"][0] == pytest.approx(run_facts(scores).judged)


def test_random_labels_keep_the_structure_and_hold_no_valid_tool():
    case = random_case(11, queries=20, tools=60)
    compiled = case.compiled
    drawn = random_labels(compiled, 0)
    moved = 0
    for q, query in enumerate(compiled.queries.ids):
        place = slice(int(compiled.local_offsets[q]), int(compiled.local_offsets[q + 1]))
        true = [compiled.tools[t] for t in compiled.local_tools[place]]
        new = [drawn.tools[t] for t in drawn.local_tools[place]]
        size = len(case.truth[query])
        assert new[:size] == true[:size] == case.truth[query]
        assert len(set(new)) == len(new)
        assert not set(new[size:]) & (set(true) | case.outside[query])
        moved += len(new) - size
    assert moved > 20
    assert np.array_equal(drawn.local_tools, random_labels(compiled, 0).local_tools)
    assert not np.array_equal(drawn.local_tools, random_labels(compiled, 1).local_tools)


def test_a_library_too_small_for_strangers_still_keeps_distinct_tools():
    case = random_case(12, queries=20, tools=9, depth=9)
    drawn = random_labels(case.compiled, 0)
    for q in range(20):
        place = slice(int(drawn.local_offsets[q]), int(drawn.local_offsets[q + 1]))
        assert len(set(drawn.local_tools[place].tolist())) == place.stop - place.start


def test_the_control_is_the_mean_lift_under_random_labels():
    case = random_case(13, queries=30, tools=50)
    table = random_control(case.compiled, case.run, (5, 10), repetitions=8)
    assert table.schema == pl.Schema(RANDOM_CONTROL)
    assert table.height == 2 * 3 * 4
    lifts = []
    for repetition in range(8):
        labels = random_labels(case.compiled, repetition)
        found = evaluate(labels, case.run, (5, 10))
        lifts.append((found.new - found.old)[METRICS.index("NDCG"), 1].mean())
    row = table.filter(metric="NDCG", k=10, average="micro").row(0, named=True)
    assert row["control"] == pytest.approx(np.mean(lifts))
    assert row["control_low"] <= row["control"] <= row["control_high"]
    own = [
        max(ndcg(case.lists[q], c, 10) for c in case.combinations[q])
        - ndcg(case.lists[q], frozenset(case.truth[q]), 10)
        for q in case.truth
    ]
    assert row["lift"] == pytest.approx(np.mean(own))
    assert row["excess"] == row["lift"] - row["control"]
    domains = table.filter(metric="NDCG", k=10, average="domain")
    assert table.filter(metric="NDCG", k=10, average="macro")["control"].item() == pytest.approx(
        domains["control"].mean()
    )
