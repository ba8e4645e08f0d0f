"""Statistics, pool bias and estimate of an expansion, against counting by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from pipeline.benchmark import BenchmarkInfo, Kind
from pipeline.formats.benchmark_folder import read_benchmark_folder
from pipeline.formats.benchmark_validation import build_benchmark
from pipeline.formats.combinations_file import read_combinations_file
from pipeline.jobs.first_start import demo_folder
from pipeline.llm.memory import MemoryAnswers
from pipeline.llm.prices import Price
from pipeline.retrieval.documents import run_target
from pipeline.retrieval.models import resolve_model
from pipeline.retrieval.retrieve import retrieve
from pipeline.toolex.estimate import estimate_run
from pipeline.toolex.expand import expand
from pipeline.toolex.growth import growth_queue, judge_uncertainty
from pipeline.toolex.new_version import expanded_benchmark
from pipeline.toolex.pool_bias import leave_one_out, pool_bias, without_member
from pipeline.toolex.provenance import candidate_ranks_frame, query_states_frame
from pipeline.toolex.settings import PoolMember, Stage, ToolexSettings
from pipeline.toolex.statistics import acceptance_by_rank, audits_by_judge, by_length_quartile, table_one
from pipeline.toolex.verified_file import NAME, write_verified_combinations
from pipeline.toolex.verify import verify_question
from tests.pipeline.toolex.demo_judge import LabelJudge, RecordedJudge, labels_of, stripped
from tests.pipeline.toolex.search import settings_for, two_member_pool


@pytest.fixture(scope="module")
def expanded():
    """The demo skills, expanded with a shallow pool, so that its members differ."""
    skills = read_benchmark_folder(demo_folder("skills"))
    bare = stripped(skills)
    expansion = expand(bare, settings_for(8), RecordedJudge(LabelJudge(skills)), two_member_pool(bare, 8))
    return expanded_benchmark(bare, expansion, "2"), expansion


def test_table_one_equals_counting(expanded):
    made, expansion = expanded
    table = table_one(made, query_states_frame(expansion))
    row = table.row(0, named=True)
    accepted = [v for q in expansion.queries for row_ in q.verdicts for v in row_ if v.accepted]
    steps = sum(len(q.verdicts) for q in expansion.queries)
    sets = [sum(c.accepted for c in q.combinations) for q in expansion.queries]
    assert (row["queries"], row["subqueries"], row["verified_items"]) == (59, steps, len(accepted))
    assert row["items_per_subquery"] == pytest.approx(len(accepted) / steps)
    assert row["combinations"] == sum(sets) and row["combinations_per_query"] == pytest.approx(sum(sets) / 59)
    assert row["queries_with_alternative"] == pytest.approx(sum(n > 1 for n in sets) / 59)
    served = sum(sum(v.accepted for v in row_) > 1 for q in expansion.queries for row_ in q.verdicts)
    assert row["subqueries_with_equivalent"] == pytest.approx(served / steps)
    assert row["audited"] == sum(len(q.combinations) - 1 for q in expansion.queries)
    assert (row["truncated"], row["decomposition_failed"]) == (0, 0)
    domains = table.slice(1)
    assert domains["audited"].sum() == row["audited"] and domains.height == made.queries["domain"].n_unique()
    assert table_one(made)["audited"].null_count() == table.height


def test_acceptance_by_judge_and_rank_equals_counting(expanded):
    made, expansion = expanded
    table = acceptance_by_rank(made.equivalents)
    judged = [v for q in expansion.queries for row in q.verdicts for v in row if v.provenance]
    first = table.row(0, named=True)
    assert first["rank"] is None and first["judge"] == "openai/gpt-4o-mini"
    assert (first["judged"], first["accepted"]) == (len(judged), sum(v.accepted for v in judged))
    for rank in (1, 3):
        at = [v.accepted for v in judged if v.candidate.rank == rank]
        row = table.filter(pl.col("rank") == rank).row(0, named=True)
        assert (row["judged"], row["accepted"], row["rate"]) == (len(at), sum(at), pytest.approx(np.mean(at)))
    audits = audits_by_judge(made.combinations).row(0, named=True)
    audited = [c for q in expansion.queries for c in q.combinations if c.provenance]
    assert audits["audited"] == len(audited) and audits["accepted"] == sum(c.accepted for c in audited)


def test_pool_bias_equals_counting(expanded):
    made, expansion = expanded
    ranks = candidate_ranks_frame(expansion)
    bias = pool_bias(made, ranks)
    accepted = [
        v.candidate.ranks for q in expansion.queries for row in q.verdicts for v in row if v.accepted and v.provenance
    ]
    assert bias.equivalents == len(accepted)
    for place, member in enumerate(("bm25", "ngrams")):
        row = bias.members.filter(member=member).row(0, named=True)
        only = sum(r[place] is not None and r[1 - place] is None for r in accepted)
        assert (row["found"], row["only"]) == (sum(r[place] is not None for r in accepted), only)
        assert only > 0, "the example must show something"
    assert bias.only_one == pytest.approx(bias.members["only"].sum() / len(accepted))


def test_leaving_a_member_out_equals_expanding_without_it(expanded):
    """With the whole product audited and RRF order irrelevant to what is valid, nothing but its finds is lost."""
    made, expansion = expanded
    ranks = candidate_ranks_frame(expansion)
    less = without_member(made, ranks, "ngrams")
    skills = read_benchmark_folder(demo_folder("skills"))
    bare = stripped(skills)
    pool = two_member_pool(bare, 8)
    pool._members.pop("ngrams")
    alone = expand(bare, ToolexSettings(pool=(PoolMember("bm25"),), depth=8), RecordedJudge(LabelJudge(skills)), pool)
    other = expanded_benchmark(bare, alone, "3")

    def valid(frame, *columns):
        rows = frame.filter(verdict="valid").select(columns).iter_rows()
        return {tuple(frozenset(v) if isinstance(v, list) else v for v in row) for row in rows}

    key = ("query_id", "position", "tool_id")
    assert valid(less.equivalents, *key) == valid(other.equivalents, *key) < valid(made.equivalents, *key)
    sets = ("query_id", "tool_ids")
    assert valid(less.combinations, *sets) == valid(other.combinations, *sets) < valid(made.combinations, *sets)

    run = retrieve(made, resolve_model("bm25"), depth=20).run
    changes = leave_one_out(made, ranks, {"bm25": run})
    assert changes["member"].to_list() == ["bm25", "ngrams"] and (changes["change"] <= 0).all()
    assert (changes["new"] + changes["change"]).to_list() == pytest.approx(changes["without"].to_list())


def test_values_by_length_quartile(expanded):
    made, _ = expanded
    tokens = made.tools["documentation"].str.len_chars().to_list()
    lift = np.arange(59, dtype=np.float64)
    table = by_length_quartile(made, tokens, {"lift": lift})
    assert table["queries"].to_list() == [15, 15, 15, 14]
    assert table["shortest"].to_list() == sorted(table["shortest"].to_list())
    assert float((table["lift"] * table["queries"]).sum()) == pytest.approx(lift.sum())
    length = dict(zip(made.tools["tool_id"], tokens, strict=True))
    means = sorted(np.mean([length[t] for t in tools]) for tools in made.ground_truth["tool_ids"])
    assert table["longest"][0] == pytest.approx(means[14]) and table["shortest"][1] == pytest.approx(means[15])


def test_the_estimate_of_a_small_run_is_close_to_what_it_asks(expanded):
    made, expansion = expanded
    bare = stripped(made)
    prices = {f"openai/{name}": Price(1e-6, 2e-6) for name in ("a", "b", "c")}
    settings = settings_for(8, decompose_judge="openai/a", verify_judge="openai/b", audit_judge="openai/c")
    audited = sum(len(q.combinations) - 1 for q in expansion.queries)
    lines = estimate_run(bare, settings, prices=prices, combinations_per_query=audited / 59)
    assert [line.stage for line in lines] == list(Stage)
    first, second, third = lines
    steps = made.subqueries.height
    assert (first.line.calls, first.most_questions) == (59, 59 * 4)
    assert second.line.calls == second.most_questions == steps * 16
    assert third.line.calls == audited and third.most_questions == 59 * 100
    # Every question of every stage may be answered four times, three of them invalid.
    assert [line.most_calls for line in lines] == [4 * line.most_questions for line in lines]
    once = estimate_run(bare, settings, attempts=1)
    assert [line.most_calls for line in once] == [line.most_questions for line in lines]
    assert [line.line.model for line in lines] == ["openai/a", "openai/b", "openai/c"]
    for line in lines:
        assert 0 < line.line.expected_cost < line.line.worst_cost
    # Nothing is known of what it may cost where nobody states a price.
    unknown = estimate_run(bare, settings_for(8, verify_judge="ollama/qwen3"), store=MemoryAnswers())
    assert unknown[1].line.expected_cost is None


def test_the_estimate_of_toolequals_size_writes_a_sample_of_its_questions(monkeypatch):
    """7,360 queries with 13,506 sub-queries over 43,215 tools: 270,120 verifications."""
    tools, queries, steps = 43_215, 7_360, 13_506
    ids = [f"tool_{n}" for n in range(tools)]
    documents = [f'{{"name": "tool {n}", "description": "{"does something of the kind " * 12}"}}' for n in range(tools)]
    sizes = [2 if n < steps - queries else 1 for n in range(queries)]
    benchmark = build_benchmark(
        BenchmarkInfo("big", "Big", Kind.TOOL, "1", "", ""),
        {
            "tools": pl.DataFrame({"tool_id": ids, "documentation": documents, "name": ids}).with_columns(
                domain=pl.lit(""), source=pl.lit("")
            ),
            "queries": pl.DataFrame(
                {"query_id": [f"q{n}" for n in range(queries)], "text": [f"What about {n}?" for n in range(queries)]}
            ).with_columns(instruction=pl.lit("Find tools."), domain=pl.lit("d"), source=pl.lit("")),
            "ground_truth": pl.DataFrame(
                {
                    "query_id": [f"q{n}" for n in range(queries)],
                    "tool_ids": [[ids[(n * 5 + i) % tools] for i in range(size)] for n, size in enumerate(sizes)],
                }
            ),
        },
    )
    written = []

    def counted(*args):
        written.append(args)
        return verify_question(*args)

    monkeypatch.setattr("pipeline.toolex.estimate.verify_question", counted)
    lines = estimate_run(benchmark, ToolexSettings())
    assert [line.line.calls for line in lines] == [7_360, 270_120, 31_648]
    assert all(line.line.expected_cost for line in lines)
    assert 0 < len(written) < 5_000


def test_the_growth_queue_names_unjudged_tools_that_runs_rank_high(expanded):
    made, _ = expanded
    target = run_target(made)
    run = retrieve(made, resolve_model("bm25"), depth=20).run
    sub = retrieve(made, resolve_model("bm25"), "sub-query", depth=20).run
    queue = growth_queue(made, {"a": run, "b": sub}, target, depth=5)
    judged = set(made.equivalents.select("query_id", "tool_id").iter_rows())
    tops = {}
    for ranking in (run, sub):
        for q, query_id in enumerate(target.queries.ids):
            for rank, tool in enumerate(
                ranking.tools[ranking.offsets[q] : ranking.offsets[q + 1]][:5].tolist(), start=1
            ):
                if (query_id, target.tools[tool]) not in judged:
                    tops.setdefault((query_id, target.tools[tool]), []).append(rank)
    assert {(r["query_id"], r["tool_id"]): r["runs"] for r in queue.iter_rows(named=True)} == {
        pair: len(ranks) for pair, ranks in tops.items()
    }
    first = queue.row(0, named=True)
    ranks = tops[first["query_id"], first["tool_id"]]
    assert first["best_rank"] == min(ranks) and first["rank_score"] == pytest.approx(sum(1 / (60 + r) for r in ranks))
    assert queue.equals(growth_queue(made, {"b": sub, "a": run}, target, depth=5))
    # Where judges are split in half, a pair counts twice as much.
    last = queue.row(-1, named=True)["query_id"]
    votes = pl.DataFrame(
        [(last, 0, "x", True), (last, 0, "x", False), (last, 0, "y", True), ("other", 0, "x", True)],
        schema=["query_id", "position", "tool_id", "accepted"],
        orient="row",
    )
    unsure = judge_uncertainty(votes)
    assert unsure.rows() == [(last, 1.0)]
    again = growth_queue(made, {"a": run, "b": sub}, target, depth=5, uncertainty=unsure)
    before, after = (frame["query_id"].to_list().index(last) for frame in (queue, again))
    assert after < before
    assert again.row(after, named=True)["priority"] == pytest.approx(2 * again.row(after, named=True)["rank_score"])
    assert growth_queue(made, {}, target).height == 0


def test_the_file_of_accepted_combinations_can_be_imported_again(expanded, tmp_path):
    made, _ = expanded
    assert write_verified_combinations(made, tmp_path / NAME) == made.combinations.filter(verdict="valid").height
    again = read_combinations_file(tmp_path / NAME, stripped(made), version="3")
    assert labels_of(again)["combinations"] == labels_of(made)["combinations"]
    scored = ["query_id", "tool_ids", "rrf_score"]
    assert again.combinations.select(scored).equals(made.combinations.filter(verdict="valid").select(scored))
