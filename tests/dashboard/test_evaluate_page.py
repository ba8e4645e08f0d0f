"""Evaluate a model and Jobs: the form, jobs that wait, end, fail and are cancelled; no worker but real jobs."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.current_site import use_site
from pipeline.jobs import durable, job_client
from pipeline.jobs.evaluation_request import EvaluationRequest
from pipeline.jobs.job_client import JobState
from pipeline.jobs.site import Site, open_site
from pipeline.llm.providers import KEY_VARIABLES
from store.access import workers
from tests.dashboard.dashboard_app import open_page
from tests.dashboard.stored_weights import imported_weights

BM25 = EvaluationRequest("demo-tools@1", "bm25s")


@pytest.fixture
def jobs_site(site: Site) -> Generator[Site]:
    """The prepared site, with the way into its jobs closed at the end."""
    yield site
    durable.close_job_client(site)


def said(app: AppTest) -> str:
    parts = [*app.title, *app.subheader, *app.markdown, *app.caption, *app.info, *app.success, *app.warning, *app.error]
    return "\n".join(str(element.value) for element in parts).replace("\\", "")


def sound(app: AppTest) -> AppTest:
    assert not app.exception, app.exception
    return app


def fresh(app: AppTest) -> AppTest:
    """Another reader of the same site."""
    return AppTest.from_file(app._script_path, default_timeout=60)


def form(app: AppTest, **query: str) -> AppTest:
    return sound(open_page(app, "evaluate", ev_benchmark="demo-tools@1", **query))


def labels(app: AppTest) -> list[str]:
    return [button.label for button in app.button]


def work(site: Site, job_id: str) -> None:
    """Be the worker until a job has ended, in this process."""
    from dbos import DBOS

    from pipeline.jobs import evaluation, worker_site
    from pipeline.jobs.queues import register_queues

    register_queues(job_client.job_client(site))
    del evaluation  # imported for its workflow
    worker_site.use_site(site)
    try:
        DBOS(config=durable.worker_config(site, durable.EMBEDDED))
        DBOS.listen_queues(["cpu"])
        DBOS.launch()
        with suppress(Exception):
            DBOS.retrieve_workflow(job_id).get_result()
    finally:
        DBOS.destroy()


def test_the_form_estimates_and_says_that_nobody_works(jobs_site: Site, app: AppTest) -> None:
    form(app)
    text = said(app)
    assert "246 documents and 111 queries, of which 357 texts are to encode" in text
    assert "No worker is running" in text and "equirank serve" in text
    assert app.query_params["ev_model"] == "minilm-l6"
    assert not durable.has_jobs(jobs_site), "looking asks for nothing"


def test_models_say_what_they_need_and_what_is_not_allowed_cannot_start(jobs_site: Site, app: AppTest) -> None:
    form(app)
    options = app.selectbox(key="ev_model").options
    assert "BM25 · works here" in options and "MiniLM-L6 · 22.7M · works here" in options
    refused = next(option for option in options if option.startswith("NV-Embed"))
    assert "needs remote code, the hub and a GPU" in refused
    app.selectbox(key="ev_model").set_value("nv-embed-v1").run()
    assert "Python code" in said(app) and "Start" not in labels(sound(app))
    assert app.query_params["ev_model"] == "nv-embed-v1"


def test_a_link_restores_the_form(jobs_site: Site, app: AppTest) -> None:
    form(app, ev_model="bm25s", ev_method="sub-query", ev_preset="paper")
    assert app.selectbox(key="ev_model").value == "bm25s"
    assert app.selectbox(key="ev_method").value == "sub-query"
    assert not {"Adapter", "OnlineRAG"} & set(app.selectbox(key="ev_method").options), "BM25 has no embeddings"
    assert "nothing to encode" in said(app)


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No language model can be asked."""
    for names in KEY_VARIABLES.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)


