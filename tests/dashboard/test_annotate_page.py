"""Annotate: the form, expansions that wait, stop and are done; a loopback judge, no worker but where one is needed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.charts.acceptance_lines import acceptance_lines
from dashboard.charts.palette import Ground
from dashboard.components.annotation_pool_bias import without_sentence, without_table
from dashboard.components.annotation_verdicts import acceptance_sentence
from dashboard.components.annotation_version import next_version
from dashboard.components.annotation_words import dollars, result_sentence, without_rounding
from dashboard.components.job_view import left_words
from dashboard.current_site import use_site
from pipeline.benchmark import Benchmark
from pipeline.jobs import durable
from pipeline.jobs.annotations import batch, following, pools, quartiles, requests
from pipeline.jobs.annotations.here import run_here
from pipeline.jobs.annotations.requests import AnnotationRequest
from pipeline.jobs.benchmark_library import import_into_store
from pipeline.jobs.job_client import JobState
from pipeline.jobs.site import Site, open_site
from pipeline.jobs.submission import SubmissionMetadata, check_run, submit_run
from pipeline.llm.providers import KEY_VARIABLES
from pipeline.retrieval.documents import documents_in_order, run_target
from pipeline.retrieval.models import resolve_model
from pipeline.toolex.candidates import CandidatePool, LibrarySearch
from pipeline.toolex.settings import PoolMember, ToolexSettings
from store.access import annotations, benchmarks, rankings, runs
from store.settings import Settings
from tests.dashboard.conftest import APP
from tests.dashboard.dashboard_app import open_page
from tests.llm_server import Fault, LlmServer, answer_batch
from tests.pipeline.jobs.annotation_work import JUDGES, PRICES, bare, demo, some_queries, work_here
from tests.pipeline.toolex.demo_judge import LabelJudge
from tests.pipeline.toolex.search import Ngrams

#: The form, filled for the loopback judge.
ASKED = {
    "an_benchmark": "bare@1",
    "an_decompose": "openai/planner",
    "an_verify": "openai/verifier",
    "an_audit": "openai/auditor",
    "an_pool": "bm25s",
    "an_depth": "4",
    "an_cost": "5.0",
}
SECRET = "sk-never-to-be-shown"


@dataclass(frozen=True)
class Expanded:
    """A site with one finished expansion, and the judge that made it."""

    site: Site
    server: LlmServer
    done: str


def two_members(benchmark: Any, members: Any, depth: int, **_: Any) -> CandidatePool:
    """BM25 beside character n-grams under a registered name: a second retriever that loads no model."""
    target = run_target(benchmark)
    documents = documents_in_order(benchmark, target)
    searches = {
        "bm25": LibrarySearch(documents, resolve_model("bm25"), PoolMember("bm25")),
        "minilm": Ngrams(documents),
    }
    return CandidatePool(target, {member.model: searches[member.model] for member in members}, depth)


@pytest.fixture(scope="module")
def expanded(prepared_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[Expanded]:
    """Five queries of the demo tools, expanded with a cap that cuts some off and one question that always fails."""
    home = tmp_path_factory.mktemp("annotate") / "home"
    shutil.copytree(prepared_home, home)
    whole = demo("tools")
    ids = some_queries(whole, 5)
    parent = bare(whole, ids)
    broken: list[str] = []

    def fault(_: int, body: dict[str, Any]) -> Fault | None:
        said = json.dumps(body["messages"])
        if "candidate" in said and (not broken or said == broken[0]):
            broken[:] = [said]
            return Fault.invalid_json()
        return None

    with LlmServer(LabelJudge(whole), faults=fault) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(pools, "library_pool", two_members)
        site = open_site(Settings(home=home, llm_base_url=server.url, llm_prices=PRICES, llm_attempts=2))
        import_into_store(site, parent)
        settings = ToolexSettings(pool=(PoolMember("bm25"), PoolMember("minilm")), depth=6, cap=2, **JUDGES)
        record = requests.define(site, AnnotationRequest("bare@1", "2", settings, max_cost=500.0))
        run_here(site, record.id)
        for name, turned in (("One", False), ("Two", True)):
            file = home.parent / f"{name}.trec"
            file.write_text(_run(whole, ids, turned))
            checked = check_run(site, file, "bare@1")
            submit_run(site, checked, file, SubmissionMetadata(retriever=name), publish=True)
        use_site(site)
        yield Expanded(site, server, record.id)
        use_site(None)
        durable.close_job_client(site)
        site.database.close()


def _run(whole: Benchmark, ids: list[str], turned: bool) -> str:
    """A run that finds valid tools beside the labels first, from one end of their list or from the other."""
    valid = whole.equivalents.filter(verdict="valid", origin="judged")
    lines = []
    for query in ids:
        found = valid.filter(query_id=query)["tool_id"].unique().sort(descending=turned).to_list()
        rest = [tool for tool in whole.tools["tool_id"] if tool not in found]
        ranked = enumerate([*found, *rest[:20]], start=1)
        lines += [f"{query} Q0 {tool} {rank} {1 / rank:.6f} t\n" for rank, tool in ranked]
    return "".join(lines)


def said(app: AppTest) -> str:
    parts = [*app.title, *app.subheader, *app.markdown, *app.caption, *app.info, *app.success, *app.warning, *app.error]
    return "\n".join(str(element.value) for element in parts).replace("\\", "")


def sound(app: AppTest) -> AppTest:
    assert not app.exception, app.exception
    return app


def fresh(**query: str) -> AppTest:
    """Another reader who opens the page."""
    return sound(open_page(AppTest.from_file(str(APP), default_timeout=60), "annotate", **query))


def labels(app: AppTest) -> list[str]:
    return [button.label for button in app.button]


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No language model can be asked but at the site's own server."""
    for names in KEY_VARIABLES.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)


