"""The fine-tuning illusion: the papers' golden figures, pairs with per-query scores, any two runs, nothing to pair."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.charts.gain_split_bars import GainBar, Segment, gain_split_bars, segments, shared_scale
from dashboard.charts.palette import Ground
from dashboard.components.gain_words import (
    bar_words,
    gain_texts,
    pair_sentence,
    percent,
    share_sentence,
    with_interval,
)
from dashboard.components.gain_words import test_sentence as certainty
from pipeline.formats.ranking import ranking_frame
from pipeline.jobs import statistics
from pipeline.jobs.first_start import demo_run
from pipeline.jobs.site import Site
from pipeline.jobs.submission import SubmissionMetadata, check_run, submit_run
from pipeline.scoring.gain_table import GAIN_TABLE
from store.access import retrievers
from store.models import Retriever
from tests.dashboard.dashboard_app import open_page

Submit = Callable[..., str]


def said(app: AppTest) -> str:
    return "\n".join(str(e.value) for e in [*app.title, *app.subheader, *app.markdown, *app.caption, *app.info])


def sound(app: AppTest) -> AppTest:
    assert not app.exception, app.exception
    assert not app.error, [element.value for element in app.error]
    return app


def fresh(app: AppTest) -> AppTest:
    """Another reader of the same site."""
    return AppTest.from_file(app._script_path, default_timeout=60)


def table(app: AppTest) -> pl.DataFrame:
    return pl.from_pandas(app.dataframe[0].value)


def cell(frame: pl.DataFrame, pair: str, over: str, column: str) -> str:
    found = frame.filter(pl.col("Retriever").str.starts_with(pair), pl.col("Over") == over)
    return str(found[column][0])


@pytest.fixture
def fine_tuned(site: Site, submitted: Submit) -> tuple[str, str]:
    """The sample run of the demo tools as "Base", and one that is worse in half of the queries as its fine-tuning."""
    base = submitted("Base")
    source = demo_run("tools")
    checked = check_run(site, source, "demo-tools")
    assert checked.reading.run is not None and checked.scores is not None
    frame = ranking_frame(checked.reading.run, checked.scores.compiled.target)
    queries = frame["query_id"].unique().sort()
    worse = frame.filter(~(pl.col("query_id").is_in(queries[::2].implode()) & (pl.col("rank") <= 2)))
    path = site.settings.home / "tuned.trec"
    path.write_text("".join(f"{q} Q0 {t} {r} {s} x\n" for q, t, s, r in worse.iter_rows()))
    tuned = submit_run(
        site, check_run(site, path, "demo-tools"), path, SubmissionMetadata(retriever="Tuned"), publish=True
    )
    with site.database.session() as session:
        key = retrievers.get(session, "tuned").key
        retrievers.upsert(session, Retriever(key=key, name="Tuned", fine_tuned=True, base_key="base"))
    return base, tuned


def test_the_papers_illusion(site: Site, app: AppTest) -> None:
    sound(open_page(app, "illusion", ill_benchmark="tooleq@published"))
    frame = table(app)
    small, big = "Tool-Embed-0.6B · Full-Doc −", "Tool-Embed-4B · Full-Doc −"
    assert cell(frame, small, "Macro average", "Artifact") == "30.6 %"
    assert cell(frame, big, "Macro average", "Artifact") == "47.0 %"
    assert cell(frame, small, "Macro average", "Gain, old") == "+6.4"
    assert (cell(frame, big, "Code", "Gain, old"), cell(frame, big, "Code", "Gain, new")) == ("+2.1", "−0.3")
    text = said(app)
    assert "**47 % of this gain disappears** once equivalent tools count: +7.2 becomes +3.8 points." in text
    assert "no scores by query" in text and "no interval" in text
    assert not any(name.startswith("p") for name in frame.columns), "printed rows have no test"


def test_the_skill_pairs(site: Site, app: AppTest) -> None:
    sound(open_page(app, "illusion", ill_benchmark="skilleq@published"))
    frame = table(app)
    assert set(frame["Artifact"]) >= {"13.9 %", "−15.2 %"}
    assert "**One label hid gain**: once equivalent skills count, +3.3 becomes +3.8 points" in said(app)


def test_a_board_without_pairs_says_what_to_do(site: Site, app: AppTest, submitted: Submit) -> None:
    submitted()
    sound(open_page(app, "illusion", ill_benchmark="demo-tools@1"))
    assert "No retriever here is known to be fine-tuned" in said(app)
    app = fresh(app)
    sound(open_page(app, "illusion", ill_benchmark="demo-tools@1", ill_runs="any two runs"))
    assert "only one run" in said(app)


def test_empty_boards(site: Site, bare_site: Site, app: AppTest) -> None:
    sound(open_page(app, "illusion"))
    assert "No benchmark is stored yet" in said(app)


def test_a_measured_pair_waits_for_its_job_then_has_intervals(
    site: Site, app: AppTest, fine_tuned: tuple[str, str]
) -> None:
    sound(open_page(app, "illusion", ill_benchmark="demo-tools@1"))
    assert "are being computed" in said(app)
    assert not any(name.startswith("p") for name in table(app).columns)
    assert "disappears" not in said(app).split("that part of its gain is gone")[1], "nothing is claimed before the test"
    statistics.compute(site, statistics.pending(site), lambda line: None)
    app.run()
    sound(app)
    frame = table(app)
    assert "[" in frame["Gain, old"][0] and frame["p (Holm), old − new"][0] != "—"
    assert "Old minus new gain: " in said(app) and "Holm)" in said(app)
    for name in ("old", "new"):
        assert frame[f"Gain, {name}"][0].startswith("−"), "half of its answers are gone"


def test_any_two_runs_are_split_at_once(site: Site, app: AppTest, fine_tuned: tuple[str, str]) -> None:
    base, tuned = fine_tuned
    query = {"ill_benchmark": "demo-tools@1", "ill_runs": "any two runs"}
    sound(open_page(app, "illusion", **query, ill_base=tuned, ill_tuned=base))
    assert "of this gain disappears" in said(app) or "One label hid gain" in said(app) or "real" in said(app)
    assert "95 % interval of the share" in said(app)
    assert app.query_params["ill_base"] in (tuned, [tuned])
    app = fresh(app)
    sound(open_page(app, "illusion", **query, ill_base=base, ill_tuned=base))
    assert "Choose two different runs" in said(app)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (0.07, 0.04, [Segment("real", 0.0, 0.04), Segment("artifact", 0.04, 0.07)]),
        (0.02, -0.01, [Segment("artifact", 0.0, 0.02), Segment("hidden", 0.0, -0.01)]),
        (0.03, 0.05, [Segment("real", 0.0, 0.03), Segment("hidden", 0.03, 0.05)]),
        (-0.04, -0.01, [Segment("real", 0.0, -0.01), Segment("artifact", -0.01, -0.04)]),
        (0.03, 0.03, [Segment("real", 0.0, 0.03)]),
        (0.03, 0.0, [Segment("artifact", 0.0, 0.03)]),
        (0.0, 0.0, []),
        (0.03, None, [Segment("artifact", 0.0, 0.03)]),
    ],
)  # fmt: skip
def test_segments_cover_both_gains(old: float, new: float | None, expected: list[Segment]) -> None:
    assert segments(old, new) == expected


def test_everything_is_on_the_scale_and_every_bar_has_its_words() -> None:
    bars = [
        GainBar("<b>Code</b>", "+2.1 → −0.3", 0.021, -0.003, (0.001, 0.04), (-0.02, 0.01)),
        GainBar("Web", "+6.0 → +4.6", 0.06, 0.046),
    ]
    low, high = shared_scale([bars])
    assert low <= -2 and high >= 6
    for ground in Ground:
        figure = gain_split_bars(bars, family="tool-embed", scale=(low, high), figure_name="NDCG@10", ground=ground)
        texts = [annotation.text for annotation in figure.layout.annotations]
        assert texts[0].startswith("<b>&lt;b&gt;Code") and "+6.0 → +4.6" in texts[1]
        assert all(annotation.x == 0 and annotation.xanchor == "left" for annotation in figure.layout.annotations)
        assert len([shape for shape in figure.layout.shapes if shape.type == "line"]) == 2
        figure.to_dict()


def row(old: float, new: float | None, **more: object) -> dict[str, object]:
    share = None if new is None or old <= 0 else 1 - new / old
    return {
        "gain_old": old, "gain_new": new, "share": share, "sign_flips": new is not None and old > 0 > new,
        "p_shrink": None, "artifact": None if new is None else old - new,
    } | more  # fmt: skip


def test_sentences_say_what_a_split_means() -> None:
    assert "All of this gain disappears" in pair_sentence(row(0.021, -0.003), "tool")
    assert "This gain is real" in pair_sentence(row(0.05, 0.05), "tool")
    assert "not known against every valid answer" in pair_sentence(row(0.05, None), "tool")
    assert "no gain with one label (−1.0 points)" in pair_sentence(row(-0.01, 0.02), "skill")
    assert bar_words(row(0.033, 0.038)) == "+3.3 → +3.8, 0.5 hidden"
    assert bar_words(row(0.021, -0.003)) == "+2.1 → −0.3, sign flips"
    assert percent(-0.152) == "−15.2 %" and percent(None) == "—"
    assert with_interval(0.05, -0.01, 0.1) == "+5.0 [−1.0, +10.0]"
    tested = row(0.07, 0.04, p_shrink=0.001, p_shrink_holm=0.004, artifact_low=0.01, artifact_high=0.05)
    assert (
        certainty(tested) == "Old minus new gain: +3.0 [+1.0, +5.0] points; old and new gain differ (p = 0.004, Holm)."
    )
    assert "cannot be told apart" in certainty(tested | {"p_shrink_holm": 0.3})
    assert "p < 0.001" in certainty(tested | {"p_shrink_holm": 0.0001})
    assert certainty(row(0.07, 0.04)) == ""
    assert "no finite interval" in share_sentence(tested | {"share_low": None, "share_high": None})


def measured(old: float, new: float, low: float, p: float, *, p_holm: float | None = None) -> dict[str, object]:
    """A measured row: the old gain's lower end, and the test of whether old and new gain differ."""
    return row(
        old, new, average="macro", domain=None, n=100, gain_old_low=low, gain_old_high=old + (old - low),
        gain_new_low=new - 0.02, gain_new_high=new + 0.02, p_shrink=p, p_shrink_holm=p if p_holm is None else p_holm,
        artifact_low=old - new - 0.02, artifact_high=old - new + 0.02, share_low=None, share_high=None,
        p_old=0.026, p_old_holm=0.078, p_new=0.01, p_new_holm=0.04,
    )  # fmt: skip


