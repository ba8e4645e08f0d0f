"""What a request with fields settles to, and which requests are the same job and the same run."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from pipeline.errors import ModelError, UsageError
from pipeline.jobs import durable, job_client, measuring
from pipeline.jobs.benchmark_library import import_into_store, load_compiled
from pipeline.jobs.estimate import estimate
from pipeline.jobs.evaluation_request import EvaluationRequest, resolve_request
from pipeline.jobs.fields import retrieval as field_retrieval
from pipeline.jobs.fields import texts as field_texts
from pipeline.jobs.fields.sources import ready_sources
from pipeline.jobs.measured_runs import run_id_of
from pipeline.jobs.site import Site, open_site
from pipeline.mftr.schema import Argument, RewrittenQuery, StandardizedTool, ToolNeed
from pipeline.published import catalogue
from store.access import mftr, runs
from store.errors import NotFound
from store.field_text_models import FieldTextSource, ParameterSource
from store.settings import Settings
from tests.pipeline.jobs.worker_process import small_benchmark

MFTR = EvaluationRequest("small", "bm25", "mftr")


@pytest.fixture
def site(tmp_path: Path) -> Generator[Site]:
    made = open_site(Settings(home=tmp_path / "home", llm_budget_dollars=50))
    made.database.migrate()
    import_into_store(made, small_benchmark())
    yield made
    durable.close_job_client(made)
    made.database.close()


def store_texts(site: Site, intent: str = "play a song") -> tuple[str, str]:
    """Ids of imported tools and queries: one of each, the others without fields."""
    with site.database.reading() as session:
        from store.access import benchmarks

        version = benchmarks.get(session, "small")
    target = load_compiled(site, version.id).target
    tool = StandardizedTool(target.tools.ids[0], "Plays songs.")
    query = RewrittenQuery(
        target.queries.ids[0], (ToolNeed(intent, "Plays songs.", "A song."),), (Argument("song", "its name"),), 3
    )
    imported = field_texts.Origin(FieldTextSource.IMPORTED)
    return (
        field_texts.store_tools(site, version.id, target, [tool], imported).id,
        field_texts.store_queries(site, version.id, target, [query], imported).id,
    )


def test_requests_of_older_methods_keep_their_jobs_and_runs(site: Site) -> None:
    # As the version before these methods made them.
    known = {
        EvaluationRequest("small", "bm25"): ("evaluate-50e34541387731a020c75d3530b0313a", "yhuz4askzzqeub"),
        EvaluationRequest("small", "minilm"): ("evaluate-7ec9d3bf76969f9d74a99bb433ea4fac", "65zh4k3t4v3wvp"),
        EvaluationRequest("small", "minilm", method="adapter", positives="equivalents"): (
            "evaluate-bb3cee7fa59d63e786c000b2f88f982b",
            "nzj8s7w6dqhy5n",
        ),
        EvaluationRequest("small", "minilm", method="sub-query", preset="paper", depth=50): (
            "evaluate-443c83df7727ef7f55ce9235d9cbdc7e",
            "cdc78hc77f6rjd",
        ),
    }
    for request, (job_id, run_id) in known.items():
        found = resolve_request(site, request)
        assert (found.job_id, run_id_of(found.run_key)) == (job_id, run_id)
        # What a language model may cost means nothing here.
        same = EvaluationRequest.from_json({**request.as_json(), "budget": 3.0, "llm": "openai/x"})
        assert resolve_request(site, same).job_id == job_id
    # A job that an older version wrote down.
    old = {"benchmark": "small", "model": "bm25", "method": "full-doc", "preset": "card", "instruction": False}
    assert EvaluationRequest.from_json(old) == EvaluationRequest("small", "bm25")


def test_equal_requests_are_one_job_and_different_ones_never(site: Site) -> None:
    tools, queries = store_texts(site)
    other_tools, other_queries = store_texts(site, "stop a song")
    assert tools == other_tools and queries != other_queries
    first = job_client.submit(site, MFTR)
    spelled = EvaluationRequest(
        "small@1", "bm25s", "mftr", method_preset="paper", standardizer="rule-based", rewriter="original", budget=1.0
    )
    assert job_client.submit(site, spelled) == first
    (job,) = job_client.list_jobs(site)
    assert job.request.standardizer == "rule-based" and job.request.rewriter == "original"
    different = [
        MFTR,
        EvaluationRequest("small", "bm25"),
        EvaluationRequest("small", "bm25", "mftr", method_preset="v2"),
        EvaluationRequest("small", "bm25", "mftr", depth=20),
        EvaluationRequest("small", "minilm", "mftr"),
        EvaluationRequest("small", "minilm", "mftr", preset="paper"),
        EvaluationRequest("small", "bm25", "without-penalty"),
        EvaluationRequest("small", "bm25", "without-weighting"),
        EvaluationRequest("small", "bm25", "mftr", standardizer=tools),
        EvaluationRequest("small", "bm25", "mftr", rewriter=queries),
        EvaluationRequest("small", "bm25", "mftr", rewriter=other_queries),
        EvaluationRequest("small", "bm25", "mftr", standardizer=tools, rewriter=queries),
    ]
    keys = {resolve_request(site, request).run_key for request in different}
    assert len(keys) == len(different)
    labels = {
        (found.method, found.model.entry.key, found.contract_label, found.request.depth)
        for found in (resolve_request(site, request) for request in different)
    }
    assert len(labels) == len(different), "what is a run of its own has a row of its own"


def test_a_row_says_who_filled_the_fields(site: Site) -> None:
    tools, queries = store_texts(site)
    plain = resolve_request(site, MFTR)
    assert plain.contract_label == "card, MFTR paper, rule-based documents, original query"
    stored = EvaluationRequest(
        "small", "minilm", "mftr", preset="paper", method_preset="v2", standardizer=tools[:10], rewriter=queries
    )
    settled = resolve_request(site, stored)
    assert settled.request.standardizer == tools
    assert settled.contract_label == (f"paper, MFTR v2, stored documents {tools[:8]}, stored queries {queries[:8]}")


def test_every_field_method_is_a_known_method_of_the_tables() -> None:
    from pipeline.jobs.fields.methods import METHODS

    assert {method.key for method in catalogue.methods()} <= set(METHODS)


@pytest.mark.parametrize(
    ("request_", "error", "says"),
    [
        (EvaluationRequest("small", "bm25", "mftr", method_preset="v3"), UsageError, "paper"),
        (EvaluationRequest("small", "bm25", "onlinerag"), UsageError, "embeddings"),
        (EvaluationRequest("small", "bm25", "easytool", method_preset="v2"), UsageError, "no presets"),
        (EvaluationRequest("small", "minilm", "onlinerag", method_preset="v2"), UsageError, "unit-ball"),
        (EvaluationRequest("small", "bm25", "stand-only", rewriter="llm"), UsageError, "rewriter"),
        (EvaluationRequest("small", "bm25", "rewrite-only"), UsageError, "rewrites"),
        (EvaluationRequest("small", "bm25", "without-weighting", weights="x"), UsageError, "weights"),
        (EvaluationRequest("small", "bm25", "mftr", standardizer="nobody"), NotFound, "rule-based or llm"),
        (EvaluationRequest("small", "bm25", "mftr", rewriter="nobody"), NotFound, "original or llm"),
        (EvaluationRequest("small", "bm25", "mftr", weights="nothing"), NotFound, "nothing"),
        (EvaluationRequest("small", "bm25", "mftr", standardizer="llm", budget=1e9), UsageError, "BUDGET_DOLLARS"),
        (EvaluationRequest("small", "bm25", "easytool", budget=-1.0), UsageError, "0 to 50"),
        (EvaluationRequest("small", "bm25", "mftr", standardizer="llm", budget=float("nan")), UsageError, "budget"),
        (EvaluationRequest("small", "no-such-model", "mftr"), ModelError, "no-such-model"),
    ],
)
def test_what_does_not_fit_together_is_refused_at_once(
    site: Site, request_: EvaluationRequest, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        job_client.submit(site, request_)
    assert not durable.has_jobs(site)


def test_texts_and_weights_of_another_kind_or_version_are_refused(site: Site) -> None:
    tools, queries = store_texts(site)
    with pytest.raises(UsageError, match="are queries"):
        resolve_request(site, EvaluationRequest("small", "bm25", "mftr", standardizer=queries))
    learned = resolve_request(site, MFTR)
    sources = ready_sources(site, learned)
    assert sources is not None
    set_id = field_retrieval.learn(site, learned, sources)
    assert set_id is not None and field_retrieval.learn(site, learned, sources) == set_id
    with site.database.reading() as session:
        (found,) = mftr.list_parameters(session)
    assert found.source is ParameterSource.LEARNED and [fold.fold for fold in found.folds] == [0, 1, 2, 3, 4]
    with pytest.raises(UsageError, match="learned here"):
        resolve_request(site, EvaluationRequest("small", "bm25", "mftr", weights=set_id))
    later = small_benchmark()
    later = replace(later, info=replace(later.info, version="2"), content_hash="0" * 64)
    import_into_store(site, later)
    with pytest.raises(UsageError, match="another benchmark version"):
        resolve_request(site, EvaluationRequest("small@2", "bm25", "mftr", standardizer=tools))


def test_imported_weights_rank_the_queries_of_their_folds_and_fit_nothing_else(site: Site) -> None:
    plain = resolve_request(site, MFTR)
    target = load_compiled(site, plain.version.id).target
    imported = field_texts.Origin(FieldTextSource.IMPORTED)
    made = field_texts.rule_based_tools(small_benchmark())
    tools = field_texts.store_tools(site, plain.version.id, target, made, imported).id
    asked = [
        replace(query, test_fold=number % 2)
        for number, query in enumerate(field_texts.original_queries(small_benchmark()))
    ]
    queries = field_texts.store_queries(site, plain.version.id, target, asked, imported).id
    # The even queries by description alone, the odd ones by what does not match it; no query has arguments.
    folds = tuple(
        mftr.FoldParameters(number, weights, tau=0.3, alpha=15.0, required_penalty=0.0, optional_penalty=0.0)
        for number, weights in enumerate([(1.0, 0.0, 0.0, 0.0), (-1.0, -1.0, 0.0, 0.0)])
    )
    key = (plain.version.id, plain.contract.hash, tools, queries, {}, ParameterSource.IMPORTED)
    weights = mftr.ParameterSet(mftr.parameter_set_id(*key, folds), *key, 2, folds)
    with site.database.session() as session:
        mftr.add_parameters(session, weights)
    request = replace(MFTR, standardizer=tools, rewriter=queries, weights=weights.id)
    evaluation = resolve_request(site, request)
    assert evaluation.contract_label.endswith(f"imported weights {weights.id[:8]}")
    short = replace(request, standardizer=tools[:8], rewriter=queries[:8], weights=weights.id[:8])
    assert resolve_request(site, short).job_id == evaluation.job_id, "beginnings of ids name the same work"
    with site.database.reading() as session:
        run = runs.get(session, measuring.measure(site, evaluation))
    assert run.trained_on_benchmark == "unknown" and any("imported" in note for note in run.notes)
    assert any("below 0 (that of description in 1 of 2 folds)" in note for note in run.notes), run.notes
    assert run.ranking_artifact is not None
    best = site.artifacts.get_frame(run.ranking_artifact).group_by("query_id").agg(pl.col("score").max())
    scores = dict(best.select("query_id", "score").iter_rows())
    even, odd = ([scores[query.query_id] for query in asked[half::2]] for half in (0, 1))
    assert set(odd) == {0.0} and sum(score > 0 for score in even) > len(even) / 2
    for wrong, says in (
        (replace(request, model="minilm"), "another model"),
        (replace(request, rewriter=""), "other texts"),
        (replace(request, standardizer="rule-based"), "other texts"),
    ):
        with pytest.raises(UsageError, match=says):
            resolve_request(site, wrong)


def test_an_estimate_counts_fields_and_questions(site: Site) -> None:
    plain = estimate(site, EvaluationRequest("small", "minilm", "mftr"))
    assert plain.asking is None and plain.queue == "cpu" and 0 < plain.to_encode <= plain.documents + plain.queries
    tools, queries = small_benchmark().tools.height, small_benchmark().queries.height
    asked = estimate(
        site,
        EvaluationRequest("small", "bm25", "mftr", standardizer="llm", rewriter="llm", llm="openai/gpt-4o-mini"),
    )
    assert asked.queue == "llm" and asked.asking is not None and not asked.asking.rough
    # Equal documents of equal names are asked once.
    assert queries < asked.asking.calls <= 4 * tools + queries
    assert asked.asking.cost is not None and asked.asking.worst_cost is not None
    assert 0 < asked.asking.cost < asked.asking.worst_cost
    unknown = estimate(site, EvaluationRequest("small", "bm25", "easytool", llm="hosted_vllm/nobody"))
    assert unknown.asking is not None and unknown.asking.rough and unknown.asking.cost is None
    assert any("guess" in note for note in unknown.notes)
