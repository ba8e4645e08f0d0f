"""What a reader does in the browser, in words."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

import polars as pl
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, WebSocket

PATIENCE = 60_000
#: How long page and server have to be silent, seconds, before a page counts as drawn.
QUIET = 0.25

#: Everything that the last run sent is drawn, and for the width that the window has; or the run failed.
_DRAWN = """() => {
  const app = document.querySelector('[data-testid=stApp]');
  const width = window.matchMedia('(max-width: 640px)').matches ? 'narrow' : 'wide';
  return app !== null && app.dataset.testScriptState === 'notRunning'
    && document.querySelector(`[data-drawn-for=${width}], [data-testid=stException]`) !== null
    && document.querySelector('[data-testid=stMain] :is([data-stale=true], [data-testid=stSkeleton])') === null;
}"""


class Talk:
    """What a page and the server say to each other: whether a run of the page's script is asked for or under way.

    The state that the page shows is not enough: it still says that nothing runs after a click whose rerun is on its
    way, and before a component asks for one.
    """

    def __init__(self, page: Page) -> None:
        """Listen to every connection that the page opens from now on."""
        self.last_word = time.monotonic()
        self._awaited = self._begun = False
        page.on("websocket", self._listen)

    @property
    def quiet(self) -> bool:
        """Whether no run is awaited and nothing has been said for a while."""
        return not self._awaited and time.monotonic() - self.last_word > QUIET

    def _listen(self, socket: WebSocket) -> None:
        # A new connection begins with a run, which the page asks for.
        self._awaited, self._begun = True, False
        socket.on("framesent", self._sent)
        socket.on("framereceived", self._received)

    def _sent(self, frame: str | bytes) -> None:
        if isinstance(frame, str):
            return
        asked = BackMsg.FromString(frame)
        if asked.WhichOneof("type") == "rerun_script" and not asked.rerun_script.is_auto_rerun:
            self._awaited, self._begun = True, False
            self.last_word = time.monotonic()

    def _received(self, frame: str | bytes) -> None:
        if isinstance(frame, str):
            return
        said = ForwardMsg.FromString(frame)
        kind = said.WhichOneof("type")
        if kind == "new_session":
            self._awaited = self._begun = True
        elif kind == "script_finished" and said.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
            # The end of a run from before the last request is not the awaited one.
            self._awaited = self._awaited and not self._begun
        if kind in ("new_session", "script_finished", "delta"):
            self.last_word = time.monotonic()


_talks: WeakKeyDictionary[Page, Talk] = WeakKeyDictionary()


Scheme = Literal["light", "dark"]


def new_tab(browser: Browser, *, width: int = 1280, height: int = 1000, scheme: Scheme = "light") -> Page:
    """An empty page of another person's browser: no cookies, no storage, nothing cached."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    _talks[page] = Talk(page)
    return page


def open_page(browser: Browser, url: str, *, width: int = 1280, height: int = 1000, scheme: Scheme = "light") -> Page:
    """Open an address as another person would, and wait until it is drawn."""
    page = new_tab(browser, width=width, height=height, scheme=scheme)
    page.goto(url)
    settle(page)
    return page


def settle(page: Page) -> None:
    """Wait until no run of the page's script is asked for or under way, and what the last one sent is drawn."""
    talk = _talks[page]
    deadline = time.monotonic() + PATIENCE / 1000
    while True:
        page.wait_for_function(_DRAWN)
        if talk.quiet:
            return
        assert time.monotonic() < deadline, "the page never comes to rest"
        page.wait_for_timeout(50)


def cells(page: Page, place: int = 0) -> list[list[str]]:
    """The texts of a table's visible cells, row by row, as a screen reader gets them."""
    table = page.locator("[data-testid=stDataFrame]").nth(place)
    table.locator("[role=gridcell]").first.wait_for(state="attached")
    # In one go: between two looks the table may be drawn anew.
    texts: list[list[str]] = table.evaluate(
        "table => [...table.querySelectorAll('[role=row]')]"
        ".map(row => [...row.querySelectorAll('[role=gridcell]')].map(cell => cell.innerText))"
    )
    return [row for row in texts if row]


def click_table(page: Page, *, x: float, y: float) -> None:
    """Click into the first table of the page, once its rows are there: it is painted, its cells are no elements."""
    table = page.get_by_test_id("stDataFrame").first
    table.locator("[role=gridcell]").first.wait_for(state="attached")
    table.click(position={"x": x, "y": y})


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