def test_mftr_without_a_key_starts_by_rules(no_keys: None, jobs_site: Site, app: AppTest) -> None:
    form(app, ev_model="bm25s", ev_method="mftr", ev_way="v2")
    assert app.selectbox(key="ev_documents").value == "rule-based"
    assert app.selectbox(key="ev_queries").value == "original"
    assert "ev_llm" not in [box.key for box in app.text_input] and "language model is asked" not in said(app)
    app.button(key="ev_start").click().run()
    request = job_client.job(jobs_site, sound(app).query_params["job"]).request
    assert (request.method, request.method_preset, request.standardizer) == ("mftr", "v2", "rule-based")
    assert (request.rewriter, request.llm, request.budget) == ("original", "", None)


def test_imported_weights_are_offered_with_the_texts_they_belong_to(
    no_keys: None, jobs_site: Site, app: AppTest
) -> None:
    stored = imported_weights(jobs_site)
    form(app, ev_model="bm25s", ev_method="mftr")
    assert "ev_weights" not in [box.key for box in app.selectbox], "they mean nothing to other texts"
    form(
        app,
        ev_model="bm25s",
        ev_method="mftr",
        ev_documents=stored.tools,
        ev_queries=stored.queries,
        ev_weights=stored.weights,
    )
    box = app.selectbox(key="ev_weights")
    assert box.value == stored.weights and len(box.options) == 2 and "2 folds" in box.options[1]
    app.button(key="ev_start").click().run()
    request = job_client.job(jobs_site, sound(app).query_params["job"]).request
    assert (request.standardizer, request.rewriter, request.weights) == (stored.tools, stored.queries, stored.weights)


def test_what_asks_a_language_model_says_so_and_waits_for_a_key(no_keys: None, jobs_site: Site, app: AppTest) -> None:
    form(app, ev_model="bm25s", ev_method="easytool")
    options = app.selectbox(key="ev_method").options
    assert "EasyTool · needs a language model, no key here" in options and "MFTR" in options
    text = said(app)
    assert "openai/gpt-4o-mini needs a key: set OPENAI_API_KEY" in text and "A batch file needs no key" in text
    assert app.button(key="ev_start").disabled
    app.toggle(key="ev_batch").set_value(True).run()
    assert not sound(app).button(key="ev_start").disabled
    app.button(key="ev_start").click().run()
    assert job_client.job(jobs_site, sound(app).query_params["job"]).request.batch


def test_with_a_server_of_ones_own_the_budget_goes_along(no_keys: None, site: Site, app: AppTest) -> None:
    settings = site.settings.model_copy(
        update={"llm_base_url": "http://127.0.0.1:9/v1", "llm_prices": "openai/tester=1/1", "llm_budget_dollars": 3.0}
    )
    own = open_site(settings)
    use_site(own)
    form(app, ev_model="bm25s", ev_method="mftr", ev_documents="llm", ev_queries="llm", ev_llm="openai/tester")
    assert app.number_input(key="ev_budget").value == 3.0, "never above what the operator allows"
    assert "a language model is asked about" in said(app) and "at most $" in said(app)
    app.button(key="ev_start").click().run()
    request = job_client.job(own, sound(app).query_params["job"]).request
    assert (request.standardizer, request.rewriter, request.llm) == ("llm", "llm", "openai/tester")
    assert request.budget == 3.0 and not request.batch
    durable.close_job_client(own)


def test_variants_that_compare_rewritten_queries_have_no_original_ones(
    no_keys: None, jobs_site: Site, app: AppTest
) -> None:
    form(app, ev_model="bm25s", ev_method="rewrite-only")
    assert app.selectbox(key="ev_queries").options == ["by a language model (no key here)"]
    assert "Give queries their instruction" not in [toggle.label for toggle in app.toggle]
    assert app.button(key="ev_start").disabled


def test_an_own_model_is_checked_before_it_can_start(jobs_site: Site, app: AppTest) -> None:
    form(app, ev_from="Hub")
    assert "Name the model" in said(app)
    app.text_input(key="ev_hub").set_value("owner/name").run()
    assert "commit" in said(sound(app)) and "Start" not in labels(app)
    app.text_input(key="ev_hub").set_value("owner/name@" + "0" * 40).run()
    assert "Start" in labels(sound(app))
    other = form(fresh(app), ev_from="Folder", ev_folder="/no/such/folder")
    assert "There is no model in the folder" in said(other)


