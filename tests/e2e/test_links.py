"""Links as a browser follows them: where they lead in another tab, and what one to a hidden run shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest

from tests.e2e.conftest import Served
from tests.e2e.pages import open_page, settle

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.slow, pytest.mark.browser]


def test_links_lead_to_their_page_and_hidden_runs_are_not_replaced(
    new_site: Callable[..., Served], browser: Browser
) -> None:
    served = new_site()
    with served.running():
        page = open_page(browser, f"{served.url}/retriever?retriever=tool-embed-4b")
        link = page.get_by_role("link", name="On the leaderboard")
        target = urlsplit(urljoin(page.url, link.get_attribute("href") or ""))
        assert target.path == "/" and "lb_benchmark" in parse_qs(target.query)
        link.click()
        settle(page)
        assert urlsplit(page.url).path == "/" and "lb_benchmark=" in page.url
        address = f"{served.url}/compare?cmp_benchmark=tooleq%40published&cmp_base=nothere"
        page = open_page(browser, address)
        notice = page.get_by_text(re.compile("this link names one that cannot be shown here"))
        notice.wait_for()
        assert page.locator("[data-testid=stDataFrame]").count() == 0
        assert "cmp_base=nothere" in page.url, "sent on, the address says the same"
        # Another width runs the page again.
        page.set_viewport_size({"width": 500, "height": 900})
        settle(page)
        assert notice.count() == 1
        page.get_by_role("combobox", name=re.compile("First run")).click()
        page.get_by_role("option").nth(3).click()
        settle(page)
        page.locator("[data-testid=stDataFrame]").first.wait_for()
        assert notice.count() == 0
        assert "cmp_base=nothere" not in page.url
        page = open_page(browser, f"{served.url}/?lb_metric=zzz&lb_k=7")
        assert page.get_by_text(re.compile("which is not offered here")).count() == 2
        page.set_viewport_size({"width": 500, "height": 900})
        settle(page)
        assert page.get_by_text(re.compile("which is not offered here")).count() == 2
