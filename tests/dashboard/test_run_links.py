"""From a run's page to the pages that explain it, with the run chosen there; a private run's links carry its token."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from pipeline.jobs.site import Site
from store.access import runs
from store.models import Visibility
from tests.dashboard.dashboard_app import open_page

DEMO = "demo-tools@1"


def linked(app: AppTest) -> dict[str, dict[str, list[str]]]:
    """Label of every page link → its query parameters."""
    return {link.proto.label: parse_qs(link.proto.query_string) for link in app.get("page_link")}


def test_a_private_runs_pages_open_for_whoever_has_its_link_and_for_nobody_else(
    site: Site, app: AppTest, submitted: Callable[..., str]
) -> None:
    submitted("Other")
    run_id = submitted("Mine", publish=False)
    with site.database.reading() as session:
        token = runs.get(session, run_id).private_token or ""
    found = linked(open_page(app, "run", run=run_id, token=token))
    assert "Compare it" not in found
    assert any("come with publishing it" in str(said.value) for said in app.caption)
    for label, page, key in (
        ("Equivalent ranks", "equivalent_ranks", "er_run"),
        ("Most-changed queries", "queries", "q_run"),
    ):
        query = {name: values[0] for name, values in found[label].items()}
        assert query[key] == run_id and query["token"] == token
        opened = open_page(app, page, **query)
        assert not opened.warning
        assert [box.value for box in opened.multiselect if box.key.startswith(key)] == [[run_id]]
        del query["token"]
        guessed = open_page(AppTest.from_file(app._script_path, default_timeout=60), page, **query)
        assert [str(said.value) for said in guessed.warning if "cannot be shown" in str(said.value)]
        assert [box.value for box in guessed.multiselect if box.key.startswith(key)] == [[]]
        assert "Mine" not in str([box.options for box in guessed.multiselect])


def test_after_publishing_the_links_choose_this_run_and_the_comparison_opens(
    site: Site, app: AppTest, submitted: Callable[..., str]
) -> None:
    others = [submitted(f"Other {n}") for n in range(3)]
    run_id = submitted("Mine", publish=False)
    with site.database.session() as session:
        runs.publish(session, run_id, visibility=Visibility.PUBLIC)
    found = linked(open_page(app, "run", run=run_id))
    assert found["Compare it"]["cmp_tuned"] == [run_id]
    assert found["Compare it"]["cmp_base"][0] in others
    ranks = open_page(
        app, "equivalent_ranks", **{name: values[0] for name, values in found["Equivalent ranks"].items()}
    )
    assert [box.value for box in ranks.multiselect if box.key.startswith("er_run")] == [[run_id]]


@pytest.mark.parametrize("publish", [True, False])
def test_a_run_that_is_alone_offers_no_comparison(
    site: Site, app: AppTest, submitted: Callable[..., str], publish: bool
) -> None:
    run_id = submitted("Alone", publish=publish)
    with site.database.reading() as session:
        token = runs.get(session, run_id).private_token or ""
    assert "Compare it" not in linked(open_page(app, "run", run=run_id, token=token))


@pytest.mark.parametrize(
    ("page", "query"),
    [
        ("compare", {"cmp_benchmark": DEMO, "cmp_base": "HIDDEN"}),
        ("illusion", {"ill_benchmark": DEMO, "ill_runs": "any two runs", "ill_tuned": "HIDDEN"}),
    ],
)
def test_a_link_to_a_hidden_run_says_so_where_there_is_nothing_to_choose_from(
    app: AppTest, submitted: Callable[..., str], page: str, query: dict[str, str]
) -> None:
    submitted("Alone")
    hidden = submitted("Mine", publish=False)
    opened = open_page(app, page, **{name: hidden if word == "HIDDEN" else word for name, word in query.items()})
    assert [str(said.value) for said in opened.warning if "cannot be shown here" in str(said.value)]


@pytest.mark.parametrize("number", ["999", "x"])
def test_a_page_of_a_list_that_there_is_not_is_not_replaced_without_a_word(
    app: AppTest, submitted: Callable[..., str], number: str
) -> None:
    submitted()
    opened = open_page(app, "queries", q_benchmark=DEMO, q_page=number)
    assert [str(said.value) for said in opened.warning] and opened.warning[0].value.startswith("Page: this link says")
    fine = open_page(AppTest.from_file(app._script_path, default_timeout=60), "queries", q_benchmark=DEMO, q_page="2")
    assert not fine.warning