@pytest.mark.parametrize("allowed", [True, False])
def test_folders_are_offered_where_the_operator_allows_them(site: Site, app: AppTest, allowed: bool) -> None:
    use_site(open_site(site.settings.model_copy(update={"allow_model_folders": allowed})))
    form(app)
    assert ("Folder" in app.segmented_control(key="ev_from").options) is allowed


def test_start_cancel_and_retry(jobs_site: Site, app: AppTest) -> None:
    form(app, ev_model="bm25s")
    app.button(key="ev_start").click().run()
    job_id = app.query_params["job"]
    assert list(app.query_params) == ["job"]
    waiting = job_client.job(jobs_site, job_id)
    assert waiting.state is JobState.WAITING and waiting.request == replace(BM25, benchmark="demo-tools@1")
    assert "BM25 on demo-tools@1" in said(app) and "No worker is running" in said(app)
    app.button(key=f"job_cancel_{job_id}").click().run()
    assert job_client.job(jobs_site, job_id).state is JobState.CANCELLED
    sound(open_page(app, "evaluate", job=job_id))
    assert "was cancelled" in said(app)
    app.button(key=f"job_retry_{job_id}").click().run()
    assert job_client.job(jobs_site, job_id).state is JobState.WAITING


def test_a_worker_that_fell_silent_is_named(jobs_site: Site, app: AppTest) -> None:
    job_id = job_client.submit(jobs_site, BM25)
    with jobs_site.database.session() as session:
        workers.beat(session, "embedded", host="here", pid=1, queues=("cpu", "llm"), device="cpu")
    open_page(app, "evaluate", job=job_id)
    assert "A worker is there" in said(app)
    use_site(open_site(jobs_site.settings.model_copy(update={"worker_lost_seconds": 0.0})))
    open_page(app, "evaluate", job=job_id)
    assert "has been silent" in said(sound(app))


def test_a_finished_job_shows_its_table_and_publishes(jobs_site: Site, app: AppTest) -> None:
    job_id = job_client.submit(jobs_site, BM25)
    work(jobs_site, job_id)
    run_id = job_client.job(jobs_site, job_id).run_id
    sound(open_page(app, "evaluate", job=job_id))
    text = said(app)
    assert "NDCG@10" in text and "Measured in" in text and "Cost: 1" in text
    assert app.dataframe[0].value.iloc[0, 0] == "all (macro)"
    assert "stored as run" in app.code[-1].value, "the log"
    assert "Private" in text and "token=" in app.code[0].value
    app.button(key=f"job_publish_{run_id}").click().run()
    assert "Publish" not in labels(sound(app)) and "Private" not in said(app)
    board = sound(fresh(app))
    board.query_params["lb_benchmark"] = "demo-tools@1"
    board.query_params["lb_columns"] = ["new", "s / 1k docs", "Index MB"]
    shown = sound(board.run()).dataframe[0].value
    assert shown["retriever"].tolist() == ["BM25"]
    assert shown["encoding"].iloc[0] > 0 and 0 < shown["index"].iloc[0] < 10
    # Asked for again, there is nothing to do.
    assert "measured before" in said(form(app, ev_model="bm25s"))


def test_a_failed_job_says_why_and_can_be_tried_again(jobs_site: Site, app: AppTest, tmp_path: Path) -> None:
    folder = tmp_path / "gone <b>soon"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    job_id = job_client.submit(jobs_site, EvaluationRequest("demo-tools@1", str(folder)))
    (folder / "config.json").unlink()
    work(jobs_site, job_id)
    sound(open_page(app, "evaluate", job=job_id))
    assert "It failed after" in app.error[0].value and "There is no model in the folder" in said(app)
    sound(open_page(app, "jobs"))
    assert app.dataframe[0].value["State"].tolist() == ["failed"]
    assert "There is no model" in said(app)
    (folder / "config.json").write_text("{}")
    app.button(key=f"jobs_retry_{job_id}").click().run()
    assert job_client.job(jobs_site, job_id).state is JobState.WAITING


