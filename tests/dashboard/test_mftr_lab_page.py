"""The MFTR lab: one query field by field, the whole benchmark, what is missing and how it is asked for."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl
import pytest
from streamlit.testing.v1 import AppTest

from dashboard import field_reading
from dashboard.charts.change_bars import change_bars
from dashboard.charts.palette import Ground
from dashboard.charts.recall_curves import recall_curves
from dashboard.components.mftr_whole import most_changed, recall_sentence
from dashboard.components.mftr_words import (
    charge_sentence,
    field_table,
    number,
    scaling_sentence,
    score_sentence,
    share_sentence,
    unused_fields,
    used_shares,
    weight_frame,
    weight_sentence,
)
from dashboard.current_site import use_site
from pipeline.jobs import durable
from pipeline.jobs.fields import analyses as field_analyses
from pipeline.jobs.fields import analysis_requests as field_analysis_requests
from pipeline.jobs.fields import explaining as mftr_explaining
from pipeline.jobs.site import Site, open_site
from pipeline.mftr.explain import Explanation, FieldMatch, ParameterMatch
from pipeline.mftr.schema import Field
from store.access import benchmarks
from store.access import field_analyses as stored
from store.access.mftr import FoldParameters, ParameterSet
from store.field_text_models import ParameterSource
from store.settings import Settings
from tests.dashboard.conftest import APP
from tests.dashboard.dashboard_app import open_page
from tests.dashboard.measured_runs import measured


@dataclass(frozen=True)
class Lab:
    """A site with a Full-Doc and an MFTR run of BM25 on the demo tools."""

    site: Site
    full_doc: str
    mftr: str


@pytest.fixture(scope="module")
def lab(prepared_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    home = tmp_path_factory.mktemp("lab") / "home"
    shutil.copytree(prepared_home, home)
    site = open_site(Settings(home=home))
    made = Lab(site, measured(site), measured(site, "mftr", method_preset="paper"))
    for kind in ("tests", "fields"):
        field_analyses.analysis(site, made.mftr, kind)
    use_site(site)
    yield made
    use_site(None)
    durable.close_job_client(site)
    site.database.close()


def opened(lab: Lab, **query: str) -> AppTest:
    use_site(lab.site)
    app = open_page(AppTest.from_file(str(APP), default_timeout=60), "mftr_lab", **query)
    assert not app.exception, app.exception
    assert not app.error, [element.value for element in app.error]
    return app


def said(app: AppTest) -> str:
    parts = [*app.title, *app.subheader, *app.markdown, *app.caption, *app.info]
    return "\n".join(str(element.value) for element in parts).replace("\\", "")


def test_the_page_starts_where_both_disagree_most(lab: Lab) -> None:
    app = opened(lab)
    assert app.query_params["lab_run"] == [lab.mftr] or app.query_params["lab_run"] == lab.mftr
    query = app.selectbox(key="lab_query").value
    record = _record(lab)
    run = field_reading.lab_runs(record)[lab.mftr]
    changes = field_reading.differences(run)
    size = pl.max_horizontal(pl.col("change_new").abs(), pl.col("change_old").abs())
    assert changes.filter(pl.col("query_id") == query).select(size).item() == changes.select(size.max()).item()
    tool = app.selectbox(key="lab_tool").value
    found = mftr_explaining.explain_tool(lab.site, lab.mftr, query, tool)
    text = said(app)
    assert f"MFTR ranks it **{found.rank}** of 246" in text
    expected = "does not find it" if found.full_doc_rank is None else f"Full-Doc ranks it {found.full_doc_rank}"
    assert expected in text
    table = app.table[0].value
    assert table["Field"].tolist() == ["description", "parameters", "response", "examples"]
    printed = app.dataframe[-1].value
    assert printed["Share"].tolist() == ["21.4 %", "13.3 %", "23.0 %", "42.3 %"], "the paper's own case is beside it"
    assert "Full-Doc ranks the labelled tool 24, MFTR 1." in text
    ranks = [str(match.rank) if match.score else "—" for match in found.fields]
    assert table["Rank"].tolist() == ranks


def _record(lab: Lab) -> object:
    with lab.site.database.reading() as session:
        return benchmarks.get(session, "demo-tools@1")


def test_both_lists_begin_as_the_runs_do(lab: Lab) -> None:
    app = opened(lab, lab_query="ev-006")
    lists = app.table[1].value
    run = field_reading.lab_runs(_record(lab))[lab.mftr]  # type: ignore[arg-type]
    assert list(lists.columns) == ["Rank", "Full-Doc", "MFTR"] and len(lists) == 10
    assert len(field_reading.top(run.full_doc_ranking, "ev-006")) == 10
    marks = [cell[0] for column in ("Full-Doc", "MFTR") for cell in lists[column].str.replace("\\", "")]
    assert {"✓", "≈"} & set(marks), "valid tools are marked"


def test_a_link_restores_query_tool_and_view(lab: Lab) -> None:
    app = opened(lab, lab_query="ev-006")
    other = app.selectbox(key="lab_tool").options[-1]
    app.selectbox(key="lab_tool").set_value(other).run()
    link = opened(lab, **_address(app))
    assert link.selectbox(key="lab_query").value == "ev-006"
    assert link.selectbox(key="lab_tool").value == app.selectbox(key="lab_tool").value
    # Another query begins with a tool of its own.
    link.selectbox(key="lab_query").set_value("ev-001").run()
    assert link.selectbox(key="lab_tool").value == opened(lab, lab_query="ev-001").selectbox(key="lab_tool").value


def _address(app: AppTest) -> dict[str, str]:
    return {name: value[0] if isinstance(value := app.query_params[name], list) else value for name in app.query_params}


def test_the_whole_benchmark_shows_weights_recall_fields_and_what_is_missing(lab: Lab) -> None:
    app = opened(lab, lab_view="all queries")
    text = said(app)
    for heading in ("What did each field come to weigh?", "How deep does one have to look?", "How good is each field"):
        assert heading in text
    assert "Which part of MFTR does the work?" not in text
    # The board of the demo tools shows the mean of its domains' means, which is another figure.
    assert "means over queries (micro)" in text and "ranks by the macro average, which differs" in text
    assert "Not computed yet for this run: the ablation, masked documents." in text
    assert "equirank mftr ablate" in text
    with lab.site.database.reading() as session:
        frame = lab.site.artifacts.get_frame(stored.of_run(session, lab.mftr)["fields"].artifact)
    alone = frame.filter(pl.col("metric") == "NDCG", pl.col("view") == "new", pl.col("key") != "whole")
    best = alone.sort("value", descending=True, nulls_last=True)["key"][0]
    assert best in text.lower()
    assert "By parameters or examples alone there is nothing to rank by." in text


def test_the_button_asks_for_what_is_missing(lab: Lab) -> None:
    app = opened(lab, lab_view="all queries")
    app.button(key="lab_compute").click().run()
    assert not app.exception, app.exception
    job = field_analysis_requests.look(lab.site, lab.mftr)
    assert job is not None and not job.state.ended
    assert "appear here once it is done" in said(opened(lab, lab_view="all queries"))


def test_a_benchmark_without_such_runs_says_what_to_do(lab: Lab) -> None:
    text = said(opened(lab, lab_benchmark="demo-skills@1"))
    assert "No MFTR run of" in text and "needs no language model" in text


def test_an_empty_site(bare_site: Site, app: AppTest) -> None:
    open_page(app, "mftr_lab")
    assert not app.exception
    assert "No benchmark is stored yet" in said(app)


def test_learned_weights_in_words() -> None:
    folds = (
        FoldParameters(0, (0.4, 0.2, 0.2, 0.2), 0.3, 15, 0.2, 0.1),
        FoldParameters(1, (0.6, -0.2, 0.3, 0.3), 0.3, 15, 0.2, 0.1),
    )
    learned = ParameterSet("x", 1, "", "", "", {}, ParameterSource.LEARNED, 2, folds)
    frame = weight_frame(learned)
    assert frame["Fold 1"].to_list() == ["0.400 (40.0 %)", "0.200 (20.0 %)", "0.200 (20.0 %)", "0.200 (20.0 %)"]
    assert frame["Fold 2"].to_list()[1] == "−0.200", "no shares beside a negative weight"
    assert frame["Mean"].to_list()[0] == "0.500 (50.0 %)"
    assert "Description carries most: 50.0 % of the mean weight**" in weight_sentence(learned, "tool")
    assert "1 of the 8 weights is negative" in weight_sentence(learned, "tool")
    assert number(-0.0001) == "0.000"
    said_of = weight_sentence(learned, "skill", ["parameters", "examples"])
    assert "Description carries most: 66.7 % of the mean weight of the fields in use" in said_of, "0.5 of 0.5 + 0.25"
    assert "no query has arguments and no skill has a text in examples" in said_of and "negative" not in said_of
    figures = pl.DataFrame({"key": ["whole", "examples", "response"], "tools": [None, 0, 5]})
    assert unused_fields(False, figures) == ["parameters", "examples"]
    assert unused_fields(True, figures) == ["examples"] and unused_fields(True, None) == []


def test_table_and_sentence_share_the_same_sum() -> None:
    """Weights of fields where nothing can match take part in no sum, whatever their sign."""
    folds = (
        FoldParameters(0, (0.9, -0.3, 0.1, -0.4), 0.3, 15, 0.2, 0.1),
        FoldParameters(1, (0.8, 0.3, -0.2, 0.4), 0.3, 15, 0.2, 0.1),
        FoldParameters(2, (0.7, -0.5, 0.3, -0.6), 0.3, 15, 0.2, 0.1),
    )
    learned = ParameterSet("x", 1, "", "", "", {}, ParameterSource.LEARNED, 3, folds)
    unused = ["parameters", "examples"]
    frame = weight_frame(learned, unused)
    assert frame["Field"].to_list() == [
        "description", "parameters (not in use)", "response", "examples (not in use)",
    ]  # fmt: skip
    assert frame["Fold 1"].to_list() == ["0.900 (90.0 %)", "−0.300", "0.100 (10.0 %)", "−0.400"]
    assert frame["Fold 2"].to_list() == ["0.800", "0.300", "−0.200", "0.400"], "a negative weight that is in use"
    assert frame["Fold 3"].to_list() == ["0.700 (70.0 %)", "−0.500", "0.300 (30.0 %)", "−0.600"]
    assert frame["Mean"].to_list()[0] == "0.800 (92.3 %)"
    said_of = weight_sentence(learned, "tool", unused)
    assert "Description carries most: 92.3 % of the mean weight of the fields in use**" in said_of
    assert "In the folds 1 of the 6 weights of the fields in use is negative" in said_of
    assert used_shares((0.0, 0.0, 0.0, 0.0)) == (None,) * 4


def test_a_dash_for_a_share_is_explained() -> None:
    def found(*weights: float) -> Explanation:
        example = explained((0.5, 0.5, 0.5, 0.5), (0.5, 0.5, 0.5, 0.5))
        fields = (replace(match, weight=weight) for match, weight in zip(example.fields, weights, strict=True))
        return replace(example, fields=tuple(fields))

    one = found(0.6, -0.1, 0.2, -0.3)
    assert field_table(one)["Share"].to_list() == ["—"] * 4
    assert "since the weights of parameters and examples are negative" in share_sentence(one)
    unused = ["parameters", "examples"]
    assert field_table(one, unused)["Share"].to_list() == ["75.0 %", "—", "25.0 %", "—"]
    assert "— for parameters and examples, where nothing can match" in share_sentence(one, unused)
    assert "since the weight of response is negative" in share_sentence(found(0.6, 0.1, -0.2, 0.3), unused)
    assert share_sentence(found(0.6, 0.1, 0.2, 0.1)) == "Share: of the sum of the weights."
    assert share_sentence(found(0.0, 0.0, 0.0, 0.0)).endswith("since that sum is 0.")


def test_charts_and_their_words() -> None:
    changes = pl.DataFrame(
        {"name": ["a", "b", "c"], "old": [-0.2, 0.0, 0.01], "new": [-0.1, 0.0, 0.02], "tools": [3, 2, 1]}
    )
    assert most_changed(changes, 2)["name"].to_list() == ["a", "c"]
    for narrow in (False, True):
        figure = change_bars(changes, "NDCG@10", "MiniLM", Ground.DARK, narrow=narrow)
        assert [round(value, 6) for value in figure.data[0].x] == [-10.0, 0.0, 2.0]
        assert figure.data[1].text[0] == "−20.0 %"
    curves = pl.DataFrame(
        [(m, v, k, r) for m, r in (("Full-Doc", 0.4), ("MFTR", 0.5)) for v in ("old", "new") for k in (5, 100)],
        schema={"method": pl.String, "view": pl.String, "k": pl.Int64, "recall": pl.Float64},
        orient="row",
    )
    assert "finds **10.0 points more**" in recall_sentence(curves, "MFTR")
    drawn = recall_curves(curves, "MFTR", "MiniLM", Ground.LIGHT)
    assert len(drawn.data) == 4


def explained(scores: tuple[float, ...], scaled: tuple[float, ...], *parameters: ParameterMatch) -> Explanation:
    fields = tuple(
        FieldMatch(field, "asked", "said", score, weighed, 1 if score else None, 0.5, 0.25)
        for field, score, weighed in zip(Field, scores, scaled, strict=True)
    )
    return Explanation("q", "t", 0, fields, parameters, 0.0, 0.0, 0.1, 1.0, 1, 9)


def test_a_scaled_score_stands_beside_the_raw_one_and_is_explained() -> None:
    raw, weighed = (0.364, 0.2, 0.0, 0.0), (4.032, 1.0, 0.0, 0.0)
    found = explained(raw, weighed)
    table = field_table(found)
    assert table["Score"].to_list()[:2] == ["0.364", "0.200"] and table["Scaled"].to_list()[:2] == ["4.032", "1.000"]
    assert all(f"× {cell} (" in score_sentence(found) for cell in table["Scaled"])
    assert "z-score" in scaling_sentence(found, "tool")
    plain = explained(raw, raw)
    assert "Scaled" not in field_table(plain).columns and scaling_sentence(plain, "tool") == ""


def test_what_a_parameter_is_charged_is_what_the_words_say() -> None:
    at_threshold = ParameterMatch("city", True, "", 0.0, 0.5, 0.1)
    said = charge_sentence(explained((1.0,) * 4, (1.0,) * 4, at_threshold))
    assert "50 % where it is exactly τ = 0.00" in said and "sigmoid" in said
    free = charge_sentence(explained((1.0,) * 4, (1.0,) * 4, ParameterMatch("city", True, "", 0.0, 0.0, 0.0)))
    assert free == "Nothing is charged here."