def test_the_form_says_what_it_takes_and_which_keys_are_missing(
    expanded: Expanded, no_keys: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    app = fresh(an_benchmark="bare@1")
    text = said(app)
    assert "set DEEPSEEK_API_KEY" in text and "its key is set (ANTHROPIC_API_KEY)" in text
    assert "asked at the server of EQUIRANK_LLM_BASE_URL" in text, "of gpt-4o-mini"
    assert SECRET not in text and SECRET not in str(app._tree)
    assert app.text_input(key="an_version").placeholder == "3", "version 2 is made"
    assert "which needs the hub and a GPU" in text, "of the paper's retriever"
    assert app.button(key="an_start").disabled and not app.button(key="an_batch").disabled
    table = app.dataframe[0].value
    assert table["Stage"].tolist() == ["Decompose", "Verify", "Audit", "All"]
    assert table["Questions"].iloc[0] == "5"
    app.number_input(key="an_cost").set_value(0.01).run()
    assert "is above the budget of $0.01" in said(sound(app))
    app.text_input(key="an_verify").set_value("no provider").run()
    assert "does not name a language model" in said(sound(app)) and "Start" not in labels(app)


def test_a_judge_without_a_price_needs_no_budget_in_dollars(expanded: Expanded, no_keys: None) -> None:
    app = fresh(**ASKED | {"an_verify": "openai/unpriced"})
    text = said(app)
    assert "A price that is not known here" in text and "EQUIRANK_LLM_PRICES" in text
    assert app.button(key="an_start").disabled
    app.number_input(key="an_cost").set_value(None).run()
    assert sound(app).button(key="an_start").disabled and "Nobody says yet what this may cost" in said(app)
    app.number_input(key="an_calls").set_value(900).run()
    assert not sound(app).button(key="an_start").disabled


def test_an_empty_budget_is_offered_the_estimate_rounded_up(expanded: Expanded) -> None:
    app = fresh(**ASKED)
    app.number_input(key="an_cost").set_value(None).run()
    assert app.button(key="an_start").disabled
    app.button(key="an_take_estimate").click().run()
    taken = sound(app).number_input(key="an_cost").value
    assert taken == int(taken) >= 1 and not app.button(key="an_start").disabled
    assert "is above the budget" not in said(app), "it covers the estimate"
    assert "an_take_estimate" not in [button.key for button in app.button]


def test_a_link_restores_the_form_and_a_taken_version_is_refused_in_words(expanded: Expanded) -> None:
    app = fresh(**ASKED | {"an_version": "2", "an_rule_verify": "function_only", "an_cap": "7"})
    assert app.segmented_control(key="an_rule_verify").value == "function_only"
    assert "whatever inputs it needs" in said(app) and app.number_input(key="an_cap").value == 7
    app.button(key="an_start").click().run()
    assert "bare@2 is stored" in sound(app).error[0].value.replace("\\", "")
    assert len(following.list_annotations(expanded.site)) == 1, "nothing was written down"


def test_a_version_taken_since_the_page_was_drawn_is_refused_and_the_next_offered(expanded: Expanded) -> None:
    app = fresh(**ASKED)
    shown = app.text_input(key="an_version").placeholder
    settings = ToolexSettings(pool=(PoolMember("bm25"),), depth=1, **JUDGES)
    other = requests.define(expanded.site, AnnotationRequest("bare@1", shown, settings, max_cost=1.0))
    known = len(following.list_annotations(expanded.site))
    app.button(key="an_start").click().run()
    following_number = sound(app).text_input(key="an_version").placeholder
    words = app.error[0].value.replace("\\", "")
    assert f"bare@{shown} was taken meanwhile" in words and f"bare@{following_number}: press" in words
    assert len(following.list_annotations(expanded.site)) == known, "nothing was written down"
    app.button(key="an_start").click().run()
    made = following.look(expanded.site, sound(app).query_params["expansion"])
    assert made.record.version == following_number
    requests.cancel(expanded.site, made.record.id)
    with expanded.site.database.session() as session:
        for record in (other, made.record):
            assert annotations.remove_unbegun(session, record.id)


def test_start_cancel_and_go_on(expanded: Expanded) -> None:
    app = fresh(**ASKED | {"an_version": "4", "an_calls": "0"})
    app.button(key="an_start").click().run()
    annotation = sound(app).query_params["expansion"]
    assert list(app.query_params) == ["expansion"]
    progress = following.look(expanded.site, annotation)
    assert (progress.state, progress.record.max_cost, progress.parent) == (JobState.WAITING, 5.0, "bare@1")
    assert progress.record.max_calls == 0, "zero is no call, and not no limit"
    assert "bare@1 → 4" in said(app) and "No worker is running" in said(app)
    app.button(key=f"an_cancel_{annotation}").click().run()
    assert following.look(expanded.site, annotation).state is JobState.CANCELLED
    app = fresh(expansion=annotation)
    assert "It was cancelled" in said(app)
    app.button(key=f"an_go_{annotation}").click().run()
    assert following.look(expanded.site, annotation).state is JobState.WAITING
    requests.cancel(expanded.site, annotation)
    listed = fresh(an_benchmark="bare@1").dataframe[-1].value
    assert listed[["New version", "State"]].values.tolist() == [["bare@4", "cancelled"], ["bare@2", "done"]]


def test_a_budget_that_is_used_up_can_be_raised(expanded: Expanded) -> None:
    settings = ToolexSettings(pool=(PoolMember("bm25"),), depth=3, **JUDGES)
    record = requests.define(expanded.site, AnnotationRequest("bare@1", "5", settings, max_calls=0, max_cost=0.001))
    requests.start(expanded.site, record.id)
    work_here(expanded.site, following.job_id_of(record.id))
    app = fresh(expansion=record.id)
    stopped = app.warning[0].value
    assert "Its budget stopped it" in stopped and "$0.00** of $0.001 and 0 of 0 calls" in stopped
    assert not app.error and said(app).count("Used: ") == 1, "once, in one format"
    assert "stopped by its budget" in said(app), "and not that it failed"
    kinds = {button.key: button.proto.type for button in app.button}
    assert (kinds[f"an_budget_{record.id}"], kinds[f"an_go_{record.id}"]) == ("primary", "secondary")
    app.button(key=f"an_budget_{record.id}").click().run()
    app.number_input(key="an_new_cost").set_value(40.0)
    app.number_input(key="an_new_calls").set_value(900)
    # Here every click draws the whole page, and the dialog is there only after a click on what opens it.
    app.button(key=f"an_budget_{record.id}").click()
    app.button(key="an_new_budget").click().run()
    progress = following.look(expanded.site, record.id)
    assert (progress.record.max_cost, progress.record.max_calls) == (40.0, 900)
    assert progress.state is JobState.WAITING
    requests.cancel(expanded.site, record.id)


def test_a_budget_above_what_the_operator_allows_is_lowered_in_words(expanded: Expanded) -> None:
    settings = ToolexSettings(pool=(PoolMember("bm25"),), depth=2, **JUDGES)
    record = requests.define(expanded.site, AnnotationRequest("bare@1", "8", settings, max_cost=40.0, max_calls=900))
    limits = {"llm_budget_dollars": 3.0, "llm_budget_calls": 70}
    lowered = open_site(expanded.site.settings.model_copy(update=limits))
    use_site(lowered)
    try:
        app = fresh(expansion=record.id)
        app.button(key=f"an_budget_{record.id}").click().run()
        assert "lowered from $40.00 to $3.00 and from 900 to 70 calls" in said(sound(app))
        assert [app.number_input(key=f"an_new_{what}").value for what in ("cost", "calls")] == [3.0, 70]
        app = fresh(**ASKED | {"an_cost": "9", "an_cap": "0"})
        text = said(app)
        assert "this link says “9”, which is not offered here; nothing is chosen instead" in text
        assert "this link says “0”, which is not offered here; shown instead: 100" in text
        assert app.number_input(key="an_cost").placeholder == "operator's limit, $3.00"
        assert not app.button(key="an_start").disabled
    finally:
        use_site(expanded.site)
        durable.close_job_client(lowered)
        lowered.database.close()


def test_a_round_of_a_batch_is_downloaded_and_answered(expanded: Expanded, tmp_path: Path) -> None:
    settings = ToolexSettings(
        pool=(PoolMember("bm25"),), depth=3, retry_temperature=0.5, decompose_tokens=999, **JUDGES
    )
    record = requests.define(expanded.site, AnnotationRequest("bare@1", "6", settings))
    file = tmp_path / "round.jsonl"
    exported = batch.export_round(expanded.site, record.id, file)
    app = fresh(expansion=record.id)
    assert f"{exported.pending} questions wait in a file" in said(app)
    assert [button.label for button in app.get("download_button")] == ["Batch file"]
    answers = tmp_path / "answers.jsonl"
    answer_batch(file, answers, LabelJudge(demo("tools")))
    app.file_uploader[0].set_value(("answers.jsonl", answers.read_bytes(), "application/x-ndjson")).run()
    progress = following.look(expanded.site, record.id)
    assert progress.state is JobState.WAITING and len(progress.record.answers) == 1
    requests.cancel(expanded.site, record.id)


def test_what_was_found_is_shown_part_by_part(expanded: Expanded) -> None:
    app = fresh(expansion=expanded.done)
    before_after = app.dataframe[0].value
    lines = before_after.set_index("Over all queries")
    old, new = lines.loc["Valid combinations a query"]
    assert old == "—" and f"**{new} valid combinations a query** instead of the labelled one." in said(app)
    assert before_after.columns.tolist() == ["Over all queries", "version 1", "version 2"]
    cells = dict(zip(before_after["Over all queries"], before_after["version 2"], strict=True))
    assert cells["Queries"] == "5" and int(cells["Queries cut off at the cap"]) > 0
    with expanded.site.database.reading() as session:
        made = benchmarks.get(session, "bare@2")
    assert cells["Valid combinations"] == str(made.combinations)
    verdicts = said(fresh(expansion=expanded.done, an_show="Verdicts"))
    assert "candidates were accepted" in verdicts
    pool = fresh(expansion=expanded.done, an_show="Pool")
    assert "were found by a single retriever of the pool." in said(pool)
    assert pool.dataframe[0].value["Retriever"].tolist() == ["BM25", "MiniLM-L6"]
    cost = fresh(expansion=expanded.done, an_show="Cost and settings")
    assert cost.dataframe[0].value["Stage"].tolist() == ["Decompose", "Verify", "Audit"]


def test_queries_that_need_a_look_are_listed_with_links(expanded: Expanded) -> None:
    app = fresh(expansion=expanded.done, an_show="Queries")
    truncated, failed = app.dataframe[0].value, app.dataframe[1].value
    assert all(link.startswith("/queries?q_benchmark=bare%402&q_query=") for link in truncated["Open"])
    assert (truncated["Combinations there are"].astype(int) > 3).any()
    assert failed["Stage"].tolist() == ["Verify"] and failed["Judge"].tolist() == ["openai/verifier"]
    assert "1 question has no valid answer (1 in Verify). Each counts as no." in [one.label for one in app.expander]
    # A version never changes: the next one asks just these.
    app.button(key=f"an_next_{expanded.done}").click().run()
    other = following.look(expanded.site, sound(app).query_params["expansion"])
    assert int(other.record.version) > 2 and other.record.retry_failed and other.state is JobState.WAITING
    requests.cancel(expanded.site, other.record.id)


def test_stored_runs_are_scored_against_the_new_version(expanded: Expanded) -> None:
    app = fresh(expansion=expanded.done, an_show="Runs")
    assert sorted(app.dataframe[0].value["Retriever"]) == ["One", "Two"]
    assert "No public run is scored on this version yet" in said(app)
    app.button(key=next(b.key for b in app.button if b.label.startswith("Score 2 runs"))).click().run()
    text = said(sound(app))
    assert "2 runs are now scored on bare@2" in text and "Nothing to re-score" not in text
    assert "Nothing to re-score" in said(fresh(expansion=expanded.done, an_show="Runs"))
    lifts = app.dataframe[0].value
    assert lifts["Documents"].tolist() == ["shortest", "short", "long", "longest"] and {"One", "Two"} <= set(lifts)
    check_quartiles(expanded.site, "bare@2")
    pool = fresh(expansion=expanded.done, an_show="Pool")
    without = pool.dataframe[1].value
    assert without.columns.tolist() == ["Run", "New", "without BM25", "without MiniLM-L6"]


def check_quartiles(site: Site, version: str) -> None:
    """Quartiles of lift add up to the lift of the run."""
    with site.database.reading() as session:
        record = benchmarks.get(session, version)
        one = rankings.with_ranking(session, [record.id])[0].run
        figures = runs.summaries(session, one.id).filter(metric="NDCG", k=10, average="micro")
    found = quartiles.lift_by_length(site, record.id, {"run": one.per_query_artifact or ""})
    assert found["queries"].sum() == 5 and found["longest"].is_sorted()
    micro = dict(figures.select("view", "value").iter_rows())
    assert micro["new"] > micro["old"]
    assert (found["run"] * found["queries"]).sum() / 5 == pytest.approx(micro["new"] - micro["old"])
    nothing = quartiles.gain_by_length(site, record.id, {"same": (one.per_query_artifact or "",) * 2})
    assert nothing["same"].to_list() == [0.0] * 4


def test_an_unknown_expansion_says_so(expanded: Expanded) -> None:
    app = fresh(expansion="nothing<b>")
    assert app.title[0].value == "No such expansion"
    app.button(key="an_back").click().run()
    assert sound(app).title[0].value == "Annotate"


def test_a_site_without_benchmarks_says_what_to_do(bare_site: Site) -> None:
    assert "equirank benchmark import" in said(fresh())


def test_the_next_version_is_the_next_number_that_is_free(expanded: Expanded) -> None:
    with expanded.site.database.reading() as session:
        records = benchmarks.list_records(session)
    by_name = {record.name: record for record in records}
    assert next_version(by_name["bare@1"], records) == "3"
    assert next_version(by_name["bare@1"], records, ["7", "trial"]) == "3", "somebody chose 7"
    assert next_version(by_name["bare@1"], records, ["3", "4", "7"]) == "5", "other expansions are to make them"
    assert next_version(by_name["tooleq@published"], records) == "2"


@pytest.mark.parametrize(
    ("cost", "words"),
    [(None, "unknown"), (0.0, "$0.00"), (0.00001, "under $0.0001"), (0.0042, "$0.0042"), (1234.5, "$1\u202f234.50")],
)
def test_money_is_never_rounded_to_nothing(cost: float | None, words: str) -> None:
    assert dollars(cost) == words


def test_a_free_model_costs_nothing_while_its_calls_are_open() -> None:
    assert dollars(without_rounding(3e-9, 3)) == "$0.00", "a billionth a call is set aside for rounding"
    assert dollars(without_rounding(3.1e-6, 3)) == "under $0.0001"
    assert without_rounding(None, 3) is None


def test_what_was_found_is_said_from_old_to_new() -> None:
    names = ("combinations_per_query", "queries_with_alternative", "subqueries_with_equivalent", "items_per_subquery")
    old, new = (
        pl.DataFrame([(None, *row)], schema={"domain": pl.String} | dict.fromkeys(names, pl.Float64), orient="row")
        for row in ((2.31, 0.4, 0.3, 1.5), (56.0, 1.0, 0.9, 4.25))
    )
    assert result_sentence(old, new, "skill") == (
        "**2.31 → 56.00 valid combinations a query**. Queries with an extra combination: 40.0 % → 100.0 %; sub-queries "
        "with an extra skill: 30.0 % → 90.0 %; verified items a sub-query: 1.50 → 4.25."
    )
    assert result_sentence(old, new.clear(), "skill") == ""


def accepted_at(rates: list[float]) -> pl.DataFrame:
    rows = [("judge/one", rank, 100, round(100 * rate), 0, rate) for rank, rate in enumerate(rates, start=1)]
    schema = ["judge", "rank", "judged", "accepted", "unanswered", "rate"]
    return pl.DataFrame(rows, schema=schema, orient="row")


def test_acceptance_says_whether_the_pool_is_deep_enough() -> None:
    assert "a greater depth is worth its price" in acceptance_sentence(accepted_at([0.3] * 8))
    assert acceptance_sentence(accepted_at([0.9, 0.5, 0.2, 0.1, 0.0, 0.0, 0.0, 0.0])).endswith("(7–8) 0.0 %.")
    figure = acceptance_lines(accepted_at([0.5, 0.25]), Ground.LIGHT)
    assert list(figure.data[0].x) == [1, 2] and list(figure.data[0].y) == [50.0, 25.0]


def test_one_of_a_thing_is_said_as_one() -> None:
    one = pl.DataFrame([("judge/one", 1, 1, 1, 0, 1.0)], schema=accepted_at([]).columns, orient="row")
    assert acceptance_sentence(one) == "**100.0 %** of 1 candidate was accepted."
    assert left_words(0.4) == "less than a second left" and left_words(7.0) == "about 7 s left"


def test_the_run_that_hangs_most_on_one_retriever_is_named() -> None:
    changes = pl.DataFrame(
        {
            "member": ["bm25", "bm25", "minilm", "minilm"],
            "run": ["A*", "B", "A*", "B"],
            "new": [0.5, 0.6, 0.5, 0.6],
            "without": [0.5, 0.6, 0.4, 0.59],
            "change": [0.0, 0.0, -0.1, -0.01],
        }
    )
    assert without_sentence(changes) == "**A\\*** loses most: −10.0 points without MiniLM\\-L6."
    table = without_table(changes)
    assert table.row(0) == ("B", "60.0", "0.0", "−1.0")
    assert table.columns[2:] == ["without BM25", "without MiniLM-L6"]
