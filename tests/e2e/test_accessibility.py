"""Every page in both themes: nothing for axe to find, no complaint of the browser, nothing asked of another host.

And the way from the board to a run without a mouse.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import REPOSITORY, Board, free_port
from tests.e2e.pages import Scheme, new_tab, open_page, settle

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

#: Addresses that show each page with data; ``{run}`` is a run of the demo benchmark.
VIEWS: dict[str, tuple[str, ...]] = {
    "": ("lb_benchmark=demo-tools%401&run={run}", "lb_benchmark=tooleq%40published", "lb_layout=methods"),
    "old-vs-new": ("ovn_benchmark=demo-tools%401", "ovn_benchmark=tooleq%40published"),
    "illusion": ("ill_benchmark=demo-tools%401&ill_runs=Two+runs", "ill_benchmark=tooleq%40published"),
    "compare": ("cmp_benchmark=demo-tools%401",),
    "score-and-cost": ("cost_benchmark=tooleq%40published",),
    "equivalent-ranks": ("er_benchmark=demo-tools%401", "er_benchmark=tooleq%40published"),
    "queries": ("q_benchmark=demo-tools%401", "q_benchmark=demo-tools%401&q_query=ev-001"),
    "mftr-lab": (
        "lab_benchmark=demo-tools%401",
        "lab_benchmark=demo-tools%401&lab_view=all+queries",
        "lab_benchmark=demo-skills%401",
    ),
    "submit": ("submit_benchmark=demo-tools%401",),
    "evaluate": ("ev_benchmark=demo-tools%401", "ev_benchmark=demo-tools%401&ev_method=mftr&ev_documents=llm"),
    "my-runs": ("",),
    "jobs": ("",),
    "benchmarks": ("bm_benchmark=demo-tools%401",),
    "annotate": ("an_benchmark=demo-skills%401", "an_view=Validate&an_of=demo-tools%401"),
    "about": ("",),
    "review": ("token=no-such-link",),
    "run": ("run={run}", "run=no-such-run"),
    "retriever": ("retriever=bm25-sample", "retriever=tool-embed-4b", "retriever=no-such-retriever"),
}


#: What can differ between the themes; everything else is found under the light one.
RULES_OF_COLOUR = ["color-contrast", "link-in-text-block"]


#: The ground of the page, by theme.
GROUNDS: dict[Scheme, str] = {"light": "rgb(255, 255, 255)", "dark": "rgb(15, 18, 23)"}


@dataclass(frozen=True)
class Tab:
    """A tab, what its console said and which addresses it asked for."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def complaints(self) -> list[str]:
        """What the browser finds wrong with a page."""
        return [text for text in self.said if "Content Security Policy" in text or "Error" in text]


@pytest.fixture(scope="module")
def tabs(browser: Browser) -> Generator[dict[Scheme, Tab]]:
    """One tab a theme for all addresses: the scripts of the pages are loaded and compiled once."""
    opened: dict[Scheme, Tab] = {"light": Tab(new_tab(browser)), "dark": Tab(new_tab(browser, scheme="dark"))}
    for tab in opened.values():
        tab.page.on("console", lambda message, said=tab.said: said.append(message.text))
        tab.page.on("pageerror", lambda error, said=tab.said: said.append(f"Error: {error}"))
        tab.page.on("request", lambda request, asked=tab.asked: asked.append(request.url))
    yield opened
    for tab in opened.values():
        tab.page.context.close()