def test_a_job_that_waits_for_answers_hands_out_its_batch_and_takes_them(
    no_keys: None, jobs_site: Site, app: AppTest
) -> None:
    request = EvaluationRequest("demo-tools@1", "bm25s", method="easytool", llm="openai/gpt-4o-mini", batch=True)
    job_id = job_client.submit(jobs_site, request)
    digest = jobs_site.artifacts.put_bytes(b"{}\n")
    _pretend_ended(jobs_site, job_id, {"pending": 2, "batch": [digest]})
    sound(open_page(app, "jobs"))
    assert app.dataframe[0].value[["State", "How it goes"]].values.tolist() == [
        ["waiting for answers", "2 in its batch file: open it to go on"]
    ]
    sound(open_page(app, "evaluate", job=job_id))
    text = said(app)
    assert "2 questions wait in a file" in text and "cancelled" not in text
    assert [button.label for button in app.get("download_button")] == ["Batch file"]
    app.file_uploader[0].set_value(("answers.jsonl", b"not JSON", "application/x-ndjson")).run()
    assert job_client.job(jobs_site, job_id).state is JobState.WAITING
    (stored,) = job_client.answer_files(jobs_site, job_id)
    assert jobs_site.artifacts.get_bytes(stored) == b"not JSON", "the job says line by line what it cannot use"


def _pretend_ended(site: Site, job_id: str, output: dict[str, object]) -> None:
    """What a worker's DBOS writes when a job has ended."""
    from sqlalchemy import create_engine, text

    engine = create_engine(durable.job_database(site))
    ended = text("UPDATE workflow_status SET status = 'SUCCESS', output = :output WHERE workflow_uuid = :id")
    with engine.begin() as connection:
        connection.execute(ended, {"output": json.dumps(output), "id": job_id})
    engine.dispose()


def test_no_such_job(jobs_site: Site, app: AppTest) -> None:
    sound(open_page(app, "evaluate", job="evaluate-nothing"))
    assert "No such job" in said(app)


def test_the_list_of_jobs(jobs_site: Site, app: AppTest) -> None:
    sound(open_page(app, "jobs"))
    assert "No job yet" in said(app)
    first = job_client.submit(jobs_site, BM25)
    job_client.submit(jobs_site, replace(BM25, method="sub-query", person="", publish=True))
    sound(open_page(app, "jobs"))
    assert app.dataframe[0].value[["Model", "Method", "State"]].values.tolist() == [["BM25", "Full-Doc", "waiting"]]
    assert "No worker is running" in said(app)
    app.button(key=f"jobs_cancel_{first}").click().run()
    assert job_client.job(jobs_site, first).state is JobState.CANCELLED
    app = sound(open_page(fresh(app), "jobs", jobs_whose="all jobs"))
    assert app.dataframe[0].value["State"].tolist() == ["waiting", "cancelled"]


def _values(app: AppTest) -> dict[str | None, object]:
    return {box.key: box.value for box in [*app.selectbox, *app.number_input, *app.button_group, *app.toggle]}


@pytest.mark.parametrize("between", ["run", "jobs"])
def test_a_form_that_was_left_is_whole_again(no_keys: None, jobs_site: Site, app: AppTest, between: str) -> None:
    """What the address does not name starts at its default, whatever kind of control it is."""
    form(app, ev_model="bm25s", ev_method="mftr")
    app.button_group(key="ev_way").set_value("v2").run()
    app.button_group(key="ev_preset").set_value("paper").run()
    app.number_input(key="ev_depth").set_value(50).run()
    assert app.button_group(key="ev_preset").value == "paper" and app.number_input(key="ev_depth").value == 50
    sound(open_page(app, between))
    sound(open_page(app, "evaluate"))
    assert _values(app) == _values(sound(open_page(fresh(app), "evaluate")))
    # A link names what it sets, and nothing that was set before stays beside it.
    sound(open_page(app, "evaluate", ev_preset="paper"))
    app.number_input(key="ev_depth").set_value(50).run()
    sound(open_page(app, between))
    form(app, ev_model="bm25s", ev_method="mftr", ev_way="v2")
    assert app.button_group(key="ev_way").value == "v2"
    assert app.button_group(key="ev_preset").value == "card" and app.number_input(key="ev_depth").value == 100
