"""Every page under axe, light and dark, and the way from the board to a run without a mouse."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.jobs.first_start import demo_run
from tests.e2e.conftest import REPOSITORY, Served, free_port
from tests.e2e.pages import settle

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
    "about": ("",),
    "run": ("run={run}", "run=no-such-run"),
    "retriever": ("retriever=bm25-sample", "retriever=tool-embed-4b", "retriever=no-such-retriever"),
}


@dataclass(frozen=True)
class Shown:
    """The served site and a run on it."""

    site: Served
    run: str


def submit(site: Served, file: Path, name: str) -> str:
    said = site.equirank("submit", str(file), "-b", "demo-tools@1", "-r", name, "--format", "json")
    return str(json.loads(said)["run_id"])


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Generator[Shown]:
    """A site with two different runs of the demo tools; the tests only read."""
    folder = tmp_path_factory.mktemp("accessibility")
    site = Served(folder / "home", "")
    sample = demo_run("tools")
    other = folder / "other.trec"
    # The second run lacks every tenth line, so that the two differ at some queries.
    other.write_text("".join(line for n, line in enumerate(sample.read_text().splitlines(True)) if n % 10 != 1))
    run = submit(site, sample, "BM25 sample")
    for words in ([], ["--method", "mftr"]):
        site.equirank("retrieve", "--benchmark", "demo-tools@1", "--model", "bm25", "--publish", *words)
    submit(site, other, "BM25 sample, thinned")
    with site.running():
        yield Shown(site, run)


def scan(page: Page) -> list[dict[str, Any]]:
    """What axe finds at serious or critical impact, one record a node."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        {"rule": finding["id"], "target": " ".join(map(str, node["target"])), "html": node["html"][:300],
         "why": node["failureSummary"]}
        for finding in found if finding["impact"] in ("serious", "critical") for node in finding["nodes"]
    ]  # fmt: skip


def lasting_findings(page: Page) -> list[dict[str, Any]]:
    """Findings that are ours and stay when the page is loaded again.

    While a page is still being drawn, its old parts are faded; and the very first drawing of a session may not know yet
    that the browser shows the dark theme. Neither lasts.
    """
    found: list[dict[str, Any]] = []
    for _ in range(4):
        found = [
            finding
            for finding in scan(page)
            if not any(finding["rule"] == rule and words in finding["why"] for rule, words in STREAMLITS_OWN)
        ]
        if not found:
            break
        page.wait_for_timeout(1000)
        page.reload()
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", VIEWS)
def test_no_serious_finding(browser: Browser, shown: Shown, path: str, scheme: Any) -> None:
    for query in VIEWS[path]:
        page = browser.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 1000}).new_page()
        page.goto(f"{shown.site.url}/{path}?{query.format(run=shown.run)}")
        settle(page)
        assert page.title().strip()
        assert page.evaluate("document.documentElement.lang") == "en"
        assert page.locator("[data-testid=stMain] h1").count() == 1, "a page has one title"
        levels = page.locator("[data-testid=stMain]").evaluate(
            "main => [...main.querySelectorAll('h1, h2, h3, h4, h5, h6')].map(h => Number(h.tagName[1]))"
        )
        assert levels[0] == 1
        found = lasting_findings(page)
        assert not found, json.dumps(found, indent=1)
        page.context.close()


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
        page.get_by_role("button", name="Start").wait_for()
        settle(page)
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
    return [at.tagName + ' ' + (at.getAttribute('role') || ''), name, Boolean(at.closest('[role=grid], canvas'))];
}"""


def tab_to(page: Page, name: str, *, leave_tables: bool = True) -> None:
    """Press Tab until something of this name has the focus.

    Tab walks through a table's cells; Escape leaves the table, but also closes an open popover, whose content Streamlit
    puts at the end of the document.
    """
    for _ in range(150):
        kind, said, in_table = page.evaluate(FOCUSED)
        if not kind.startswith(("BODY", "MAIN")) and name in said.split("\n") and not in_table:
            return
        if in_table and leave_tables:
            page.keyboard.press("Escape")
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab never reaches {name}")


def test_the_board_is_read_without_a_mouse(browser: Browser, shown: Shown) -> None:
    page = browser.new_context(viewport={"width": 1280, "height": 1000}).new_page()
    page.set_default_timeout(30_000)
    page.goto(f"{shown.site.url}/?lb_benchmark=demo-tools%401")
    settle(page)
    # A segmented control is one stop; arrows move inside it.
    tab_to(page, "NDCG")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    page.wait_for_url(lambda url: "lb_metric=Recall" in url)
    settle(page)
    tab_to(page, "Filter and sort")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Show everything again").wait_for()
    tab_to(page, "Search", leave_tables=False)
    page.keyboard.type("thinned")
    page.wait_for_url(lambda url: "lb_search=thinned" in url)
    settle(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Show everything again").wait_for(state="detached")
    # The row, then its page.
    for _ in range(40):
        if page.evaluate(FOCUSED)[0].startswith("CANVAS"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+Space")
    page.wait_for_url(lambda url: "run=" in url)
    settle(page)
    tab_to(page, "Open its page")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "/run?" in url)
    settle(page)
    assert page.get_by_role("heading", name="BM25 sample, thinned").count() == 1
    page.context.close()
