"""Reading the board in a real browser: addresses, the way back, narrow windows, and what the policy forbids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Board
from tests.e2e.pages import cells, click_table, new_tab, open_page, settle

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def names(page: Page) -> list[str]:
    """Retrievers in the table's order; the first columns are the rank and its change."""
    return [row[2] for row in cells(page)]


def test_choices_go_into_the_address_and_back(browser: Browser, board: Board) -> None:
    page = open_page(browser, board.url)
    everything = names(page)
    assert "lb_benchmark=tooleq%40published" in page.url
    page.get_by_text("Recall", exact=True).click()
    page.wait_for_url(lambda url: "lb_metric=Recall" in url)
    settle(page)
    by_recall = cells(page)
    other = open_page(browser, page.url)
    assert cells(other) == by_recall
    other.context.close()
    page.go_back()
    page.wait_for_url(lambda url: "lb_metric" not in url)
    settle(page)
    assert names(page) == everything
    page.context.close()


def test_a_filter_in_the_address_can_be_undone(browser: Browser, board: Board) -> None:
    page = open_page(browser, f"{board.url}/?lb_benchmark=tooleq%40published&lb_family=Qwen3")
    assert len(names(page)) == 6
    assert all(name.startswith("Qwen3") for name in names(page))
    page.get_by_role("button", name="Show all rows").click()
    page.wait_for_url(lambda url: "lb_family" not in url)
    settle(page)
    assert len(names(page)) > 6
    page.context.close()


def test_rows_show_at_once_on_a_phone(browser: Browser, board: Board) -> None:
    # Not the first benchmark: its description shortens when the window is found to be narrow, the choice must stay.
    page = open_page(browser, f"{board.url}/?lb_benchmark=skilleq%40published", width=390, height=844)
    page.get_by_role("button", name="View and filter").wait_for()
    settle(page)
    table = page.locator("[data-testid=stDataFrame]").first.bounding_box()
    assert table is not None
    assert table["y"] < 844 / 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="View and filter").click()
    page.get_by_text("Recall", exact=True).click()
    page.wait_for_url(lambda url: "lb_metric=Recall" in url)
    settle(page)
    assert "lb_benchmark=skilleq%40published" in page.url
    page.context.close()


@pytest.mark.parametrize("path", ["", "evaluate", "jobs", "my-runs", "submit"])
def test_pages_fit_the_window_however_wide_it_is(browser: Browser, board: Board, path: str) -> None:
    page = new_tab(browser, width=390, height=844)
    page.goto(f"{board.url}/{path}")
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        settle(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.context.close()


def test_a_row_opens_its_details_under_the_table(browser: Browser, board: Board) -> None:
    page = open_page(browser, board.url, height=1400)
    # The first column holds the check boxes, the second row of pixels the first retriever.
    click_table(page, x=17, y=53)
    page.wait_for_url(lambda url: "run=" in url)
    settle(page)
    heading = page.get_by_role("heading", name="Tool-Embed-4B")
    heading.wait_for()
    other = open_page(browser, page.url, height=1400)
    expect(other.get_by_role("heading", name="Tool-Embed-4B")).to_have_count(1)
    other.context.close()
    click_table(page, x=17, y=53)
    page.wait_for_url(lambda url: "run=" not in url)
    expect(heading).to_have_count(0)
    page.context.close()


def test_a_private_run_is_read_through_its_link_only(browser: Browser, board: Board) -> None:
    page = open_page(browser, f"{board.url}/submit?submit_benchmark=demo-tools%401")
    page.get_by_role("button", name="Score the sample run").click()
    page.get_by_role("button", name="Keep private").click()
    page.get_by_text("is kept private").wait_for()
    link = page.locator("[data-testid=stCode]").inner_text().strip()
    assert "token=" in link
    opened = open_page(browser, link)
    expect(opened.get_by_text("This run is private")).to_have_count(1)
    opened.goto(link.split("&token=")[0])
    expect(opened.get_by_text("that you may see")).to_have_count(1)
    # Nothing but the fixture's four runs is published here.
    opened.goto(f"{board.url}/?lb_benchmark=demo-tools%401")
    settle(opened)
    assert len(cells(opened)) == 4
    page.context.close()
    opened.context.close()
