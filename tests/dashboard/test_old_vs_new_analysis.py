"""Old vs new, second half: places, chance, redundancy, headroom."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
from streamlit.testing.v1 import AppTest

from dashboard.charts.dumbbell_plot import Words, dumbbell_plot
from dashboard.charts.palette import Ground
from dashboard.charts.rank_slopes import rank_slope_plot
from dashboard.charts.redundancy_lines import LiftLine, group_words, redundancy_lines
from pipeline.jobs import statistics
from pipeline.jobs.site import Site
from pipeline.scoring.rank_changes import rank_slopes
from store.access import benchmarks
from tests.dashboard.dashboard_app import open_page

Submit = Callable[..., str]


def said(app: AppTest) -> str:
    return "\n".join(str(e.value) for e in [*app.subheader, *app.markdown, *app.caption])


def sound(app: AppTest) -> AppTest:
    assert not app.exception, app.exception
    assert not app.error, [element.value for element in app.error]
    return app


def tables(app: AppTest) -> list[pl.DataFrame]:
    return [pl.from_pandas(e.value) for e in app.dataframe if e.value.columns.nlevels == 1]


def test_the_papers_headroom(site: Site, app: AppTest) -> None:
    sound(open_page(app, "old_vs_new", ovn_benchmark="tooleq@published", ovn_over="macro average"))
    table = next(table for table in tables(app) if "headroom, new" in table.columns)
    assert table.filter(pl.col("Retriever") == "Qwen3-Embedding-0.6B")["headroom, new"][0] == "+12.63"
    text = said(app)
    assert "change place in NDCG@10 (macro average)" in text
    assert "figures from a paper have none" in text


def test_scored_runs_show_chance_and_redundancy(site: Site, app: AppTest, submitted: Submit) -> None:
    submitted("First")
    submitted("Second")
    sound(open_page(app, "old_vs_new", ovn_benchmark="demo-tools@1"))
    assert "new runs get it in a moment" in said(app)
    statistics.compute(site, statistics.pending(site), lambda line: None)
    sound(app.run())
    control = next(table for table in tables(app) if "over random" in table.columns)
    assert control["Retriever"].to_list() == ["First", "Second"]
    groups = next(table for table in tables(app) if "equivalents" in table.columns)
    assert groups.columns == ["equivalents", "queries", "First", "Second"]
    with site.database.reading() as session:
        queries = benchmarks.get(session, "demo-tools").queries
    assert sum(int(n) for n in groups["queries"]) == queries


def test_one_run_has_no_order(app: AppTest, submitted: Submit) -> None:
    submitted("First")
    sound(open_page(app, "old_vs_new", ovn_benchmark="demo-tools@1"))
    assert "It takes two runs with old and new figures" in said(app) and "Kendall" not in said(app)
    assert not any(column.startswith("Kendall") for table in tables(app) for column in table.columns)
    submitted("Second")
    sound(open_page(app, "old_vs_new", ovn_benchmark="demo-tools@1", ovn_over="by domain"))
    assert any(column.startswith("Kendall") for table in tables(app) for column in table.columns)
    domain = app.selectbox(key="ovn_domain").value
    assert f"in NDCG@10 ({domain})" in said(app).replace("\\", ""), "the sentence names the domain that is drawn"


def test_every_row_has_a_line_of_its_own_on_both_sides() -> None:
    board = pl.DataFrame(
        {
            "run_id": ["a", "b", "c"],
            "name": ["<b>A</b>", "B", "C"],
            "family": ["x", None, "y"],
            "old": [0.5, 0.5, 0.4],
            "new": [0.6, 0.7, 0.65],
        }
    )
    slopes = rank_slopes(board).runs
    for narrow in (False, True):
        figure = rank_slope_plot(slopes, Ground.DARK, narrow=narrow)
        ends = [trace.y for trace in figure.data]
        assert sorted(end[0] for end in ends) == sorted(end[1] for end in ends) == [-2, -1, 0]
        texts = [annotation.text for annotation in figure.layout.annotations]
        assert "&lt;b&gt;A&lt;/b&gt;  1" in texts and "1  B" in texts
        assert any(text.endswith("▼ 2") for text in texts)


def test_groups_and_names_of_redundancy() -> None:
    assert [group_words(*ends) for ends in ((None, 0.0), (0.0, 1.0), (1.0, 2.0), (8.0, None))] == [
        "none", "over 0 to 1", "over 1 to 2", "over 8",
    ]  # fmt: skip
    groups = pl.DataFrame({"above": [None, 0.0], "up_to": [0.0, 1.0], "lift": [0.0, 0.12], "n": [3, 4]})
    figure = redundancy_lines([LiftLine("<i>R</i>", "qwen3", groups)], "NDCG@10", Ground.LIGHT)
    assert list(figure.data[0].y) == [0.0, 12.0]
    assert figure.layout.annotations[0].text == "&lt;i&gt;R&lt;/i&gt;"
    assert "n = 4" in figure.layout.xaxis.ticktext[1]


def test_dumbbells_of_other_words_stay_inside_the_axis() -> None:
    rows = pl.DataFrame({"name": ["A"], "family": [""], "old": [0.2], "new": [-0.01]})
    figure = dumbbell_plot(rows, "lift", Ground.LIGHT, Words("random tools", "the labels", "over random"))
    low, high = figure.layout.xaxis.range
    assert low < -1 and high > 20
    assert "random tools" in figure.layout.xaxis.title.text
    assert figure.data[2].x == (20.0,), "the words stand right of both dots"
