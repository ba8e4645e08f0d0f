"""What a reader does in the browser, in words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PATIENCE = 60_000


def open_page(browser: Browser, url: str, *, width: int = 1280, height: int = 1000) -> Page:
    """Open an address in a context of its own: no cookies, no storage, as another person would."""
    page = browser.new_context(viewport={"width": width, "height": height}, accept_downloads=True).new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(url)
    settle(page)
    return page


def settle(page: Page) -> None:
    """Wait until the page's script has run to its end."""
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
    page.wait_for_timeout(300)
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")


def cells(page: Page, place: int = 0) -> list[list[str]]:
    """The texts of a table's visible cells, row by row, as a screen reader gets them."""
    table = page.locator("[data-testid=stDataFrame]").nth(place)
    table.locator("[role=gridcell]").first.wait_for(state="attached")
    rows = table.locator("[role=row]").all()
    texts = [[cell.inner_text() for cell in row.locator("[role=gridcell]").all()] for row in rows]
    return [row for row in texts if row]


def upload(page: Page, file: Path) -> None:
    """Drop a run file on the submit page."""
    page.locator("input[type=file]").set_input_files(str(file))
    page.get_by_role("button", name="Publish").wait_for()
    settle(page)


def download(page: Page, kind: str, folder: Path) -> Path:
    """Take a file from the first download menu of the page."""
    page.get_by_role("button", name=re.compile("^Download$")).last.click()
    with page.expect_download() as started:
        page.get_by_role("button", name=kind, exact=True).click()
    target = folder / started.value.suggested_filename
    started.value.save_as(target)
    return target


def figures(file: Path) -> dict[tuple[str, str, int], float]:
    """(view, metric, K) → the average over all queries, from a run's parquet download."""
    micro = pl.read_parquet(file).filter(pl.col("average") == "micro")
    return {(row["view"], row["metric"], row["k"]): row["value"] for row in micro.iter_rows(named=True)}
