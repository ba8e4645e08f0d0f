"""The worked examples of the page About, held against the code that scores runs."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.components import worked_examples as examples
from dashboard.components.numbers import points
from pipeline.jobs.site import Site
from pipeline.mftr.field_kernels import total_scores
from pipeline.mftr.schema import Field
from pipeline.scoring.compiler import compile_benchmark
from pipeline.scoring.scores import score_run
from tests.dashboard.dashboard_app import open_page
from tests.pipeline.scoring.small_benchmarks import benchmark, run_of


def figures(lists: dict[str, tuple[str, ...]], answers: dict[str, list[list[str]]], k: int) -> pl.DataFrame:
    """Old and new scores of ranked lists, from the kernel that scores runs; the first answer is the label."""
    tools = sorted(
        {tool for ranked in lists.values() for tool in ranked} | {t for a in answers.values() for c in a for t in c}
    )
    labels = {query: ("", "", sets[0], sets[1:]) for query, sets in answers.items()}
    compiled = compile_benchmark(benchmark(tools, labels))
    scored = {q: {tool: float(len(ranked) - i) for i, tool in enumerate(ranked)} for q, ranked in lists.items()}
    return score_run(compiled, run_of(compiled.target, scored), (k,)).per_query


@pytest.mark.parametrize("k", [2, 3, 5])
def test_old_and_new_are_the_kernels(k: int) -> None:
    answers = [sorted(examples.TRUTH), *(sorted(c) for c in examples.COMBINATIONS if c != examples.TRUTH)]
    found = figures({"q": examples.RANKED}, {"q": answers}, k)
    shown = {row["Metric"]: row for row in examples.example_scores((k,)).iter_rows(named=True)}
    for metric in ("NDCG", "Recall", "Comp"):
        old, new = (float(found[f"{view}_{metric}@{k}"][0]) for view in ("old", "new"))
        assert (shown[f"{metric}@{k}"]["Old"], shown[f"{metric}@{k}"]["New"]) == (points(old), points(new))
        assert shown[f"{metric}@{k}"]["Lift"] == points(new - old, signed=True)


def test_the_best_combination_is_the_new_score() -> None:
    table = examples.example_combinations(3)
    *each, best = table.rows(named=True)
    assert len(each) == 4
    for metric in ("NDCG@3", "Recall@3", "Comp@3"):
        assert float(best[metric]) == max(float(row[metric]) for row in each)
    new = {row["Metric"]: row["New"] for row in examples.example_scores((3,)).iter_rows(named=True)}
    assert {metric: best[metric] for metric in new} == new


def test_one_pool_would_punish_a_complete_answer() -> None:
    found = {row[0]: row[1:] for row in examples.example_pooled(10).iter_rows()}
    # The list [a1, b1] against {a1,b1}, {a2,b1}, {a3,b1} is 1 and 1; one pool would say 0.637 and 0.5.
    assert found == {"NDCG@10": ("100.0", "63.7"), "Recall@10": ("100.0", "50.0"), "Comp@10": ("100.0", "0.0")}


def test_the_illusion_is_the_kernels() -> None:
    answers = {query: [[tool] for tool in pair] for query, pair in examples.ILLUSION_LABELS.items()}
    means = {}
    for name, lists in examples.ILLUSION_LISTS.items():
        found = figures(lists, answers, 3)
        means[name] = tuple(float(found[f"{view}_NDCG@3"].mean()) for view in ("old", "new"))
    assert examples.illusion_means(3) == {name: pytest.approx(pair) for name, pair in means.items()}
    split = examples.example_split(3)
    assert split.gain_old == pytest.approx(means["fine-tuned"][0] - means["base"][0])
    assert split.share == pytest.approx(1 - (means["fine-tuned"][1] - means["base"][1]) / split.gain_old)
    assert split.share is not None and 0.5 < split.share < 1


def test_multi_field_scores_are_the_kernels() -> None:
    tools = examples.MFTR_TOOLS
    fields = np.array([[[t.scores[f.value] for t in tools] for f in Field]], dtype=np.float32)
    parameters = [pair for tool in tools for pair in tool.parameters.values()]
    offsets = np.cumsum([0, *(len(tool.parameters) for tool in tools)])
    totals = np.empty((1, len(tools)), dtype=np.float32)
    total_scores(
        fields,
        np.array([[score for score, _ in parameters]], dtype=np.float32),
        np.array([True]),
        np.arange(len(parameters)),
        offsets,
        np.array([required for _, required in parameters]),
        np.zeros(1, dtype=np.int64),
        np.array([[examples.MFTR_WEIGHTS[field.value] for field in Field]]),
        np.zeros(1),
        np.array([[examples.MFTR_TAU, examples.MFTR_ALPHA, examples.MFTR_REQUIRED, examples.MFTR_OPTIONAL]]),
        1.0,
        totals,
    )
    for tool, total in zip(tools, totals[0], strict=True):
        weighted, penalty = examples.mftr_parts(tool)
        assert weighted - penalty == pytest.approx(float(total), abs=1e-6)
    (first, first_penalty), (second, second_penalty) = map(examples.mftr_parts, tools)
    assert second > first and second - second_penalty < first - first_penalty, "the page says that the order turns"
    assert examples.example_fields().filter(Part="score").row(0)[2:] == tuple(f"{total:.3f}" for total in totals[0])


def test_the_page_shows_every_example(site: Site, app: AppTest) -> None:
    open_page(app, "about")
    assert not app.exception
    shown = [pl.from_pandas(frame.value) for frame in app.dataframe]
    names = ("lists", "scores", "combinations", "pooled", "illusion", "averages", "fields", "penalties")
    for table in (getattr(examples, f"example_{name}")() for name in names):
        assert any(table.equals(frame) for frame in shown), table
    share = points(examples.example_split().share)
    assert any(f"**{share} % of this gain is an artifact**" in text.value for text in app.markdown)