def test_the_verdict_claims_no_more_than_the_test() -> None:
    same = measured(0.051, 0.059, 0.02, 1.0)
    for unclear in (same, measured(0.07, 0.04, 0.03, 0.04, p_holm=0.12), measured(0.02, -0.01, 0.01, 0.3)):
        assert "cannot be told apart" in pair_sentence(unclear, "tool") and "cannot be told apart" in certainty(unclear)
        assert not any(word in pair_sentence(unclear, "tool") for word in ("hid", "disappears", "real", "%"))
        assert bar_words(unclear).endswith(", not told apart")
    assert pair_sentence(measured(0.07, 0.04, 0.03, 0.001), "tool").startswith("**43 % of this gain disappears**")
    assert "perhaps into a loss" in pair_sentence(measured(0.03, -0.01, 0.01, 0.001), "tool")
    assert "and turns into a loss" in pair_sentence(measured(0.03, -0.04, 0.01, 0.001), "tool")
    waiting = pair_sentence(row(0.07, 0.04), "tool", pending=True)
    assert "+7.0" in waiting and "+4.0" in waiting and "**" not in waiting


def test_no_percentage_of_an_old_gain_that_may_be_zero() -> None:
    for unsure in (measured(0.011, 0.0748, -0.02, 0.6), measured(0.004, 0.02, 0.001, 0.4), row(0.003, 0.02)):
        frame = gain_texts(pl.DataFrame([dict.fromkeys(GAIN_TABLE) | {"average": "macro"} | unsure]))
        assert frame["Artifact"].to_list() == ["—"]
        assert "%" not in bar_words(unsure) and "artifact -" not in pair_sentence(unsure, "tool")
        assert "artifact −" not in pair_sentence(unsure, "tool")
    assert pair_sentence(measured(0.011, 0.0748, -0.02, 0.6), "tool").startswith("**No clear gain with one label**")
    found = pair_sentence(measured(0.014, 0.088, -0.01, 0.001), "tool")
    assert found.startswith("**One label hid gain**") and "%" not in found, (
        "the test found it; only the share is unsure"
    )


def test_p_values_stand_as_found_and_adjusted() -> None:
    frame = gain_texts(
        pl.DataFrame([dict.fromkeys(GAIN_TABLE) | measured(0.058, 0.03, 0.007, 0.2, p_holm=0.6)], schema=GAIN_TABLE)
    )
    shown = {name: frame[name][0] for name in frame.columns if name.startswith("p")}
    assert shown == {
        "p, old": "0.026", "p (Holm), old": "0.078", "p, new": "0.010", "p (Holm), new": "0.040",
        "p, old − new": "0.200", "p (Holm), old − new": "0.600",
    }  # fmt: skip
