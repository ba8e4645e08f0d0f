"""Benchmark cards: opened from the table, what is spread how, and what moved between versions."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from streamlit.testing.v1 import AppTest

from pipeline.jobs import statistics
from pipeline.jobs.benchmark_library import load_benchmark
from pipeline.jobs.benchmark_spread import DISTRIBUTIONS_NAME
from pipeline.jobs.first_start import demo_run
from pipeline.jobs.site import Site
from pipeline.jobs.submission import SubmissionMetadata, check_run, submit_run
from pipeline.retrieval.document_tokens import count_tokens
from store.access import benchmarks
from store.models import BenchmarkVersion
from tests.dashboard.conftest import second_version
from tests.dashboard.dashboard_app import open_page
from tests.dashboard.test_other_pages import said, sound


def table(app: AppTest, *columns: str) -> pl.DataFrame:
    """The first table with these columns."""
    found = [frame.value for frame in app.dataframe if set(columns) <= set(frame.value.columns)]
    assert found, f"no table has the columns {columns}"
    return pl.from_pandas(found[0])


def number(text: str) -> int:
    return int(text.replace("\N{NARROW NO-BREAK SPACE}", ""))


def test_a_chosen_row_opens_its_card(site: Site, app: AppTest) -> None:
    sound(open_page(app, "benchmarks"))
    assert app.subheader[0].value == "ToolEq"
    names = table(app, "Benchmark", "Title")["Benchmark"].to_list()
    app.session_state["bm_table"] = {
        "selection": {"rows": [], "columns": [], "cells": [(names.index("demo-skills@1"), "Title")]}
    }
    sound(app.run())
    assert app.subheader[0].value == "Demo skills"
    assert app.query_params["bm_benchmark"] in ("demo-skills@1", ["demo-skills@1"])
    # The box still opens another card, although the cell stays chosen.
    app.selectbox(key="bm_benchmark").set_value("demo-tools@1").run()
    assert sound(app).subheader[0].value == "Demo tools"


def test_distributions_are_those_of_the_stored_labels(site: Site, app: AppTest) -> None:
    sound(open_page(app, "benchmarks", bm_benchmark="demo-tools@1"))
    with site.database.reading() as session:
        content = load_benchmark(site, benchmarks.get(session, "demo-tools@1").id)
    valid = content.combinations.filter(pl.col("verdict") == "valid")
    sets = {(q, frozenset(tools)) for q, tools in valid.select("query_id", "tool_ids").iter_rows()}
    sets |= {(q, frozenset(tools)) for q, tools in content.ground_truth.select("query_id", "tool_ids").iter_rows()}
    sizes = Counter(Counter(query for query, _ in sets).values())
    shown = {row[0]: number(row[1]) for row in table(app, "valid combinations of a query").iter_rows()}
    assert sum(shown.values()) == content.queries.height
    assert {str(size): n for size, n in sizes.items() if size <= 5}.items() <= shown.items()
    lengths = sorted(count_tokens(content.tools["documentation"].to_list()).tolist())
    row = table(app, "median", "blank").filter(pl.col("Benchmark") == "demo-tools@1").row(0, named=True)
    assert number(row["documents"]) == len(lengths)
    assert number(row["median"]) == lengths[(len(lengths) - 1) // 2]
    assert number(row["longest"]) == lengths[-1]
    assert any("times as long" in text.value for text in app.markdown)


def test_tools_stand_beside_skills(site: Site, app: AppTest) -> None:
    for name, other in (("demo-tools@1", "demo-skills@1"), ("demo-skills@1", "demo-tools@1")):
        sound(open_page(app, "benchmarks", bm_benchmark=name))
        assert app.selectbox(key="bm_beside").value == other
        assert table(app, "median", "blank")["Benchmark"].to_list() == ["demo-tools@1", "demo-skills@1"]


def test_a_card_says_that_a_job_is_still_counting(site: Site, app: AppTest) -> None:
    with site.database.session() as session:
        row = session.get(BenchmarkVersion, benchmarks.get(session, "demo-tools@1").id)
        assert row is not None
        row.artifacts = {name: digest for name, digest in row.artifacts.items() if name != DISTRIBUTIONS_NAME}
    sound(open_page(app, "benchmarks", bm_benchmark="demo-tools@1"))
    assert "A worker counts the distributions" in said(app)
    work = statistics.pending(site)
    assert len(work.benchmarks) == 1
    assert statistics.compute(site, work, lambda line: None) == []
    assert not statistics.pending(site)
    with site.database.reading() as session:
        assert DISTRIBUTIONS_NAME in benchmarks.get(session, "demo-tools@1").artifacts


def test_printed_benchmarks_have_no_charts(site: Site, app: AppTest) -> None:
    sound(open_page(app, "benchmarks", bm_benchmark="tooleq@published"))
    assert [element.value for element in app.subheader] == ["ToolEq", "How labels and documents are spread", "Cite"]


@pytest.fixture
def both(site: Site) -> tuple[Site, dict[str, str]]:
    """A site with two versions of the demo tools and one run scored on both."""
    source = demo_run("tools")
    ids = {}
    for version in ("demo-tools@1", second_version(site)):
        checked = check_run(site, source, version)
        ids[version] = submit_run(site, checked, source, SubmissionMetadata(retriever="Both"), publish=True)
    return site, ids


def test_what_moved_between_two_versions(both: tuple[Site, dict[str, str]], app: AppTest) -> None:
    site, ids = both
    sound(open_page(app, "benchmarks", bm_benchmark="demo-tools@2"))
    with site.database.reading() as session:
        first, second = (benchmarks.get(session, name) for name in ids)
    rows = {row["What"]: row for row in table(app, "What", "removed").iter_rows(named=True)}
    assert number(rows["equivalents"]["removed"]) == first.equivalents - second.equivalents > 0
    assert number(rows["combinations"]["removed"]) == first.combinations - second.combinations > 0
    assert [rows[part]["changed"] for part in ("queries", "tools", "ground truth")] == ["0", "0", "0"]
    assert table(app, "Version", "Made from")["Version"].to_list() == ["demo-tools@2", "demo-tools@1"]
    moved = table(app, "Retriever", "Rank", "Ranking").row(0, named=True)
    assert (moved["Retriever"], moved["Rank"], moved["Ranking"]) == ("Both", "1 / 1", "the same")
    before, after = (float(text) for text in moved["New"].split(" / "))
    assert after < before
    old = moved["Old"].split(" / ")
    assert old[0] == old[1], "the one label is the same in both"
    changed = table(app, "Query", "What", "Open")
    assert changed["Open"][0].startswith("/queries?q_benchmark=demo-tools%402&q_query=")


def test_an_unscored_version_says_what_to_do(site: Site, app: AppTest) -> None:
    second_version(site)
    sound(open_page(app, "benchmarks", bm_benchmark="demo-tools@2"))
    assert "No retriever is scored on both versions" in said(app)


def test_reported_statistics_keep_the_digits_they_were_printed_with(site: Site, app: AppTest) -> None:
    open_page(app, "benchmarks", bm_benchmark="tooleq@published")
    sound(app)
    tables = [frame.value for frame in app.dataframe if "Statistic" in frame.value.columns]
    shown = dict(zip(tables[0]["Statistic"], tables[0]["all"], strict=True))
    assert shown["Verified items a sub-query"] == "4.2"
    assert shown["Valid combinations a query"] == "5.3"


def test_a_card_without_content_says_that_nothing_can_be_counted_and_where_it_can(site: Site, app: AppTest) -> None:
    opened = open_page(app, "benchmarks", bm_benchmark="tooleq@published")
    assert any("documentation length cannot be counted" in str(said.value) for said in opened.markdown)
    with site.database.reading() as session:
        counted = {
            b.name for b in benchmarks.list_records(session) if b.has_content and DISTRIBUTIONS_NAME in b.artifacts
        }
    links = {link.proto.query_string.split("=")[1].replace("%40", "@") for link in opened.get("page_link")
             if link.proto.query_string.startswith("bm_benchmark")}  # fmt: skip
    assert links == counted
    demo = open_page(app, "benchmarks", bm_benchmark="demo-tools@1")
    assert not any("cannot be counted" in str(said.value) for said in demo.markdown)
