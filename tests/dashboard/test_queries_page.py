"""The page of queries: where it starts, what it calls runs, and that long names leave the figures in sight."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.charts.layout import shortened
from dashboard.components.benchmark_choice import first_with_queries
from dashboard.components.open_query import OpenQuery, column_heads
from dashboard.components.query_deciders import deciders
from dashboard.components.query_list import Order, column_widths
from dashboard.query_reading import ReadRun, content, offered_runs
from pipeline.formats.paired_table import run_names
from pipeline.jobs.site import Site
from store.access import benchmarks
from tests.dashboard.dashboard_app import open_page

DEMO = "demo-tools@1"
LONG = "A retriever with a very long name that goes on and on, fine-tuned on everything"


def test_it_starts_at_a_tool_benchmark_with_queries(app: AppTest, site: Site) -> None:
    with site.database.reading() as session:
        records = benchmarks.list_records(session)
    assert first_with_queries(records).startswith("demo-tools@")
    for page, key in (("queries", "q_benchmark"), ("equivalent_ranks", "er_benchmark")):
        opened = open_page(app, page)
        assert opened.selectbox(key=key).value.startswith("demo-tools@")


def test_names_say_the_level_once() -> None:
    base = {"retriever": "R", "contract": "", "place": "", "provenance": "uploaded"}
    rows = [
        base | {"run_id": "a", "method": "full-doc", "level": "query"},
        base | {"run_id": "b", "method": "sub-query", "level": "sub-query"},
        base | {"run_id": "c", "retriever": "S", "method": "full-doc", "level": "sub-query"},
        base | {"run_id": "d", "retriever": "T", "method": "full-doc", "level": "query"},
        base | {"run_id": "e", "retriever": "T", "method": "full-doc", "level": "query"},
    ]
    names = run_names(pl.DataFrame(rows))
    assert names[:3] == ["R · Full-Doc", "R · Sub-query", "S · sub-query"]
    assert len(set(names)) == 5 and names[4].endswith("(e)")


def test_a_long_name_is_above_the_list_and_in_no_head(app: AppTest, submitted: Callable[..., str]) -> None:
    first, second = submitted(LONG), submitted("Short")
    opened = open_page(app, "queries", q_benchmark=DEMO, q_run=[first, second], q_sort=str(Order.DISAGREEMENT))
    table = opened.dataframe[0].value
    assert list(table.columns)[-5:] == ["Old", "New", "Lift", "Second, new", "Difference"]
    said = " ".join(block.value for block in opened.markdown)
    assert "Difference: second minus first" in said and "A retriever with a very long name" in said
    one = open_page(app, "queries", q_benchmark=DEMO, q_run=[first, second], q_query="ev-006")
    heads = [column for frame in one.dataframe for column in frame.value.columns]
    assert not any(LONG in head for head in heads)


def test_the_columns_fit_a_window_of_1280_pixels() -> None:
    columns = [
        "Query",
        "Domain",
        "Tools",
        "Combinations",
        "Equivalents",
        "Old",
        "New",
        "Lift",
        "Second, new",
        "Difference",
    ]
    widths = column_widths(columns, narrow=False)
    assert sum(widths.values()) <= 1000 and widths["Query"] >= 250
    assert sum(column_widths(["Query", "Old", "New"], narrow=True).values()) <= 320


def test_heads_of_names_that_begin_alike_differ_and_are_short() -> None:
    heads = column_heads([ReadRun(name[-1], name, "", "", "") for name in (f"{LONG} 1", f"{LONG} 2")])
    assert len(set(heads.values())) == 2 and all(len(head) <= 24 for head in heads.values())
    assert list(column_heads([ReadRun("a", "BM25", "", "", "")]).values()) == ["BM25"]


def test_what_did_not_pass_is_folded(app: AppTest, site: Site, submitted: Callable[..., str]) -> None:
    page = open_page(app, "queries", q_benchmark=DEMO, q_run=submitted(), q_query="ev-034")
    with site.database.reading() as session:
        version = content(benchmarks.get(session, "demo-tools"))
    judged = version.benchmark.equivalents.filter(query_id="ev-034", position=0)
    combinations = version.benchmark.combinations.filter(query_id="ev-034")
    folded = {box.label: box for box in page.expander}
    invalid, failed = judged.filter(pl.col("verdict") != "valid"), combinations.filter(pl.col("verdict") != "valid")
    below = folded[f"Judged and not valid: {invalid.height}"].dataframe[0].value
    assert len(below) == invalid.height > 0 and "valid" not in set(below["Verdict"])
    refused = folded[f"{failed.height} did not pass"].dataframe[0].value
    assert len(refused) == failed.height > 0 and "valid" not in set(refused["Verdict"])
    tables = [table.value for table in page.dataframe if "Verdict" in table.value.columns]
    passed = [table for table in tables if set(table["Verdict"]) == {"valid"}]
    assert [len(table) for table in passed] == [judged.height - invalid.height, combinations.height - failed.height]
    assert len(page.selectbox(key="q_tool").options) == judged.height - 1, "every candidate can still be compared"
    # The label first, then as the run ranks them.
    valid = passed[0]
    assert list(valid["Decided by"]).index("the label") == 0
    ranks = [int(text) if text != "—" else 10**6 for text in valid.iloc[1:, 2]]
    assert len(ranks) > 1 and ranks == sorted(ranks)


def test_labels_are_read_without_a_page_and_without_a_warning(
    site: Site, submitted: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    run_id = submitted("Sample")
    with site.database.reading() as session:
        record = benchmarks.get(session, "demo-tools")
    with caplog.at_level(logging.WARNING):
        assert content(record).queries.height == record.queries
        assert run_id in offered_runs(record, [run_id], None)
    assert "ScriptRunContext" not in caplog.text


@pytest.mark.parametrize(
    ("rows", "who"),
    [
        ([("ground_truth", "A")], ""),
        ([("ground_truth", "A"), ("judged", "openai/x")], "judges"),
        ([("rule", "identical api_call"), ("rule", "identical api_call")], "a rule (identical api\\_call)"),
        ([("rule", None)], "a rule"),
        ([("rule", "a"), ("rule", "b"), ("rule", "c")], "rules"),
        ([("human", "B"), ("judged", "A"), ("judged", "A"), ("executed", None)], "judges, people and test calls"),
    ],
)
def test_who_decided_is_said_from_the_origins(rows: list[tuple[str, str | None]], who: str) -> None:
    assert deciders(pl.DataFrame(rows, schema={"origin": pl.String, "judge": pl.String}, orient="row")) == who


def test_pages_say_who_decided(app: AppTest, submitted: Callable[..., str]) -> None:
    run = submitted("Sample")
    ranks = open_page(app, "equivalent_ranks", er_benchmark=DEMO, er_run=run)
    assert "found valid for a need of the query by judges and people." in "\n".join(c.value for c in ranks.caption)
    one = open_page(app, "queries", q_benchmark=DEMO, q_run=run, q_query="ev-006")
    assert "What is an equivalent was decided by judges" in "\n".join(c.value for c in one.caption)


def test_names_in_a_narrow_column_stay_apart() -> None:
    begin = "imagenet_mobilenet_v2_100_224_feature_"
    names = {"1": f"{begin}vector", "2": f"{begin}extractor", "3": f"{begin}twin (gorilla-00017)"}
    names |= {"4": f"{begin}twin (gorilla-00117)", "5": "short"}
    card: Any = None
    query = OpenQuery(card, "tool", (), names, {}, {})
    short = query.short_names(list(names), 30)
    assert len(set(short)) == 5 and short[4] == "short"
    assert query.short_names(["1", "1"], 30)[0] == query.short_names(["1", "1"], 30)[1] == shortened(names["1"], 30)
