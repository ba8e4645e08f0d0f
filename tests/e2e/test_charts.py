"""Charts in a real browser: each can be saved as PNG and SVG by keyboard, and a chosen row opens its card."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Board
from tests.e2e.pages import Scheme, click_table, new_tab, open_page, settle

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

#: Every page with charts, and how many it has at least.
VIEWS = {
    "old-vs-new?ovn_benchmark=tooleq%40published": 3,
    "illusion?ill_benchmark=tooleq%40published": 4,
    "compare?cmp_benchmark=demo-tools%401": 1,
    "score-and-cost?cost_benchmark=tooleq%40published": 1,
    "equivalent-ranks?er_benchmark=demo-tools%401": 2,
    "queries?q_benchmark=demo-tools%401&q_query=ev-006": 1,
    "benchmarks?bm_benchmark=demo-tools%401": 4,
}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def phone(browser: Browser) -> Generator[Page]:
    """One narrow tab for all addresses: Plotly is loaded and compiled once."""
    page = new_tab(browser, width=390)
    yield page
    page.context.close()


def saved(page: Page, name: str, folder: Path) -> Path:
    """Save the page's first chart by keyboard."""
    button = page.get_by_role("button", name=re.compile(f"^Save as {name}: ")).first
    button.focus()
    with page.expect_download() as started:
        page.keyboard.press("Enter")
    target = folder / started.value.suggested_filename
    started.value.save_as(target)
    return target


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_chart_is_saved_as_it_is_shown(browser: Browser, board: Board, tmp_path: Path, scheme: Scheme) -> None:
    page = open_page(browser, f"{board.url}/old-vs-new?ovn_benchmark=tooleq%40published", scheme=scheme)
    shown = page.locator(".js-plotly-plot").first.bounding_box()
    assert shown is not None
    drawing = saved(page, "SVG", tmp_path)
    assert drawing.name == "equirank-old-new.svg"
    root = ElementTree.parse(drawing).getroot()
    assert float(root.attrib["width"]) == pytest.approx(shown["width"], abs=1)
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert {"Tool-Embed-4B", "BM25", "GritLM-7B"} <= set(texts)
    ground = next(root.iter(f"{SVG}rect")).attrib["fill"]
    assert ground == {"light": "#ffffff", "dark": "#0f1217"}[scheme]
    picture = saved(page, "PNG", tmp_path)
    assert picture.name == "equirank-old-new.png"
    # Painted, not only made: three times the size, its corner in the theme's colour, and not of one colour.
    width, height, corner, colours = page.evaluate(
        """async (bytes) => {
          const image = await createImageBitmap(new Blob([new Uint8Array(bytes)], { type: "image/png" }));
          const canvas = document.createElement("canvas");
          [canvas.width, canvas.height] = [image.width, image.height];
          const context = canvas.getContext("2d");
          context.drawImage(image, 0, 0);
          const all = context.getImageData(0, 0, image.width, image.height).data;
          const seen = new Set();
          for (let i = 0; i < all.length; i += 4) seen.add((all[i] << 16) | (all[i + 1] << 8) | all[i + 2]);
          return [image.width, image.height, [...all.slice(0, 4)], seen.size];
        }""",
        list(picture.read_bytes()),
    )
    assert (width, height) == (pytest.approx(3 * shown["width"], abs=3), pytest.approx(3 * shown["height"], abs=3))
    assert corner == {"light": [255, 255, 255, 255], "dark": [15, 18, 23, 255]}[scheme]
    assert colours > 50
    page.context.close()


@pytest.mark.parametrize("path", VIEWS)
def test_every_chart_has_both_buttons_and_its_data(phone: Page, board: Board, path: str) -> None:
    phone.goto(f"{board.url}/{path}")
    settle(phone)
    charts = phone.locator(".js-plotly-plot")
    charts.nth(VIEWS[path] - 1).wait_for()
    for kind in ("PNG", "SVG"):
        # Buttons are mounted after their chart.
        buttons = phone.get_by_role("button", name=re.compile(f"^Save as {kind}: "))
        expect(buttons).to_have_count(charts.count())
    phone.get_by_text(re.compile("^Data of (this chart|these c)")).first.wait_for()
    expect(phone.locator(".modebar-btn")).to_have_count(0)
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_chosen_cell_opens_the_card_of_its_row(browser: Browser, board: Board) -> None:
    page = open_page(browser, f"{board.url}/benchmarks", height=1400)
    page.get_by_role("heading", name="ToolEq").wait_for()
    # The second row of pixels is the first benchmark's.
    click_table(page, x=300, y=53)
    page.wait_for_url(lambda url: "bm_benchmark=demo-skills%401" in url)
    page.get_by_role("heading", name="Demo skills").wait_for()
    settle(page)
    page.keyboard.press("ArrowDown")
    page.get_by_role("heading", name="Demo tools").wait_for()
    page.context.close()
