"""The leaderboard page: rows, filters and their undo, order, permalinks, privacy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from pipeline.jobs.site import Site
from pipeline.jobs.submission import withdraw_run


def table(app: AppTest) -> pd.DataFrame:
    """What the main table holds."""
    return app.dataframe[0].value


def names(app: AppTest) -> list[str]:
    return table(app)["retriever"].tolist()


def opened(app: AppTest, **query: Any) -> AppTest:
    app.query_params.update(query)
    app.run()
    assert not app.exception, app.exception
    assert not app.error, app.error
    return app


def test_the_papers_table_opens_with_no_set_up(site: Site, app: AppTest) -> None:
    opened(app)
    rows = table(app)
    assert len(rows) == 20
    assert names(app)[:3] == ["Tool-Embed-4B", "Tool-Embed-0.6B", "Qwen3-Embedding-8B"]
    assert rows["rank"].tolist()[:10] == list(range(1, 11))
    assert rows["new"].iloc[0] == pytest.approx(57.1, abs=0.05)
    text = " ".join(element.value for element in app.markdown)
    assert "underestimates these 10 retrievers by 4.6 to 8.5 points" in text
    assert "as printed there: no ranking lies behind them" in " ".join(element.value for element in app.caption)


def test_the_address_always_names_the_benchmark_version(site: Site, app: AppTest) -> None:
    opened(app)
    assert app.query_params["lb_benchmark"] == "tooleq@published"


def test_the_address_restores_the_view(site: Site, app: AppTest) -> None:
    opened(app, lb_benchmark="tooleq@published", lb_metric="Recall", lb_over="Code", lb_view="old", lb_sort="name")
    assert app.selectbox(key="lb_over").value == "Code"
    rows = table(app)
    assert "new" not in rows.columns
    assert "old" in rows.columns
    assert names(app) == sorted(names(app), key=str.lower)
    best = rows.loc[rows["rank"] == 1, "old"].max()
    assert best == rows["old"].max()


def test_an_address_gives_the_view_that_the_widgets_gave(site: Site, app: AppTest) -> None:
    """The browser writes the address (the end-to-end tests watch it do so); here it is read back."""
    opened(app)
    app.multiselect(key="lb_family").set_value(["Qwen3"])
    app.segmented_control(key="lb_metric").set_value("Comp")
    app.selectbox(key="lb_sort").set_value("lift")
    app.run()
    first = table(app)
    again = AppTest.from_file(app._script_path, default_timeout=60)
    opened(again, lb_family=["Qwen3"], lb_metric="Comp", lb_sort="lift", lb_benchmark="tooleq@published")
    pd.testing.assert_frame_equal(table(again), first)


@pytest.mark.parametrize(
    ("key", "value", "kept"),
    [
        ("lb_family", ["Qwen3"], lambda rows: rows["family"] == "Qwen3"),
        ("lb_training", ["fine-tuned"], lambda rows: rows["training"] == "fine-tuned"),
        ("lb_level", ["sub-query"], lambda rows: rows["level"] == "sub-query"),
        ("lb_size", ["under 100M", "unknown"], lambda rows: rows["size"].isna()),
    ],
)
def test_every_filter_narrows_and_can_be_undone(
    site: Site, app: AppTest, key: str, value: list[str], kept: Callable[[pd.DataFrame], pd.Series]
) -> None:
    opened(app)
    everything = table(app)
    app.multiselect(key=key).set_value(value).run()
    narrowed = table(app)
    expected = everything[kept(everything)]
    assert 0 < len(narrowed) < len(everything)
    assert narrowed["retriever"].tolist() == expected["retriever"].tolist()
    assert narrowed["rank"].tolist() == expected["rank"].tolist(), "a filter moved a rank"
    app.button(key="lb_all_rows").click().run()
    pd.testing.assert_frame_equal(table(app), everything)


def test_search_and_the_way_back_from_nothing(site: Site, app: AppTest) -> None:
    opened(app)
    app.text_input(key="lb_search").set_value("embed-4b").run()
    assert set(names(app)) == {"Tool-Embed-4B", "Tool-Embed-4B · sub-queries ‡"}
    app.text_input(key="lb_search").set_value("no such retriever [").run()
    assert not app.exception
    assert "No row passes" in app.info[0].value
    app.button(key="lb_clear_all").click().run()
    assert len(table(app)) == 20


def test_sorting_puts_unknown_values_last_both_ways(site: Site, app: AppTest) -> None:
    opened(app, lb_sort="size")
    sizes = table(app)["size"]
    assert sizes.iloc[0] == sizes.max()
    assert sizes.isna().iloc[-1]
    app.toggle(key="lb_reverse").set_value(True).run()
    sizes = table(app)["size"]
    assert sizes.iloc[0] == sizes.min()
    assert sizes.isna().iloc[-1]


def test_columns_can_be_chosen(site: Site, app: AppTest) -> None:
    opened(app)
    app.multiselect(key="lb_columns").set_value(["new", "family"]).run()
    assert table(app).columns.tolist() == ["retriever", "new", "family"]


def test_a_board_without_new_figures_ranks_by_old(site: Site, app: AppTest) -> None:
    opened(app, lb_benchmark="mftr-apibank@published")
    rows = table(app)
    assert "new" not in rows.columns
    assert rows["old"].dropna().is_monotonic_decreasing
    assert rows["old"].isna().tolist()[-1], "the row that the paper leaves empty comes last"
    assert rows["rank"].iloc[0] == 1


def test_an_empty_board_invites(site: Site, app: AppTest) -> None:
    opened(app, lb_benchmark="demo-tools@1")
    assert not app.dataframe
    assert "No run of" in " ".join(element.value for element in app.markdown)


def test_no_benchmark_at_all(bare_site: Site, app: AppTest) -> None:
    opened(app)
    assert "No benchmark is stored yet" in app.info[0].value


def test_private_and_withdrawn_runs_never_appear(site: Site, app: AppTest, submitted: Callable[..., str]) -> None:
    submitted("Shown")
    private = submitted("Hidden", publish=False)
    withdraw_run(site, submitted("Gone"))
    opened(app, lb_benchmark="demo-tools@1")
    assert names(app) == ["Shown"]
    app.query_params["run"] = private
    app.run()
    said = " ".join(element.value for element in app.caption)
    assert "that you may see" in said
    assert "Hidden" not in said


def test_a_published_run_appears_without_a_restart(site: Site, app: AppTest, submitted: Callable[..., str]) -> None:
    submitted("First")
    opened(app, lb_benchmark="demo-tools@1")
    submitted("Second")
    app.run()
    assert sorted(names(app)) == ["First", "Second"]
    assert table(app)["rank"].tolist() == [1, 1], "equal scores share a rank"


def test_a_selected_run_shows_its_details(site: Site, app: AppTest, submitted: Callable[..., str]) -> None:
    run_id = submitted("Chosen <b>one</b>", link="javascript:alert(1)")
    opened(app, lb_benchmark="demo-tools@1", run=run_id)
    assert app.subheader[0].value == r"Chosen \<b\>one\<\/b\>"
    figures = app.dataframe[1].value
    assert figures.iloc[0, 0] == "all (macro)"
    assert not app.get("link_button"), "an address that is not http(s) became a link"


def test_names_with_markup_stay_text(site: Site, app: AppTest, submitted: Callable[..., str]) -> None:
    name = "![x](http://evil.example/p.png) **bold**"
    submitted(name)
    opened(app, lb_benchmark="demo-tools@1")
    assert names(app) == [name]


@pytest.mark.parametrize("narrow", [False, True])
def test_a_narrow_window_keeps_every_control(site: Site, app: AppTest, narrow: bool) -> None:
    if narrow:
        app.session_state["viewport"] = {"narrow": True}
    opened(app)
    for key in ("lb_metric", "lb_view"):
        assert app.segmented_control(key=key)
    assert app.multiselect(key="lb_family")
    assert len(table(app)) == 20
    first = ["rank", "retriever", "new", "old", "lift", "move"]
    assert (table(app).columns.tolist()[:6] == first) is narrow
