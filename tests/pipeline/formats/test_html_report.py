from __future__ import annotations

from html.parser import HTMLParser

import polars as pl

from pipeline.formats.html_report import Report, html_report


class _Page(HTMLParser):
    """Collects tags, attributes and texts, and checks that tags are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.cells: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        if tag not in {"meta"}:
            self.open.append(tag)
        if tag in {"td", "th", "dd"}:
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and set(self.open) & {"td", "th", "dd"}:
            self.cells[-1] += data


HOSTILE = "\"><img src=x onerror=alert(1)>\u202e\x00 & 'x'"


def report(**said: object) -> str:
    fields = {"title": "T", "lead": "", "caption": "C", "table": pl.DataFrame({"Name": [HOSTILE], "New": ["57.1"]})}
    return html_report(Report(**fields | said))


def test_strangers_texts_stay_texts():
    text = report(title=HOSTILE, lead=HOSTILE, caption=HOSTILE, notes=[HOSTILE], facts=[(HOSTILE, HOSTILE)])
    page = _Page(text)
    assert "<img" not in text
    assert "\u202e" not in text
    assert "\x00" not in text
    shown = HOSTILE.replace("\u202e", "").replace("\x00", "")
    assert page.cells == ["Name", "New", shown, "57.1", shown]
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "src"]


def test_figures_are_aligned_and_unknown_is_a_dash():
    table = pl.DataFrame(
        {"Retriever": ["a", "4B"], "Lift": ["+5.1", "−0.3"], "Δ": ["▲ 2", "="], "Size": ["0.6B", "—"], "n": [None, 7]}
    )
    text = report(table=table)
    assert '<th scope="col">Retriever</th>' in text
    for name in ("Lift", "Δ", "Size", "n"):
        assert f'<th scope="col" class="n">{name}</th>' in text
    assert '<td class="n">—</td>' in text


def test_only_web_addresses_become_links():
    facts = [
        ("a", "https://board.example/?x=1&y=2"),
        ("b", "javascript:alert(1)"),
        ("c", 'https://x.example/" onclick="y'),
    ]
    page = _Page(report(facts=facts))
    assert [value for name, value in page.attributes if name == "href"] == ["https://board.example/?x=1&y=2"]


def test_an_empty_table_is_still_a_page():
    assert "<table" in report(table=pl.DataFrame())
