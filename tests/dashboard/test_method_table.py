"""The leaderboard's other layout: methods on every dataset, reported and measured, with tests."""

from __future__ import annotations

import polars as pl
from streamlit.testing.v1 import AppTest

from dashboard.components.method_table import flat_table, p_text, significant, table_data
from pipeline.jobs.fields import analyses as field_analyses
from pipeline.jobs.method_board import dataset_of, method_board
from pipeline.jobs.site import Site
from pipeline.scoring.holm import holm
from store.access import runs
from store.models import Visibility
from tests.dashboard.dashboard_app import open_page
from tests.dashboard.measured_runs import measured


def opened(app: AppTest, **query: str) -> AppTest:
    app.query_params.update({"lb_layout": "methods", **query})
    app.run()
    assert not app.exception, app.exception
    assert not app.error, [element.value for element in app.error]
    return app


def said(app: AppTest) -> str:
    return "\n".join(str(e.value) for e in [*app.markdown, *app.caption, *app.info]).replace("\\", "")


def cell(cells: pl.DataFrame, retriever: str, dataset: str, method: str, metric: str) -> dict[str, object]:
    found = cells.filter(
        retriever_key=retriever, dataset=dataset, method=method, metric=metric, view="old", source="reported"
    )
    return found.row(0, named=True)


def test_the_papers_claims_are_on_the_page(site: Site, app: AppTest) -> None:
    text = said(opened(app))
    assert "MFTR gains +11.42 % on APIGen (NDCG@10) and +28.61 % and +18.98 % on Mixed" in text
    assert "each of the 7 general models" in text
    assert "Recall@10 39.6 with OnlineRAG to 58.6, +47.98 %" in text
    assert app.query_params["lb_layout"] in ("methods", ["methods"])


def test_reported_cells_carry_the_papers_own_marks(site: Site) -> None:
    cells = method_board(site)
    assert set(cells.filter(pl.col("source") == "reported")["dataset"]) == {
        "toolbench", "apigen", "apibank", "gorilla", "toolink", "mixed",
    }  # fmt: skip
    won = cell(cells, "minilm-l6", "gorilla", "mftr", "Recall")
    assert won["best"] and significant(won) and won["value"] == 0.5860
    beaten = cell(cells, "gte-large-v1.5", "apibank", "mftr", "Recall")
    assert beaten["second"] and not significant(beaten)
    assert cell(cells, "gte-large-v1.5", "apibank", "easytool", "Recall")["best"]
    # The paper's Table 3 repeats two of these methods; its rows are not counted twice.
    assert cells.filter(source="reported", view="old").height == 9 * 5 * 6 * 2


def test_the_layout_of_table_2(site: Site) -> None:
    cells = method_board(site).filter(view="old")
    names = dict(cells.select("retriever_key", "retriever").unique("retriever_key", maintain_order=True).iter_rows())
    data = table_data(cells, ["apigen", "gorilla"], {"apigen": "APIGen", "gorilla": "Gorilla"}, names)
    assert [group["name"] for group in data["groups"]][:3] == ["BM25", "MiniLM-L6", "Contriever"]
    bm25 = {line["method"]: line["cells"] for line in data["groups"][0]["rows"]}
    assert list(bm25) == ["Full-Doc", "EasyTool", "PLUTo", "OnlineRAG", "MFTR"]
    assert [one["text"] for one in bm25["OnlineRAG"]] == ["—"] * 4, "not defined for BM25, which is not 0"
    assert bm25["MFTR"][0] == {"text": "84.30", "place": 1, "mark": "†", "test": ""}
    assert bm25["EasyTool"][0]["place"] == 2
    flat = flat_table(data)
    assert flat.columns[:4] == ["Model", "Method", "APIGen N@10", "APIGen R@10"]
    assert flat["APIGen N@10"][4] == "84.30†"


def test_measured_rows_stand_beside_with_their_tests(site: Site, app: AppTest) -> None:
    full_doc, mftr = measured(site), measured(site, "mftr", method_preset="paper")
    before = method_board(site).filter(source="measured")
    assert set(before["dataset"]) == {"demo-tools"} and before["p"].null_count() == before.height
    tests = field_analyses.analysis(site, mftr, "tests")
    assert tests.height == 4 and set(tests["baseline_run"]) == {full_doc}
    cells = method_board(site).filter(source="measured", method="mftr")
    with site.database.reading() as session:
        own, base = (runs.summaries(session, run).filter(average="micro", k=10) for run in (mftr, full_doc))
    for row in cells.iter_rows(named=True):
        of = (pl.col("metric") == row["metric"]) & (pl.col("view") == row["view"])
        assert row["value"] == own.filter(of)["value"].item()
        assert abs(row["rival_value"] - base.filter(of)["value"].item()) < 1e-12
        if row["value"] < row["rival_value"]:
            assert not significant(row), "a loss is no improvement, however sure it is"
    for view in ("old", "new"):
        of_view = cells.filter(view=view)
        assert of_view["p_holm"].to_list() == holm(of_view["p"].to_list())
    text = said(opened(app, lb_mt_data="demo-tools"))
    assert "p after Holm’s adjustment" in text
    assert "counts every valid answer" not in said(
        opened(AppTest.from_file(app._script_path), lb_mt_labels="every valid answer")
    )


def test_a_hidden_run_is_nowhere(site: Site, app: AppTest) -> None:
    measured(site)
    hidden = measured(site, "mftr", method_preset="paper")
    field_analyses.analysis(site, hidden, "tests")
    with site.database.session() as session:
        runs.set_visibility(session, hidden, Visibility.PRIVATE)
    assert hidden not in set(method_board(site)["run_id"])
    assert hidden not in field_analyses.pending(site)
    lab = open_page(app, "mftr_lab", lab_benchmark="demo-tools@1", lab_run=hidden)
    assert not lab.exception
    assert "No MFTR run of" in said(lab) and not lab.table


def test_without_measured_runs_no_figure_counts_every_answer(site: Site, app: AppTest) -> None:
    assert "No figure here counts every valid answer" in said(opened(app, lb_mt_labels="every valid answer"))


def test_words() -> None:
    assert (p_text(0.0312), p_text(0.00004), p_text(1.0)) == ("p .031", "p < .001", "p 1.000")
    assert dataset_of("mftr-gorilla") == dataset_of("gorilla-huggingface") == "gorilla"
    assert dataset_of("apibank") == dataset_of("mftr-apibank")
