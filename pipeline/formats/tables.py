"""A frame of figures as text: plain columns, Markdown, LaTeX (booktabs) or CSV.

Cells come from files strangers uploaded, so each writer escapes what its format would interpret; the CSV
writer also neutralises text that a spreadsheet would run as a formula.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from enum import StrEnum

import polars as pl

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "Δ": r"$\Delta$",
    "→": r"$\rightarrow$",
    "—": "---",
    "–": "--",
}
_MARKDOWN = str.maketrans({c: "\\" + c for c in "\\`*_[]<>|#!"})
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


class TableFormat(StrEnum):
    """The ways a table can be written."""

    PLAIN = "table"
    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"


def write_table(frame: pl.DataFrame, table_format: TableFormat) -> str:
    """Write ``frame`` as text.

    Args:
        frame: any columns; numbers are written in full precision by CSV and as they are by the others, so
            round them to text first where a reader should see fewer digits. Null is an empty CSV cell and
            "—" elsewhere.
        table_format: the format to write.
    """
    return _WRITERS[table_format](frame)


def escape_markdown(text: str) -> str:
    """Text that Markdown renders as itself: no links, images, emphasis or HTML."""
    return " ".join(text.split()).translate(_MARKDOWN)


def escape_latex(text: str) -> str:
    """Text that LaTeX typesets as itself."""
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def neutralise_formula(text: str) -> str:
    """Text that a spreadsheet shows as itself: what would start a formula gets a leading apostrophe.

    Plain numbers such as ``-0.3`` or ``+5.1`` stay numbers.
    """
    if text.startswith(_FORMULA_STARTS) and not _is_number(text):
        return "'" + text
    return text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text and not text[0].isspace()


def display_width(text: str) -> int:
    """Columns a terminal uses for ``text``: wide East Asian characters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(character) else 1 + (unicodedata.east_asian_width(character) in "WF")
        for character in text
    )


def _cells(frame: pl.DataFrame, escape: Callable[[str], str]) -> list[list[str]]:
    return [["—" if value is None else escape(str(value)) for value in row] for row in frame.iter_rows()]


def _right_aligned(frame: pl.DataFrame) -> list[bool]:
    """Numeric columns, and text columns whose every value reads as a number."""
    aligned = []
    for column in frame.get_columns():
        if column.dtype.is_numeric():
            aligned.append(True)
            continue
        texts = [str(value).replace("−", "-") for value in column if value is not None]
        aligned.append(bool(texts) and all(text in {"—", ""} or _is_number(text) for text in texts))
    return aligned


def _plain(frame: pl.DataFrame) -> str:
    rows = [list(frame.columns), *_cells(frame, lambda text: " ".join(text.split()))]
    right = _right_aligned(frame)
    widths = [max(display_width(row[i]) for row in rows) for i in range(len(right))]

    def line(row: Sequence[str]) -> str:
        padded = []
        for cell, width, align in zip(row, widths, right, strict=True):
            space = " " * (width - display_width(cell))
            padded.append(space + cell if align else cell + space)
        return "  ".join(padded).rstrip()

    rule = "  ".join("─" * width for width in widths)
    return "\n".join([line(rows[0]), rule, *(line(row) for row in rows[1:])]) + "\n"


def _markdown(frame: pl.DataFrame) -> str:
    header = [escape_markdown(name) for name in frame.columns]
    rule = ["---:" if right else "---" for right in _right_aligned(frame)]
    rows = [header, rule, *_cells(frame, escape_markdown)]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def _latex(frame: pl.DataFrame) -> str:
    columns = "".join("r" if right else "l" for right in _right_aligned(frame))
    lines = [f"\\begin{{tabular}}{{{columns}}}", "\\toprule"]
    lines.append(" & ".join(escape_latex(name) for name in frame.columns) + " \\\\")
    lines.append("\\midrule")
    lines += [" & ".join(row) + " \\\\" for row in _cells(frame, escape_latex)]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n"


def _csv(frame: pl.DataFrame) -> str:
    text = frame.with_columns(
        pl.col(pl.String).map_elements(neutralise_formula, return_dtype=pl.String, skip_nulls=True)
    )
    return text.write_csv()


_WRITERS: dict[TableFormat, Callable[[pl.DataFrame], str]] = {
    TableFormat.PLAIN: _plain,
    TableFormat.MARKDOWN: _markdown,
    TableFormat.LATEX: _latex,
    TableFormat.CSV: _csv,
}
