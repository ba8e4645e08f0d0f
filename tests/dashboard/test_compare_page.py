"""Compare: differences with intervals and tests, the scatter, lists of queries that lead to their pages."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import polars as pl
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.charts.palette import Ground
from dashboard.charts.score_scatter import gathered, score_scatter
from pipeline.jobs.first_start import demo_run
from pipeline.jobs.site import Site
from pipeline.jobs.submission import SubmissionMetadata, check_run, submit_run
from pipeline.scoring.query_changes import query_changes
from store.access import leaderboard, runs
from tests.dashboard.dashboard_app import open_page

Submit = Callable[..., str]


def said(app: AppTest) -> str:
    return "\n".join(str(e.value) for e in [*app.title, *app.subheader, *app.markdown, *app.caption, *app.info])


def sound(app: AppTest) -> AppTest:
    assert not app.exception, app.exception
    assert not app.error, [element.value for element in app.error]
    return app


@pytest.fixture
def two(site: Site, submitted: Submit) -> tuple[str, str]:
    """The sample run, and the same with every list turned round."""
    first = submitted("Upright")
    lines = [line.split() for line in demo_run("tools").read_text().splitlines() if line and line[0] != "#"]
    path = site.settings.home / "turned.trec"
    path.write_text("".join(f"{q} Q0 {t} 0 {-float(s)} x\n" for q, _, t, _, s, _ in lines))
    checked = check_run(site, path, "demo-tools")
    second = submit_run(site, checked, path, SubmissionMetadata(retriever="Turned"), publish=True)
    return first, second


def test_two_runs_with_scores(site: Site, app: AppTest, two: tuple[str, str]) -> None:
    first, second = two
    sound(open_page(app, "compare", cmp_benchmark="demo-tools@1", cmp_base=first, cmp_tuned=second))
    with site.database.reading() as session:
        frames = [site.artifacts.get_frame(runs.get(session, run).per_query_artifact or "") for run in two]
    changes = query_changes(frames[0], frames[1])
    losses = int((changes["outcome_new"] == "loss").sum())
    assert losses > 5
    assert f"**{losses}**" in said(app)
    figures = pl.from_pandas(app.dataframe[0].value)
    assert figures["Metric"].to_list() == ["NDCG@10", "Recall@10", "Comp@10"]
    assert figures["Gain, new"][0].startswith("−") and "[" in figures["Gain, new"][0]
    assert {"p, old", "p (Holm), old", "p (Holm), old − new"} <= set(figures.columns)
    assert "p (Holm): adjusted over the rows of a metric" in said(app)
    listed = pl.from_pandas(app.dataframe[-1].value)
    largest = changes.filter(pl.col("outcome_new") == "loss").sort("change_new")
    assert listed.height == min(losses, 50)
    assert listed["Id"][0] in largest.filter(pl.col("change_new") == largest["change_new"][0])["query_id"].to_list()
    link = urlsplit(listed["Open"][0])
    assert link.path == "/queries"
    assert parse_qs(link.query) == {
        "q_benchmark": ["demo-tools@1"], "q_query": [listed["Id"][0]], "q_run": [first, second],
    }  # fmt: skip


def test_the_other_view_counts_other_wins(site: Site, app: AppTest, two: tuple[str, str]) -> None:
    first, second = two
    sound(
        open_page(app, "compare", cmp_benchmark="demo-tools@1", cmp_base=second, cmp_tuned=first, cmp_view="one label")
    )
    with site.database.reading() as session:
        frames = [site.artifacts.get_frame(runs.get(session, run).per_query_artifact or "") for run in (second, first)]
    wins = int((query_changes(frames[0], frames[1])["outcome_old"] == "win").sum())
    assert f"Upright is better in **{wins}** queries" in said(app)
    assert "Against every valid answer" in said(app)


def test_printed_rows_have_differences_only(site: Site, app: AppTest) -> None:
    sound(open_page(app, "compare", cmp_benchmark="tooleq@published"))
    assert "no interval, no test and no list of queries" in said(app)
    assert "Query by query" not in said(app)
    assert not any(name.startswith("p") for name in app.dataframe[0].value.columns)


def test_levels_are_not_compared_silently(site: Site, app: AppTest) -> None:
    from store.access import benchmarks

    with site.database.reading() as session:
        board = leaderboard.leaderboard(session, benchmarks.get(session, "tooleq").id)
    ids = [board.filter(pl.col("level") == level)["run_id"][0] for level in ("query", "sub-query")]
    sound(open_page(app, "compare", cmp_benchmark="tooleq@published", cmp_base=ids[0], cmp_tuned=ids[1]))
    assert "sub-queries that know the needs" in app.warning[0].value


def test_the_same_run_twice_and_no_runs(site: Site, app: AppTest, two: tuple[str, str]) -> None:
    sound(open_page(app, "compare", cmp_benchmark="demo-tools@1", cmp_base=two[0], cmp_tuned=two[0]))
    assert "Choose two different runs" in said(app)
    other = AppTest.from_file(app._script_path, default_timeout=60)
    sound(open_page(other, "compare", cmp_benchmark="demo-skills@1"))
    assert "is published yet" in said(other)


def test_a_bare_site(bare_site: Site, app: AppTest) -> None:
    sound(open_page(app, "compare"))
    assert "No benchmark is stored yet" in said(app)


def test_the_scatter_gathers_every_query() -> None:
    base = pl.DataFrame(
        {"query_id": ["a", "b", "c", "d"], "domain": ["x"] * 4, "source": [""] * 4,
         "old_NDCG@10": [0.0, 1.0, 0.5, 0.5], "new_NDCG@10": [0.0, 1.0, 0.5, 0.501]}
    )  # fmt: skip
    tuned = base.with_columns(pl.Series("new_NDCG@10", [1.0, 1.0, 0.25, 0.25]))
    changes = query_changes(base, tuned)
    discs = gathered(changes, "new")
    assert discs.sort("x", "y").rows() == [(0.0, 100.0, "win", 1), (50.0, 24.0, "loss", 2), (100.0, 100.0, "tie", 1)]
    for ground in Ground:
        figure = score_scatter(
            changes, "new", base="<i>A</i>", tuned="B", family="", figure_name="NDCG@10", ground=ground
        )
        assert sum(len(trace.x) for trace in figure.data) == 3
        assert "&lt;i&gt;" in figure.layout.xaxis.title.text
        assert figure.layout.annotations[0].text.startswith("<b>1</b>")
