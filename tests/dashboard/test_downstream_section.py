"""The section on downstream studies: how to make one, what one found, the paper's figures beside, nothing as markup."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.charts.downstream_lanes import downstream_lanes
from dashboard.charts.palette import Ground, colours
from dashboard.components.downstream_section import how_to, sentences
from pipeline.downstream.outcomes import OUTCOMES, outcomes_of
from pipeline.downstream.pass_rates import pass_rates
from pipeline.downstream.report import CAVEAT, downstream_report
from pipeline.jobs.downstream import import_study
from pipeline.jobs.site import Site
from store.access import benchmarks
from store.models import BenchmarkVersion

SETTINGS = ("Oracle", "ToolBench-IR", "ToolEX-expanded")
PASSED = {"Oracle": 10, "ToolBench-IR": 12, "ToolEX-expanded": 20}


def rows() -> list[tuple[str, str, str, bool]]:
    """Twenty tasks a category; the first ones pass."""
    return [
        (f"{i}", category, setting, i < passed)
        for category in ("G1-Inst", "G2-Cat")
        for setting, passed in PASSED.items()
        for i in range(20)
    ]


def script() -> None:
    """What AppTest runs as a page."""
    from dashboard.components.downstream_section import downstream_section
    from dashboard.current_site import the_site
    from store.access import benchmarks

    with the_site().database.reading() as session:
        record = benchmarks.get(session, "weather")
    downstream_section(the_site(), record)


@pytest.fixture
def weather(bare_site: Site) -> Site:
    with bare_site.database.session() as session:
        benchmarks.add_version(session, BenchmarkVersion(slug="weather", version="2", title="Weather", kind="tool"))
    return bare_site


def said(app: AppTest) -> str:
    """All words, escapes left out."""
    words = "\n".join(element.value for element in (*app.markdown, *app.caption, *app.info, *app.code))
    return words.replace("\\", "")


def test_without_a_study_it_says_how_to_make_one(weather: Site) -> None:
    app = AppTest.from_function(script, default_timeout=60).run()
    assert not app.exception and not app.selectbox
    assert "No study of weather is stored yet" in app.info[0].value
    assert app.code[0].value == how_to("weather@2")
    assert "over Oracle: 3.5 to 6.5 points; ToolEX-expanded over ToolBench-IR: 1.0 to 6.9" in said(app)
    (reported,) = app.dataframe
    assert reported.value["printed"].to_list()[1:] == ["3.5 to 6.5 pp", "1.0 to 6.9 pp"]


def test_a_study_is_told_and_charted(weather: Site, tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    pl.DataFrame(rows(), schema=OUTCOMES, orient="row").write_csv(path)
    import_study(weather, path, "<b>A</b> [x](http://evil.example)", note="agent *one*")
    app = AppTest.from_function(script, default_timeout=60).run()
    assert not app.exception
    # 8 and 10 of 20 differ in each of two categories, all one way.
    assert "**ToolEX-expanded** against **Oracle**: +50.0 [" in said(app)
    assert "points on 40 shared tasks, p <0.001 after Holm." in said(app)
    assert CAVEAT in said(app)
    assert any(r"agent \*one\*" in caption.value for caption in app.caption)
    differences = next(frame.value for frame in app.dataframe if "difference of" in frame.value)
    assert differences["points"].to_list() == ["+50.0"] * 3 + ["+40.0"] * 3 + ["+10.0"] * 3
    assert app.selectbox[0].options == ["<b>A</b> [x](http://evil.example)"]
    assert len(app.get("plotly_chart")) == 1


def test_a_difference_that_may_be_chance_is_called_so() -> None:
    few = pl.DataFrame([("1", "c", "a", False), ("1", "c", "b", True)], schema=OUTCOMES, orient="row")
    (found,) = sentences(downstream_report(outcomes_of(few, ("a", "b"))))
    assert "+100.0 (no interval) points" in found and found.endswith("p 1.000 after Holm: this may be chance.")
    assert sentences(downstream_report(outcomes_of(few.head(1), ("a",)))) == []


@pytest.mark.parametrize("ground", Ground)
def test_lanes_say_what_the_rates_say(ground: Ground) -> None:
    outcomes = outcomes_of(pl.DataFrame(rows(), schema=OUTCOMES, orient="row"), SETTINGS)
    rates = pass_rates(outcomes)
    figure = downstream_lanes(rates, SETTINGS, ground, all_words="all tasks", narrow=False)
    dots = [trace for trace in figure.data if trace.mode == "markers"]
    assert [list(dot.x) for dot in dots] == [[50.0] * 3, [60.0] * 3, [100.0] * 3]
    # Within a category from top to bottom in the order of the settings, categories apart from each other.
    assert dots[0].y[0] > dots[1].y[0] > dots[2].y[0] > dots[0].y[1]
    assert [dot.marker.color for dot in dots][::2] == [colours(ground).muted, colours(ground).accent]
    assert dots[2].hovertext[1] == "ToolEX-expanded, G1-Inst: 100.0 % [83.9, 100.0], 20 of 20 tasks"
    assert list(figure.layout.yaxis.ticktext) == ["all tasks  ", "G1-Inst  ", "G2-Cat  "]
    texts = [trace.text for trace in figure.data if trace.mode == "text"]
    assert "ToolEX-expanded" in texts[2][0] and "ToolEX-expanded" not in texts[2][1]
    narrow = downstream_lanes(rates, SETTINGS, ground, all_words="all tasks", narrow=True)
    assert [note.text for note in narrow.layout.annotations] == ["all tasks", "G1-Inst", "G2-Cat"]
