"""Rates and paired differences: by hand, and as scipy computes them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest, permutation_test

from pipeline.downstream.outcomes import OUTCOMES, Outcomes, outcomes_of
from pipeline.downstream.pass_rates import paired_differences, pass_rates
from pipeline.downstream.report import CAVEAT, difference_table, downstream_report, rate_table, report_json


def study(results: dict[str, dict[str, str]]) -> Outcomes:
    """Category → setting → a sign a task: + passed, - failed, anything else no result."""
    rows = [
        (f"t{i}", category, setting, sign == "+")
        for category, settings in results.items()
        for setting, signs in settings.items()
        for i, sign in enumerate(signs)
        if sign in "+-"
    ]
    names = list(dict.fromkeys(setting for settings in results.values() for setting in settings))
    return outcomes_of(pl.DataFrame(rows, schema=OUTCOMES, orient="row"), tuple(names))


#: Oracle: 3 of 6 and 1 of 2. Retriever: 2 of 5 and 2 of 2. Expanded: 6 of 6 and 1 of 2.
BY_HAND = study(
    {
        "G1-Inst": {"Oracle": "+++---", "IR": "++---.", "expanded": "++++++"},
        "G2-Cat": {"Oracle": "+-", "IR": "++", "expanded": "-+"},
    }
)


def test_rates_by_hand() -> None:
    found = pass_rates(BY_HAND)
    assert found.select("setting", "category", "passed", "tasks").rows() == [
        ("Oracle", None, 4, 8), ("Oracle", "G1-Inst", 3, 6), ("Oracle", "G2-Cat", 1, 2),
        ("IR", None, 4, 7), ("IR", "G1-Inst", 2, 5), ("IR", "G2-Cat", 2, 2),
        ("expanded", None, 7, 8), ("expanded", "G1-Inst", 6, 6), ("expanded", "G2-Cat", 1, 2),
    ]  # fmt: skip
    wilson = binomtest(4, 8).proportion_ci(method="wilson")
    assert found.row(0)[4:] == pytest.approx((0.5, wilson.low, wilson.high))


def test_differences_by_hand() -> None:
    found = paired_differences(BY_HAND)
    shown = found.select("setting", "baseline", "category", "tasks", "gained", "lost").rows()
    assert shown == [
        ("expanded", "Oracle", None, 8, 4, 1), ("expanded", "Oracle", "G1-Inst", 6, 3, 0),
        ("expanded", "Oracle", "G2-Cat", 2, 1, 1),
        # IR has no result for the sixth task of G1-Inst: it counts in no pair with IR.
        ("expanded", "IR", None, 7, 3, 1), ("expanded", "IR", "G1-Inst", 5, 3, 0),
        ("expanded", "IR", "G2-Cat", 2, 0, 1),
        ("IR", "Oracle", None, 7, 1, 1), ("IR", "Oracle", "G1-Inst", 5, 0, 1), ("IR", "Oracle", "G2-Cat", 2, 1, 0),
    ]  # fmt: skip
    assert found["difference"].to_list() == pytest.approx([3 / 8, 1 / 2, 0, 2 / 7, 3 / 5, -1 / 2, 0, -1 / 5, 1 / 2])
    # Signs of n differing tasks: 2 of 2^n sums reach the largest one, all reach 0.
    assert found["p"].to_list() == pytest.approx([12 / 32, 2 / 8, 1, 10 / 16, 2 / 8, 1, 1, 1, 1])
    assert found["exact"].all()
    # Holm: the smallest of nine p values is 1/4.
    assert found["p_holm"].to_list() == [1] * 9
    # Fewer than ten tasks: no interval.
    assert found["low"].null_count() == found["high"].null_count() == 9


def test_tests_and_intervals_agree_with_scipy() -> None:
    rng = np.random.default_rng(3)
    before, after = rng.random(14) < 0.4, rng.random(14) < 0.8
    signs = {name: "".join("-+"[int(x)] for x in values) for name, values in (("a", before), ("b", after))}
    row = paired_differences(study({"c": signs})).row(0, named=True)
    difference = after.astype(float) - before
    reference = permutation_test(
        (difference,), np.mean, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    )
    assert row["exact"] and row["p"] == pytest.approx(reference.pvalue)
    # The same test under another name: McNemar's.
    assert row["p"] == pytest.approx(binomtest(row["gained"], row["gained"] + row["lost"]).pvalue)
    draws = difference[rng.integers(0, 14, (20_000, 14))].mean(axis=1)
    assert (row["low"], row["high"]) == pytest.approx(np.percentile(draws, [2.5, 97.5]), abs=1 / 14 + 1e-9)


def test_an_interval_needs_ten_tasks_that_do_not_all_differ_alike() -> None:
    def interval(before: str, after: str) -> tuple[float | None, float | None]:
        (row,) = paired_differences(study({"c": {"a": before, "b": after}})).head(1).select("low", "high").rows()
        return row

    assert interval("-" * 9, "+" * 8 + "-") == (None, None)
    assert interval("-" * 30, "+" * 30) == interval("+-" * 15, "+-" * 15) == (None, None)
    low, high = interval("-" * 10, "+" * 5 + "-" * 5)
    assert low is not None and high is not None and low < 0.5 < high


def test_many_tasks_are_tested_by_drawn_signs() -> None:
    row = paired_differences(study({"c": {"a": "-" * 60 + "+" * 40, "b": "+" * 60 + "-" * 40}})).row(0, named=True)
    assert not row["exact"] and row["p"] == pytest.approx(binomtest(60, 100).pvalue, abs=0.003)


def test_settings_without_a_common_task_have_no_difference() -> None:
    apart = study({"c": {"a": "+..", "b": ".-.", "d": "..+"}})
    assert paired_differences(apart).is_empty() and pass_rates(apart).height == 6
    assert apart.notes[0] == '2 tasks have no result under a: "t1", "t2"'


def test_the_report_says_it_in_points_and_in_full() -> None:
    made = downstream_report(BY_HAND)
    rates = rate_table(made)
    assert rates.columns == ["category", "Oracle, %", "IR, %", "expanded, %"]
    assert rates["category"].to_list() == ["all tasks", "G1-Inst", "G2-Cat"]
    assert rates.row(1)[1] == "50.0 [18.8, 81.2], n 6"
    row = difference_table(made).row(0, named=True)
    assert (row["difference of"], row["points"], row["p"]) == ("expanded − Oracle", "+37.5", "0.375")
    assert row["95 % interval"] == "—"
    told = report_json(made)
    assert told["differences"][0]["difference"] == 0.375 and told["caveat"] == CAVEAT
    # Ranges as printed; labels of the figure without a category, since none can be told.
    assert [(figure["printed"], figure["unit"]) for figure in told["reported"]] == [
        ("76.1; 68.2; 85.0; 81.5; 67.6; 67.2", "%"), ("3.5 to 6.5", "pp"), ("1.0 to 6.9", "pp"),
    ]  # fmt: skip
