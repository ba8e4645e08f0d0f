"""The gain table against plain computations; printed rows; wins and losses."""

from __future__ import annotations

import random

import numpy as np
import polars as pl
import pytest

from pipeline.benchmark import Average
from pipeline.published import rows
from pipeline.scoring.averages import summarise
from pipeline.scoring.compiler import compile_benchmark
from pipeline.scoring.gain_table import GAIN_TABLE, gain_table, printed_gain_table
from pipeline.scoring.holm import holm
from pipeline.scoring.illusion import split_gain
from pipeline.scoring.intervals import SUMMARY_INTERVALS, summary_intervals
from pipeline.scoring.query_changes import query_changes, wins_and_losses
from pipeline.scoring.randomization import paired_test, shrink_test
from pipeline.scoring.scores import RunScores, score_run
from pipeline.scoring.statistics import difference_interval, illusion_intervals, mean_interval
from tests.pipeline.scoring.small_benchmarks import benchmark, run_of

TOOLS = [f"t{i:02}" for i in range(30)]


def two_runs(seed: int = 1, queries: int = 40) -> tuple[RunScores, RunScores]:
    rng = random.Random(seed)
    labels = {
        f"q{i:02}": (
            rng.choice(["web", "code"]),
            rng.choice(["s", "t"]),
            rng.sample(TOOLS, rng.randint(1, 2)),
            [rng.sample(TOOLS, rng.randint(1, 2)) for _ in range(rng.randint(0, 4))],
        )
        for i in range(queries)
    }
    compiled = compile_benchmark(benchmark(TOOLS, labels))
    found = []
    for bonus in (0.0, 0.4):
        results = {
            query: {t: rng.random() + bonus * (t in truth) for t in rng.sample(TOOLS, 20)}
            for query, (_, _, truth, _) in labels.items()
        }
        found.append(score_run(compiled, run_of(compiled.target, results)))
    return found[0], found[1]


BASE, TUNED = two_runs()


def test_every_row_equals_the_plain_functions():
    table = gain_table(
        BASE.per_query,
        TUNED.per_query,
        metrics=("NDCG", "Comp"),
        averages=(Average.MACRO, Average.MICRO),
        flips=999,
        resamples=500,
    )
    assert table.schema == pl.Schema(GAIN_TABLE)
    scopes = [("macro", None), ("micro", None), ("domain", "code"), ("domain", "web")]
    expected_rows = [(metric, *scope) for metric in ("NDCG", "Comp") for scope in scopes]
    assert table.select("metric", "average", "domain").rows() == expected_rows
    for row in table.iter_rows(named=True):
        average = Average.MACRO if row["average"] == "macro" else Average.MICRO
        frames = [s.per_query for s in (BASE, TUNED)]
        if row["domain"]:
            frames = [f.filter(pl.col("domain") == row["domain"]) for f in frames]
        four = [f[f"{view}_{row['metric']}@10"].to_numpy() for f in frames for view in ("old", "new")]
        domain_of = (frames[0]["domain"] == "web").cast(pl.Int64).to_numpy()
        assert row["n"] == len(domain_of)
        split = split_gain(*(row[name] for name in ("base_old", "base_new", "tuned_old", "tuned_new")))
        assert (row["gain_old"], row["gain_new"], row["share"]) == (split.gain_old, split.gain_new, split.share)
        assert row["p_old"] == paired_test(four[0], four[2], domain_of, average, flips=999).p
        assert row["p_new"] == paired_test(four[1], four[3], domain_of, average, flips=999).p
        assert row["p_shrink"] == shrink_test(*four, domain_of, average, flips=999).p
        if row["domain"] is None:
            expected = illusion_intervals(*four, domain_of, average, resamples=500)
            for name in ("gain_old", "gain_new", "artifact", "share"):
                interval = getattr(expected, name)
                assert row[f"{name}_low"] == (None if interval.low is None else pytest.approx(interval.low))
                assert row[f"{name}_high"] == (None if interval.high is None else pytest.approx(interval.high))
        assert row["gain_old_low"] <= row["gain_old"] <= row["gain_old_high"]
    for metric in ("NDCG", "Comp"):
        family = table.filter(metric=metric)
        assert family["p_new_holm"].to_list() == holm(family["p_new"].to_list())


