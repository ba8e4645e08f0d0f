"""A table with its facts as one self-contained HTML file: no script, no font, no address that is fetched.

Names and remarks come from strangers, so every text is escaped; only http(s) addresses become links.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

#: A number as the site writes it: signs, thin spaces, marks of the papers, places won or lost.
_FIGURE = re.compile(r"[+\u2212\-▲▼ ]*[\d\u202f.,]+( ?%|[KMB])?[*†]*|=")
_STYLE = """\
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #59636e; --line: #d8dee4; --ground: #ffffff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ec; --soft: #9aa4ae; --line: #343b43; --ground: #0f1216; }
}
body { margin: 2.5rem auto; max-width: 72rem; padding: 0 1.25rem; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .5rem; }
p { margin: .25rem 0 1rem; max-width: 48rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%;
  font-size: .9375rem; }
.soft { color: var(--soft); margin-bottom: .5rem; }
th, td { padding: .45rem .7rem; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { border-bottom: 2px solid var(--ink); white-space: nowrap; }
.n { text-align: right; white-space: nowrap; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.25rem; font-size: .875rem; margin-top: 2rem; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
ul { padding-left: 1.1rem; font-size: .875rem; color: var(--soft); }
@media print { body { margin: 0; max-width: none; } }
"""


@dataclass(frozen=True, eq=False)
class Report:
    """What the file says.

    Attributes:
        title: the heading.
        lead: a sentence under it.
        caption: what the table holds.
        table: texts as shown; the header line is the columns' names.
        notes: sentences under the table.
        facts: names and values that say what the figures were made from.
    """

    title: str
    lead: str
    caption: str
    table: pl.DataFrame
    notes: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()


def html_report(report: Report) -> str:
    """The file's text, UTF-8 when it is encoded."""
    title = html.escape(_clean(report.title))
    right = [_is_right(column) for column in report.table.get_columns()]
    head = "".join(_cell("th", name, r, ' scope="col"') for name, r in zip(report.table.columns, right, strict=True))
    rows = "\n".join(
        "<tr>" + "".join(_cell("td", value, r) for value, r in zip(row, right, strict=True)) + "</tr>"
        for row in report.table.iter_rows()
    )
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>{title}</title><style>\n{_STYLE}</style></head><body>",
        f"<h1>{title}</h1>",
    ]
    if report.lead:
        parts.append(f"<p>{_text(report.lead)}</p>")
    parts += [
        f'<p class="soft" id="what">{_text(report.caption)}</p>',
        '<div class="wide" tabindex="0" role="region" aria-labelledby="what"><table>',
        f"<thead><tr>{head}</tr></thead>",
        f"<tbody>\n{rows}\n</tbody></table></div>",
    ]
    if report.notes:
        parts.append("<ul>" + "".join(f"<li>{_text(note)}</li>" for note in report.notes) + "</ul>")
    if report.facts:
        listed = "".join(f"<dt>{_text(name)}</dt><dd>{_linked(value)}</dd>" for name, value in report.facts if value)
        parts.append(f"<dl>{listed}</dl>")
    return "\n".join([*parts, "</body></html>"]) + "\n"


def _cell(tag: str, value: object, right: bool, more: str = "") -> str:
    shown = "—" if value is None else _text(str(value))
    aligned = ' class="n"' if right else ""
    return f"<{tag}{more}{aligned}>{shown}</{tag}>"


def _is_right(column: pl.Series) -> bool:
    texts = [str(value) for value in column if value not in (None, "", "—")]
    return column.dtype.is_numeric() or (bool(texts) and all(_FIGURE.fullmatch(text) for text in texts))


def _linked(value: str) -> str:
    if value.startswith(("http://", "https://")) and not set(value) & set(" \"'<>`\\\n"):
        return f'<a href="{html.escape(value)}" rel="noopener noreferrer">{_text(value)}</a>'
    return _text(value)


def _text(text: str) -> str:
    return html.escape(_clean(text))


def _clean(text: str) -> str:
    """Without control characters, which HTML forbids, and invisible ones, which can turn the order of text round."""
    return "".join(sign for sign in text if sign in "\t\n" or unicodedata.category(sign) not in {"Cc", "Cf", "Cs"})
