"""Pages of a benchmark of skills speak of skills."""

from __future__ import annotations

import re
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.components import annotation_words
from dashboard.components.kind_words import counted
from dashboard.components.query_list import MISSED
from pipeline.jobs import statistics
from pipeline.jobs.first_start import demo_run
from pipeline.jobs.site import Site
from pipeline.jobs.submission import SubmissionMetadata, check_run, submit_run
from tests.dashboard.dashboard_app import open_page

SKILLS = "demo-skills@1"


def words_of(page: AppTest) -> str:
    """What a page says, without the cells of its tables: they hold names, ids and reasons."""
    said = [
        block.value
        for blocks in (page.title, page.subheader, page.markdown, page.caption, page.text, page.info)
        for block in blocks
    ]
    labels = [
        widget.label
        for widgets in (page.expander, page.selectbox, page.multiselect, page.button, page.text_input)
        for widget in widgets
    ]
    heads = [f"{list(table.value.columns)} {table.proto.columns} {table.proto.alt}" for table in page.dataframe]
    return "\n".join([*said, *labels, *heads])


@pytest.fixture
def skill_runs(site: Site) -> list[str]:
    """Two runs of the demo skills with their statistics."""
    source = demo_run("skills")
    checked = check_run(site, source, "demo-skills")
    made = [submit_run(site, checked, source, SubmissionMetadata(retriever=name), publish=True) for name in "AB"]
    statistics.compute(site, statistics.pending(site), lambda line: None)
    return made


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("queries", {"q_benchmark": SKILLS, "q_show": MISSED}),
        ("queries", {"q_benchmark": SKILLS, "q_query": "skill-q51"}),
        ("queries", {"q_benchmark": SKILLS, "q_query": "skill-q08"}),
        ("equivalent_ranks", {"er_benchmark": SKILLS}),
        ("old_vs_new", {"ovn_benchmark": SKILLS}),
        ("annotate", {"an_view": "Grow", "an_of": SKILLS, "gro_look": "true"}),
        ("run", {}),
    ],
)
def test_a_benchmark_of_skills_is_told_of_as_skills(
    app: AppTest, skill_runs: list[str], name: str, query: dict[str, Any]
) -> None:
    runs = {"queries": {"q_run": skill_runs}, "run": {"run": skill_runs[0]}}.get(name, {})
    page = open_page(app, name, **query, **runs)
    assert not page.exception
    text = words_of(page)
    # The column of a run file that names what was retrieved is the tool id, whatever the kind.
    found = [line for line in text.splitlines() if re.search(r"\btools?\b(?! id)", line, re.IGNORECASE)]
    assert not found
    assert re.search(r"\bskills?\b", text, re.IGNORECASE)


def test_a_number_of_them() -> None:
    assert [counted(n, "valid skill") for n in (0, 1, 2)] == ["0 valid skills", "1 valid skill", "2 valid skills"]


def test_rules_and_figures_of_an_expansion_have_a_place_for_the_kind() -> None:
    said = [does for _, does in annotation_words.STAGES.values()]
    said += [*annotation_words.VERIFY_RULES.values(), *annotation_words.AUDIT_RULES.values()]
    said += [*annotation_words.REPEATED_RULES.values(), *annotation_words.LABEL_FIGURES.values()]
    assert not [words for words in said if "tool" in words.format(kind="skill").lower()]
