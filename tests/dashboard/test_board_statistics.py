"""Statistics on the leaderboard and in a run's details: there once the job has run, never before."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
from streamlit.testing.v1 import AppTest

from dashboard.components.board_statistics import statistics_texts
from dashboard.components.run_statistics import READINGS
from pipeline.jobs import statistics
from pipeline.jobs.boards import with_tie_groups
from pipeline.jobs.site import Site
from pipeline.jobs.statistics import BOARD_TIE_GROUPS
from store.access import benchmarks, leaderboard
from tests.dashboard.dashboard_app import open_page

Submit = Callable[..., str]
COLUMNS = ["rank", "tie_group", "new", "new_interval", "lift_interval", "control", "judged"]


def said(app: AppTest) -> str:
    return "\n".join(str(e.value) for e in [*app.markdown, *app.caption])


def sound(app: AppTest) -> AppTest:
    assert not app.exception, app.exception
    assert not app.error, [element.value for element in app.error]
    return app


def test_the_board_shows_intervals_groups_control_and_judged(site: Site, app: AppTest, submitted: Submit) -> None:
    run_id = submitted("First")
    submitted("Second")
    open_page(app, "leaderboard", lb_benchmark="demo-tools@1")
    sound(app.multiselect(key="lb_columns").set_value(COLUMNS).run())
    assert "tie_group" not in app.dataframe[0].value.columns
    statistics.compute(site, statistics.pending(site), lambda line: None)
    sound(app.run())
    frame = app.dataframe[0].value
    assert set(COLUMNS) <= set(frame.columns)
    assert frame["tie_group"].tolist() == ["1", "1"], "the same ranking twice cannot be told apart"
    with site.database.reading() as session:
        row = leaderboard.leaderboard(session, benchmarks.get(session, "demo-tools").id).filter(
            pl.col("run_id") == run_id
        )
    low, high = 100 * row["new_low"][0], 100 * row["new_high"][0]
    assert frame["new_interval"].tolist()[0] == f"{low:.1f} to {high:.1f}"
    assert frame["judged"].tolist()[0].endswith(" %")


def test_a_new_run_hides_groups_until_they_are_computed_anew(site: Site, app: AppTest, submitted: Submit) -> None:
    submitted("First")
    statistics.compute(site, statistics.pending(site), lambda line: None)
    submitted("Second")
    open_page(app, "leaderboard", lb_benchmark="demo-tools@1")
    sound(app.multiselect(key="lb_columns").set_value(COLUMNS).run())
    assert "tie_group" not in app.dataframe[0].value.columns
    assert "new_interval" in app.dataframe[0].value.columns


def test_a_runs_page_says_how_sure_it_is(site: Site, app: AppTest, submitted: Submit) -> None:
    run_id = submitted()
    sound(open_page(app, "run", run=run_id))
    assert "are being computed" in said(app)
    statistics.compute(site, statistics.pending(site), lambda line: None)
    sound(app.run())
    assert "How sure is that?" in said(app)
    assert "random tools instead of the valid ones" in said(app) and "judged@10" in said(app)
    tables = [pl.from_pandas(element.value) for element in app.dataframe]
    certain = next(table for table in tables if "Random lift" in table.columns)
    assert "[" in certain["Lift, 95 %"][0]
    readings = next(table for table in tables if table.height == len(READINGS))
    figures = next(table for table in tables if "NDCG@10 new" in table.columns)
    assert readings["NDCG@10"][0] == figures["NDCG@10 new"][0], "the best combination is the figure itself"


def test_reported_runs_have_none(site: Site, app: AppTest) -> None:
    with site.database.reading() as session:
        run_id = leaderboard.leaderboard(session, benchmarks.get(session, "tooleq").id)["run_id"][0]
    sound(open_page(app, "run", run=run_id))
    assert "How sure" not in said(app) and "being computed" not in said(app)


def test_groups_of_other_runs_are_not_shown() -> None:
    board = pl.DataFrame(
        {"run_id": ["a", "b"], "ranking_hash": ["x", "y"], "rank": [1, 2], "flags": [[], []]},
        schema_overrides={"flags": pl.List(pl.String)},
    )

    def groups(*ids: str) -> pl.DataFrame:
        rows = [
            ("query", view, "NDCG", 10, "macro", "", run, place, 0.5, place, "a", None, None, None)
            for view in ("old", "new")
            for place, run in enumerate(ids, start=1)
        ]
        return pl.DataFrame(rows, schema=BOARD_TIE_GROUPS, orient="row")

    figure = {"metric": "NDCG", "k": 10, "average": "macro", "domain": None}
    assert with_tie_groups(board, groups("a", "b"), **figure)["tie_new"].to_list() == [1, 2]
    assert with_tie_groups(board, groups("a"), **figure)["tie_new"].to_list() == [None, None]
    assert with_tie_groups(board, groups("a", "b"), **figure | {"k": 5})["tie_old"].to_list() == [None, None]
    row = {"tie_group": 2, "control": 0.012, "judged": 0.875, "lift_low": -0.01, "lift_high": 0.05}
    assert statistics_texts(row) == {
        "tie_group": "2",
        "old_interval": "—",
        "new_interval": "—",
        "lift_interval": "−1.0 to +5.0",
        "control": "+1.2",
        "judged": "88 %",
    }
