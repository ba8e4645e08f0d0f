"""Sampling and the report on human validation, against numbers worked out by hand."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline.benchmark import BenchmarkInfo, Kind
from pipeline.errors import UsageError
from pipeline.formats.benchmark_validation import build_benchmark
from pipeline.scoring.statistics import Interval
from pipeline.toolex.sampling import item_key, sample_items, validation_items
from pipeline.toolex.validation import (
    Bucket,
    Review,
    ReviewedItem,
    cohen_kappa,
    corrected_band,
    validation_report,
    wilson_interval,
)


def review(verdict, who="a", bucket=None):
    return Review(who, verdict == "valid", "because", bucket)


def item(number, first, second, third=None):
    return ReviewedItem(str(number), review(*first), review(*second), None if third is None else review(*third))


YES = ("valid",)
NO = ("invalid", "b", Bucket.COVERAGE)


def test_the_report_equals_a_hand_computed_example():
    # Twenty items: both valid 12, both invalid 3, first valid only 4, second valid only 1.
    items = [item(i, YES, YES) for i in range(12)]
    items += [item(20, NO, NO), item(21, NO, ("invalid", "c", Bucket.PLATFORM)), item(22, NO, NO)]
    items += [item(30, YES, NO, YES), item(31, YES, NO, YES), item(32, YES, NO, ("invalid", "t", Bucket.NEAR_SYNONYM))]
    items += [item(33, YES, NO)]  # still to be adjudicated
    items += [item(34, NO, YES, ("invalid", "t", None))]
    items += [ReviewedItem("40", review("valid"))]  # only one review yet
    report = validation_report(items)
    assert (report.items, report.reviewed, report.decided, report.valid) == (21, 20, 19, 14)
    assert report.precision.value == pytest.approx(14 / 19)
    # Of 20 reviewed, the one that is open may end either way.
    assert report.to_adjudicate == 1
    assert (report.bounds.least, report.bounds.most) == pytest.approx((14 / 20, 15 / 20))
    assert report.bounds.low == wilson_interval(14, 20).low and report.bounds.high == wilson_interval(15, 20).high
    assert report.agreement == pytest.approx(15 / 20)
    # po = .75; the first says valid 16 of 20, the second 13: pe = .8 · .65 + .2 · .35 = .59; κ = .16 / .41.
    assert report.kappa == pytest.approx(0.16 / 0.41)
    assert report.taxonomy == {
        Bucket.DECOMPOSITION: 0,
        Bucket.NEAR_SYNONYM: 1,
        Bucket.COVERAGE: 2.5,
        Bucket.PLATFORM: 0.5,
        Bucket.OTHER: 1,
    }
    assert sum(report.taxonomy.values()) == report.decided - report.valid


def test_wilson_interval_equals_published_figures():
    # Newcombe (1998), table I: 81/263 gives .2553 to .3662; 0/20 gives 0 to .1611; 1/29 gives .0061 to .1718.
    for successes, trials, low, high in ((81, 263, 0.2553, 0.3662), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)):
        interval = wilson_interval(successes, trials)
        assert interval.low == pytest.approx(low, abs=5e-5) and interval.high == pytest.approx(high, abs=5e-5)
    assert wilson_interval(5, 5).high == 1.0
    assert wilson_interval(0, 0) == Interval(None, None, None, 0.95)


def test_kappa_at_its_ends():
    assert cohen_kappa([(True, True), (False, False)]) == 1
    assert cohen_kappa([(True, False), (False, True)]) == -1
    assert cohen_kappa([(True, True)] * 5) is None  # chance alone explains it
    assert cohen_kappa([(True, True), (True, False)]) == 0
    assert cohen_kappa([]) is None


def test_bounds_are_those_of_the_precision_once_nothing_is_open():
    report = validation_report([item(1, YES, YES), item(2, YES, NO, NO), ReviewedItem("3", review("valid"))])
    assert report.to_adjudicate == 0
    assert (report.bounds.least, report.bounds.most) == (0.5, 0.5) == (report.precision.value,) * 2
    assert (report.bounds.low, report.bounds.high) == (report.precision.low, report.precision.high)
    nothing = validation_report([ReviewedItem("1")]).bounds
    assert (nothing.least, nothing.most, nothing.low, nothing.high) == (None, None, None, None)


def test_the_band_lies_between_old_and_new_and_reaches_over_open_disagreements():
    agreed = [item(n, YES, YES) for n in range(9)]
    for items, least, most in (
        ([*agreed, item(9, NO, NO)], (9, 10), (9, 10)),
        ([*agreed, item(9, YES, NO)], (9, 10), (10, 10)),
    ):
        report = validation_report(items)
        band = corrected_band(0.40, 0.50, report)
        assert band.value == pytest.approx(0.40 + 0.1 * report.precision.value)
        low, high = wilson_interval(*least).low, wilson_interval(*most).high
        assert (band.low, band.high) == pytest.approx((0.40 + 0.1 * low, 0.40 + 0.1 * high))
        assert 0.40 <= band.low <= band.value <= band.high <= 0.50
    empty = corrected_band(0.4, 0.5, validation_report([]))
    assert (empty.value, empty.low, empty.high) == (None, None, None)


@pytest.fixture(scope="module")
def benchmark():
    """Strata: (x, 1) with 40 items, (x, 2) with 20, (y, 1) with 5, (z, 1) with none."""
    plan = [("x", 1, 40), ("x", 2, 20), ("y", 1, 5), ("z", 1, 0)]
    tools = [f"t{n}" for n in range(50)]
    queries, truth, combinations = [], [], []
    for number, (domain, size, items) in enumerate(plan):
        query = f"q{number}"
        queries.append((query, "text", "", domain, ""))
        gold = tools[:size]
        truth.append((query, gold))
        combinations.append((query, gold, True, "valid"))
        combinations += [(query, [tools[2 + n], *gold[1:]], False, "valid") for n in range(items)]
        combinations.append((query, [tools[49]], False, "invalid"))
    return build_benchmark(
        BenchmarkInfo("b", "B", Kind.TOOL, "1", "", ""),
        {
            "tools": pl.DataFrame({"tool_id": tools, "documentation": tools, "name": tools}).with_columns(
                domain=pl.lit("d"), source=pl.lit("")
            ),
            "queries": pl.DataFrame(
                queries, schema=["query_id", "text", "instruction", "domain", "source"], orient="row"
            ),
            "ground_truth": pl.DataFrame(truth, schema=["query_id", "tool_ids"], orient="row"),
            "combinations": pl.DataFrame(
                combinations, schema=["query_id", "tool_ids", "is_ground_truth", "verdict"], orient="row"
            ).with_columns(rrf_score=pl.lit(None, pl.Float64), reason=pl.lit(""), judge=pl.lit("")),
        },
    )


def test_items_are_accepted_combinations_besides_the_ground_truth(benchmark):
    items = validation_items(benchmark)
    assert items.height == 65 and items["item"].n_unique() == 65
    assert items.group_by("domain", "subqueries").len().sort("domain", "subqueries").rows() == [
        ("x", 1, 40),
        ("x", 2, 20),
        ("y", 1, 5),
    ]
    row = items.row(0, named=True)
    assert row["item"] == item_key(row["query_id"], row["tool_ids"][::-1])  # combinations are sets


def test_the_sample_is_stratified_and_the_same_for_a_seed(benchmark):
    sample = sample_items(benchmark, 13, seed=7)
    # 13 of 65 is a fifth: 8, 4 and 1.
    assert sample.group_by("domain", "subqueries").len().sort("domain", "subqueries")["len"].to_list() == [8, 4, 1]
    assert sample.equals(sample_items(benchmark, 13, seed=7))
    assert set(sample["item"]) != set(sample_items(benchmark, 13, seed=8)["item"])
    assert set(sample["item"]) <= set(sample_items(benchmark, 26, seed=7)["item"])
    assert sample_items(benchmark, 1_000, seed=7).height == 65
    # 10 of 65: 6.15, 3.08, 0.77 → the last takes the place that is left over.
    ten = sample_items(benchmark, 10, seed=1)
    assert ten.group_by("domain", "subqueries").len().sort("domain", "subqueries")["len"].to_list() == [6, 3, 1]
    with pytest.raises(UsageError):
        sample_items(benchmark, 0, seed=1)
