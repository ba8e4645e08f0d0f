"""Every other page, with data and without."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.components import failures
from dashboard.current_site import use_site
from pipeline.jobs.first_start import demo_run
from pipeline.jobs.site import Site
from store.access import benchmarks, run_figures, runs
from store.models import Provenance, Trained
from tests.dashboard.dashboard_app import open_page

PAGES = ("old_vs_new", "submit", "my_runs", "benchmarks", "about", "run")


def said(app: AppTest) -> str:
    """All text of the page."""
    parts = [*app.title, *app.subheader, *app.markdown, *app.caption, *app.text, *app.info, *app.success, *app.error]
    return "\n".join(str(element.value) for element in parts)


def sound(app: AppTest) -> AppTest:
    assert not app.exception, app.exception
    assert not app.error, [element.value for element in app.error]
    return app


def fresh(app: AppTest) -> AppTest:
    """Another reader of the same site."""
    return AppTest.from_file(app._script_path, default_timeout=60)


def press(app: AppTest, label: str) -> AppTest:
    next(button for button in app.button if button.label == label).click()
    return app.run()


def stored(site: Site) -> int:
    with site.database.reading() as session:
        return runs.list_runs(session, person="local").height


def upload(app: AppTest, content: bytes | None = None) -> AppTest:
    open_page(app, "submit", submit_benchmark="demo-tools@1")
    given = demo_run("tools").read_bytes() if content is None else content
    app.file_uploader[0].set_value(("mine.trec", given, "text/plain")).run()
    return sound(app)


@pytest.mark.parametrize("name", PAGES)
def test_pages_open_after_the_first_start(site: Site, app: AppTest, name: str) -> None:
    sound(open_page(app, name))
    assert app.title[0].value


@pytest.mark.parametrize("name", PAGES)
def test_pages_open_on_a_bare_site(bare_site: Site, app: AppTest, name: str) -> None:
    sound(open_page(app, name))
    assert app.title[0].value


def test_the_paired_table_prints_the_papers_cells(site: Site, app: AppTest) -> None:
    sound(open_page(app, "old_vs_new", ovn_benchmark="tooleq@published"))
    frame = app.dataframe[0].value
    qwen = frame[frame.iloc[:, 0] == "Qwen3-Embedding-0.6B"].iloc[0].tolist()
    assert "42.5 / 51.7" in qwen
    assert "37.3 / 45.2" in qwen
    assert "48.4 / 53.8" in qwen
    assert frame[frame.iloc[:, 0] == "BM25"].iloc[0].tolist()[8] == "+8.5"


def test_the_paired_table_of_skills_has_no_domains(site: Site, app: AppTest) -> None:
    sound(open_page(app, "old_vs_new", ovn_benchmark="skilleq@published"))
    frame = app.dataframe[0].value
    assert frame.columns.tolist() == ["Retriever", "NDCG@10", "Recall@10", "Comp@10", "Δ"]
    row = frame[frame["Retriever"] == "SkillRet-8B"].iloc[0].tolist()
    assert row[1:] == ["74.6 / 82.9", "83.2 / 89.5", "72.7 / 81.1", "+7.7"]


def test_one_label_figures_are_not_compared(site: Site, app: AppTest) -> None:
    sound(open_page(app, "old_vs_new", ovn_benchmark="mftr-apibank@published"))
    assert "No new figures are known" in said(app)


def test_a_refused_file_says_why_and_stores_nothing(site: Site, app: AppTest) -> None:
    upload(app, b"q1 Q0 tool 1 abc t\n")
    text = said(app)
    assert "refused" in " ".join(str(element.value) for element in app.markdown)
    assert '"abc" is not a number' in text
    assert "Publish" not in [button.label for button in app.button]
    assert stored(site) == 0


def test_upload_report_publish(site: Site, app: AppTest) -> None:
    upload(app)
    text = said(app)
    assert "accepted" in text
    assert "One label a query hides" in text
    assert stored(site) == 0, "looking at the scores must store nothing"
    sound(press(app, "Publish"))
    assert "is on the leaderboard of" in said(app)
    assert app.code[0].value.startswith("https://board.example/run?run=")
    assert stored(site) == 1


def test_a_run_needs_a_name(site: Site, app: AppTest) -> None:
    rows = [line.rsplit(None, 1)[0] for line in demo_run("tools").read_text().splitlines() if line[0] != "#"]
    named_by_nothing = "".join(",".join([r[0], r[2], r[4]]) + "\n" for r in (row.split() for row in rows))
    upload(app, named_by_nothing.encode())
    press(app, "Publish")
    assert "Give the retriever a name" in app.warning[0].value
    assert stored(site) == 0


def test_keep_private_gives_a_link_with_a_token(site: Site, app: AppTest) -> None:
    sound(press(upload(app), "Keep private"))
    run_id, token = app.code[0].value.split("run=")[1].split("&token=")
    linked = sound(open_page(fresh(app), "run", run=run_id, token=token))
    assert "private" in linked.info[0].value
    assert linked.dataframe[0].value.shape[0] > 0
    other = open_page(fresh(app), "run", run=run_id, token="wrong")
    assert "that you may see" in said(other)
    assert not list(other.dataframe)


def test_a_file_of_another_benchmark_is_one_click_away_from_it(site: Site, app: AppTest) -> None:
    upload(app, demo_run("skills").read_bytes())
    assert "choose that one" in said(app)
    sound(app.button(key="submit_other_target").click().run())
    assert app.query_params["submit_benchmark"] in ("demo-skills@1", ["demo-skills@1"])
    assert "One label a query hides" in said(app)


def test_the_sample_run_is_one_click(site: Site, app: AppTest) -> None:
    open_page(app, "submit", submit_benchmark="demo-tools@1")
    app.button(key="submit_try").click().run()
    sound(app)
    assert "NDCG@10" in said(app)


def test_the_order_is_asked_for_when_the_file_leaves_it_open(site: Site, app: AppTest) -> None:
    rows = [line.split() for line in demo_run("tools").read_text().splitlines() if line[0] != "#"]
    distances = "".join(f"{q} Q0 {tool} {rank} {rank}.5 t\n" for q, _, tool, rank, *_ in rows)
    upload(app, distances.encode())
    choice = next(box for box in app.selectbox if box.label == "How the lists are ordered")
    choice.set_value("distance").run()
    sound(app)
    assert "NDCG@10" in said(app)


def test_my_runs_show_what_ranks_them(site: Site, app: AppTest, submitted: Callable[..., str]) -> None:
    shown = submitted("Shown")
    submitted("Private", publish=False)
    sound(open_page(app, "my_runs"))
    row = app.dataframe[0].value.iloc[0]
    with site.database.reading() as session:
        figures = run_figures.headline_figures(session, [shown]).row(0, named=True)
    assert row[["NDCG old", "NDCG new", "K"]].tolist() == [f"{100 * figures[v]:.1f}" for v in ("old", "new")] + ["10"]
    assert "—" not in app.dataframe[0].value["NDCG new"].tolist()


def test_the_names_of_the_paired_table_can_be_read_whole(site: Site, app: AppTest) -> None:
    sound(open_page(app, "old_vs_new", ovn_benchmark="mftr-apibank@published"))
    frame = app.dataframe[0]
    longest = max(map(len, frame.value.iloc[:, 0]))
    width = json.loads(frame.proto.columns)["_pos:1"]["width"]
    assert longest > 25
    assert width >= 7 * longest


@pytest.mark.parametrize(("limit", "rounds"), [(100, False), (476, False), (477, True), (512, True), (1024, True)])
def test_the_uploaders_own_line_is_corrected_where_it_rounds(
    site: Site, app: AppTest, limit: int, rounds: bool
) -> None:
    use_site(replace(site, settings=site.settings.model_copy(update={"limit_upload_mb": limit})))
    sound(open_page(app, "submit", submit_benchmark="demo-tools@1"))
    assert (f"What counts is {limit} MB" in said(app)) is rounds
    assert f"up to {limit} MB" in app.file_uploader[0].label


def test_my_runs_publish_edit_withdraw(site: Site, app: AppTest, submitted: Callable[..., str]) -> None:
    run_id = submitted("Mine", publish=False, contact="someone@example.org")
    sound(open_page(app, "my_runs"))
    assert app.dataframe[0].value["State"].tolist() == ["private"]
    app.button(key=f"mine_publish_{run_id}").click().run()
    assert sound(app).dataframe[0].value["State"].tolist() == ["published"]
    app.text_input(key=f"mine_{run_id}_licence").set_value("CC-BY-4.0")
    app.segmented_control(key=f"mine_{run_id}_trained").set_value("no")
    sound(press(app, "Save"))
    with site.database.reading() as session:
        changed = runs.get(session, run_id)
    assert (changed.licence, changed.trained_on_benchmark) == ("CC-BY-4.0", Trained.NO.value)
    app.button(key=f"mine_withdraw_{run_id}").click().run()
    assert sound(app).dataframe[0].value["State"].tolist() == ["withdrawn"]
    assert "opens for nobody until it is published again" in said(app)
    assert len(app.dataframe) > 1, "a withdrawn run has no page: its figures are shown here"
    closed = open_page(fresh(app), "run", run=run_id)
    assert "A withdrawn run has no page" in said(closed)


def test_differences_are_said_to_be_of_unrounded_figures(
    site: Site, app: AppTest, submitted: Callable[..., str]
) -> None:
    note = "Differences are of unrounded figures."
    assert said(upload(app)).count(note) == 1
    sound(open_page(app, "run", run=submitted("Mine")))
    assert said(app).count(note) == 1
    # Printed figures are subtracted as they are printed.
    with site.database.reading() as session:
        tooleq = benchmarks.get(session, "tooleq").id
        printed = runs.list_runs(session, benchmark_version_id=tooleq, provenances=[Provenance.REPORTED])["run_id"][0]
    sound(open_page(app, "run", run=printed))
    assert ", lift +" in said(app) and note not in said(app)


def test_contacts_are_never_shown_to_others(site: Site, app: AppTest, submitted: Callable[..., str]) -> None:
    run_id = submitted("Mine", contact="someone@example.org")
    sound(open_page(app, "run", run=run_id))
    shown = said(app) + "".join(element.value.to_csv() for element in app.dataframe)
    assert "Mine" in shown
    assert "someone" not in shown


def test_a_card_says_what_a_benchmark_holds(site: Site, app: AppTest) -> None:
    sound(open_page(app, "benchmarks", bm_benchmark="demo-tools@1"))
    assert "Valid combinations" in app.dataframe[1].value["Statistic"].tolist()
    assert any("JSON Lines" in button.label for button in app.get("download_button"))


def test_a_card_without_content_says_so(site: Site, app: AppTest) -> None:
    sound(open_page(app, "benchmarks", bm_benchmark="tooleq@published"))
    assert "no queries, tools or labels" in said(app)
    assert "@misc" in app.code[0].value


def test_the_worked_example_is_computed(site: Site, app: AppTest) -> None:
    sound(open_page(app, "about"))
    scores = app.dataframe[1].value.set_index("Metric")
    assert scores.loc["Comp@3"].tolist() == ["0.0", "100.0", "+100.0"]
    assert scores.loc["NDCG@5", "Old"] == "54.4"


def test_an_unforeseen_error_is_a_number_not_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("ERROR"):
        message = failures.message_of(RuntimeError("secret path /home/x"))
    assert "secret" not in message
    assert "secret path" in caplog.text
    assert message.rsplit(" ", 1)[-1].rstrip(".") in caplog.text
