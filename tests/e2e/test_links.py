"""Links as a browser follows them: where they lead in another tab, and what one to a hidden run shows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Board
from tests.e2e.pages import open_page, settle

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.slow, pytest.mark.browser]


def test_links_lead_to_their_page_and_hidden_runs_are_not_replaced(board: Board, browser: Browser) -> None:
    page = open_page(browser, f"{board.url}/retriever?retriever=tool-embed-4b")
    link = page.get_by_role("link", name="On the leaderboard")
    target = urlsplit(urljoin(page.url, link.get_attribute("href") or ""))
    assert target.path == "/" and "lb_benchmark" in parse_qs(target.query)
    link.click()
    page.wait_for_url(lambda url: urlsplit(url).path == "/" and "lb_benchmark=" in url)
    page.goto(f"{board.url}/compare?cmp_benchmark=tooleq%40published&cmp_base=nothere")
    settle(page)
    notice = page.get_by_text(re.compile("this link names one that cannot be shown here"))
    tables = page.get_by_test_id("stDataFrame")
    expect(notice).to_have_count(1)
    expect(tables).to_have_count(0)
    assert "cmp_base=nothere" in page.url, "sent on, the address says the same"
    # Another width runs the page again.
    page.set_viewport_size({"width": 500, "height": 900})
    settle(page)
    expect(notice).to_have_count(1)
    page.get_by_role("combobox", name=re.compile("First run")).click()
    page.get_by_role("option").nth(3).click()
    tables.first.wait_for()
    expect(notice).to_have_count(0)
    page.wait_for_url(lambda url: "cmp_base=nothere" not in url)
    page.goto(f"{board.url}/?lb_metric=zzz&lb_k=7")
    settle(page)
    said = page.get_by_text(re.compile("which is not offered here"))
    expect(said).to_have_count(2)
    page.set_viewport_size({"width": 1280, "height": 900})
    settle(page)
    expect(said).to_have_count(2)
    page.context.close()