def test_the_old_gain_is_the_difference_of_the_summaries():
    table = gain_table(BASE.per_query, TUNED.per_query, flips=99, resamples=50)
    before, after = (summarise(s, s.compiled).filter(metric="NDCG", k=10, view="old") for s in (BASE, TUNED))
    for row in table.iter_rows(named=True):
        where = (pl.col("average") == row["average"]) & pl.col("domain").eq_missing(row["domain"])
        assert row["gain_old"] == after.filter(where)["value"].item() - before.filter(where)["value"].item()


def test_runs_over_other_queries_are_refused():
    with pytest.raises(ValueError, match="not scored over the same queries"):
        gain_table(BASE.per_query, TUNED.per_query.head(3))


def printed(retriever: str, slug: str = "tooleq") -> pl.DataFrame:
    (row,) = [r for r in rows() if (r.benchmark, r.retriever, r.method) == (slug, retriever, "full-doc")]
    names = ("view", "metric", "k", "average", "domain", "value")
    return pl.DataFrame([{name: getattr(v, name) for name in names} for v in row.values])


def test_printed_rows_give_the_papers_illusion_without_intervals():
    small = printed_gain_table(printed("qwen3-emb-0.6b"), printed("tool-embed-0.6b"))
    large = printed_gain_table(printed("qwen3-emb-4b"), printed("tool-embed-4b"))
    shares = [t.filter(metric="NDCG", average="macro")["share"].item() for t in (small, large)]
    assert [round(100 * share, 1) for share in shares] == [30.6, 47.0]
    code = large.filter(metric="NDCG", domain="code").row(0, named=True)
    assert (round(100 * code["gain_old"], 1), round(100 * code["gain_new"], 1)) == (2.1, -0.3)
    assert code["sign_flips"]
    assert small.schema == pl.Schema(GAIN_TABLE)
    assert small["average"].to_list()[:4] == ["macro", "domain", "domain", "domain"]
    for name in ("gain_old_low", "p_old", "p_shrink_holm", "share_high"):
        assert small[name].null_count() == small.height


def test_printed_rows_without_new_figures_have_no_share():
    table = printed_gain_table(printed("bm25s").filter(view="old"), printed("qwen3-emb-4b"))
    assert table["share"].null_count() == table.height and table.height > 0
    assert "no scores against all valid combinations" in table["why_undefined"][0]


def test_changes_and_their_counts_equal_a_count_by_hand():
    changes = query_changes(BASE.per_query, TUNED.per_query, "Recall", 5)
    one, two = (s.per_query["new_Recall@5"].to_list() for s in (BASE, TUNED))
    assert changes["outcome_new"].to_list() == [
        "win" if b > a else "loss" if b < a else "tie" for a, b in zip(one, two, strict=True)
    ]
    counts = wins_and_losses(changes)
    total = counts.filter(pl.col("domain").is_null(), view="new").row(0, named=True)
    assert total["wins"] == sum(b > a for a, b in zip(one, two, strict=True)) > 0
    domains = counts.filter(pl.col("domain").is_not_null(), view="new")
    assert [domains[c].sum() for c in ("wins", "losses", "ties")] == [total[c] for c in ("wins", "losses", "ties")]


def test_summary_intervals_equal_the_single_ones():
    compiled = BASE.compiled
    table = summary_intervals(BASE, compiled, resamples=300)
    assert table.schema == pl.Schema(SUMMARY_INTERVALS)
    plain = summarise(BASE, compiled)
    assert table.head(plain.height).select(plain.columns).equals(plain)
    assert table.height == plain.height * 3 // 2
    frame = BASE.per_query
    old, new = (frame[f"{view}_NDCG@5"].to_numpy() for view in ("old", "new"))
    for average in Average:
        rows = {r["view"]: r for r in table.filter(metric="NDCG", k=5, average=str(average)).iter_rows(named=True)}
        single = mean_interval(new, compiled.domain_of, average, resamples=300)
        assert (rows["new"]["low"], rows["new"]["high"]) == pytest.approx((single.low, single.high))
        lift = difference_interval(old, new, compiled.domain_of, average, resamples=300)
        assert rows["lift"]["value"] == pytest.approx(lift.value)
        assert (rows["lift"]["low"], rows["lift"]["high"]) == pytest.approx((lift.low, lift.high))
    for row in table.filter(average="source", metric="NDCG", k=5, view="new").iter_rows(named=True):
        mean = frame.filter(source=row["domain"])["new_NDCG@5"].mean()
        assert row["value"] == pytest.approx(mean)
        assert row["low"] < mean < row["high"]
    assert not np.isnan(table["low"].to_numpy()).any()
    keys = table.columns[:5]
    assert summary_intervals(frame, compiled, resamples=300).sort(keys).equals(table.sort(keys))