def scan(page: Page, rules: list[str] | None = None) -> list[dict[str, Any]]:
    """What axe finds at serious or critical impact, one record a node; by all rules, or by those named."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules is not None:
        options["runOnly"] = {"type": "rule", "values": rules}
    found = axe.run(page, options=options).response["violations"]
    return [
        {"rule": finding["id"], "target": " ".join(map(str, node["target"])), "html": node["html"][:300],
         "why": node["failureSummary"]}
        for finding in found if finding["impact"] in ("serious", "critical") for node in finding["nodes"]
    ]  # fmt: skip


def lasting_findings(page: Page, rules: list[str] | None = None) -> list[dict[str, Any]]:
    """Findings that are ours and stay: what was just drawn fades in for a moment."""
    found: list[dict[str, Any]] = []
    for _ in range(4):
        found = [
            finding
            for finding in scan(page, rules)
            if not any(finding["rule"] == rule and words in finding["why"] for rule, words in STREAMLITS_OWN)
        ]
        if not found:
            break
        page.wait_for_timeout(1000)
        settle(page)
    return found


#: What Streamlit's own elements cause and this site cannot change: (rule, words of axe's reason).
#: Streamlit writes white on whatever is filled with the primary colour, and that colour on a tint of itself. No colour
#: can be read in both places on a dark ground (tests/dashboard/test_theme.py), and there is no option for the white
#: (https://github.com/streamlit/streamlit/issues/12801). A test below shows the finding on a plain Streamlit page.
WHITE_ON_PRIMARY = ("color-contrast", "foreground color: #ffffff, background color: #4386ea")
STREAMLITS_OWN: tuple[tuple[str, str], ...] = (WHITE_ON_PRIMARY,)


def test_every_page_is_scanned() -> None:
    declared = (REPOSITORY / "dashboard" / "app.py").read_text()
    scripts = re.findall(r"st\.Page\(([^)]*)\)", declared)
    paths = {match[1] if (match := re.search(r'url_path="([^"]+)"', words)) else "" for words in scripts}
    assert len(scripts) == len(paths)
    assert paths == set(VIEWS)


@pytest.mark.parametrize("path", VIEWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_sound(tabs: dict[Scheme, Tab], board: Board, path: str, scheme: Scheme) -> None:
    tab = tabs[scheme]
    page = tab.page
    for query in VIEWS[path]:
        tab.said.clear()
        tab.asked.clear()
        page.goto(f"{board.url}/{path}?{query.format(run=board.run)}")
        settle(page)
        assert page.title().strip()
        assert page.evaluate("document.documentElement.lang") == "en"
        expect(page.get_by_test_id("stApp")).to_have_css("background-color", GROUNDS[scheme])
        # A page has one title, and its headings start with it.
        expect(page.locator("[data-testid=stMain] h1")).to_have_count(1)
        expect(page.locator("[data-testid=stMain] :is(h1, h2, h3, h4, h5, h6)").first).to_have_js_property(
            "tagName", "H1"
        )
        expect(page.get_by_test_id("stException")).to_have_count(0)
        assert not tab.complaints()
        local = (board.url, "data:", "blob:", board.url.replace("http://", "ws://"))
        assert [url for url in tab.asked if not url.startswith(local)] == []
        found = lasting_findings(page, RULES_OF_COLOUR if scheme == "dark" else None)
        assert not found, json.dumps(found, indent=1)


def test_the_scan_sees_what_is_wrong(browser: Browser) -> None:
    page = browser.new_context().new_page()
    page.set_content('<html lang="en"><title>t</title><main><img src="x.png"><p style="color:#aaa">pale</p></main>')
    assert {finding["rule"] for finding in scan(page)} == {"image-alt", "color-contrast"}
    page.context.close()


def test_what_is_excused_is_streamlits_own(browser: Browser, tmp_path: Path) -> None:
    """A page with nothing of ours but the dark theme: its main button gets the same finding, its segments none."""
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit" / "config.toml").write_text(
        (REPOSITORY / "dashboard" / ".streamlit" / "config.toml").read_text()
    )
    script = tmp_path / "plain.py"
    script.write_text(
        "import streamlit as st\n"
        "st.title('Plain')\n"
        "st.button('Start', type='primary')\n"
        "st.multiselect('Several', ['first', 'second'], default=['first'])\n"
        "st.segmented_control('One', ['first', 'second'], default='first')\n"
    )
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(port), "--server.address",
         "127.0.0.1"],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and server.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.2)
        page = browser.new_context(color_scheme="dark", viewport={"width": 1280, "height": 800}).new_page()
        page.goto(f"http://127.0.0.1:{port}")
        page.get_by_role("radio", name="second").wait_for()
        page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
        found = [finding for finding in scan(page) if finding["rule"] == WHITE_ON_PRIMARY[0]]
        page.context.close()
    finally:
        server.terminate()
        server.wait(timeout=20)
    assert len(found) == 2, json.dumps(found, indent=1)
    assert all(WHITE_ON_PRIMARY[1] in finding["why"] for finding in found), json.dumps(found, indent=1)


FOCUSED = """() => {
  const at = document.activeElement;
  const name = at.getAttribute('aria-label') || at.innerText || '';
  return [at.tagName, name.split('\\n'), at.closest('[role=grid], canvas') !== null];
}"""


def tab_to(page: Page, name: str | None) -> None:
    """Press Tab until something of this name has the focus, or a table where there is no name.

    Tab walks to the right through the cells of a table's row and then leaves the table. The content of a popover is at
    the end of the document.
    """
    for _ in range(150):
        kind, said, in_table = page.evaluate(FOCUSED)
        if in_table if name is None else name in said and not in_table and kind not in ("BODY", "MAIN"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab never reaches {name or 'a table'}")


def test_the_board_is_read_without_a_mouse(browser: Browser, board: Board) -> None:
    page = open_page(browser, f"{board.url}/?lb_benchmark=demo-tools%401")
    # A segmented control is one stop; arrows move inside it.
    tab_to(page, "NDCG")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    page.wait_for_url(lambda url: "lb_metric=Recall" in url)
    settle(page)
    tab_to(page, "Filter and sort")
    page.keyboard.press("Enter")
    # The parts of the popover are loaded one by one, and Tab passes over what is not there yet.
    popover = page.get_by_test_id("stPopoverBody")
    popover.get_by_role("textbox", name="Search").wait_for()
    popover.get_by_test_id("stSkeleton").first.wait_for(state="detached")
    tab_to(page, "Search")
    page.keyboard.type("thinned")
    page.wait_for_url(lambda url: "lb_search=thinned" in url)
    settle(page)
    page.keyboard.press("Escape")
    popover.wait_for(state="detached")
    # The row, then its page.
    page.locator("[data-testid=stDataFrame] canvas").first.wait_for()
    tab_to(page, None)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+Space")
    page.wait_for_url(lambda url: "run=" in url)
    settle(page)
    tab_to(page, "Open its page")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "/run?" in url)
    page.get_by_role("heading", name="BM25 sample, thinned").wait_for()
    page.context.close()
