"""Text tables: every format shows a stranger's text as text."""

from __future__ import annotations

import csv
import io

import polars as pl
import pytest

from pipeline.formats.tables import TableFormat, display_width, neutralise_formula, write_table

HOSTILE = '=HYPERLINK("http://x","y")'
FRAME = pl.DataFrame({"name": ["a|b_*[x](y)", HOSTILE, "工具"], "NDCG@10": ["−0.3", "12.5", None]})


def test_plain_columns_line_up_with_wide_characters() -> None:
    lines = write_table(FRAME, TableFormat.PLAIN).splitlines()
    assert lines[2].endswith("−0.3")
    assert lines[4].endswith("—")
    assert len({display_width(line) for line in (lines[1], lines[2], lines[3], lines[4])}) == 1


def test_markdown_escapes_links_and_pipes() -> None:
    text = write_table(FRAME, TableFormat.MARKDOWN)
    assert r"a\|b\_\*\[x\](y)" in text
    assert text.splitlines()[1] == "| --- | ---: |"


def test_latex_escapes_specials_and_uses_a_real_minus() -> None:
    text = write_table(pl.DataFrame({"a_b": ["50 % & more"], "Δ": ["−0.3"]}), TableFormat.LATEX)
    assert r"a\_b & $\Delta$ \\" in text
    assert r"50 \% \& more & $-$0.3 \\" in text


def test_csv_neutralises_formulas_and_round_trips_the_rest() -> None:
    rows = list(csv.reader(io.StringIO(write_table(FRAME, TableFormat.CSV))))
    assert rows[1][0] == "a|b_*[x](y)"
    assert rows[2][0] == "'" + HOSTILE
    assert rows[3] == ["工具", ""]


@pytest.mark.parametrize("text", ["-0.3", "+5.1", "1e-9"])
def test_numbers_are_not_formulas(text: str) -> None:
    assert neutralise_formula(text) == text


@pytest.mark.parametrize("text", ["-1+1|cmd", "@SUM(A1)", "+1_0", "\t=1", "-"])
def test_what_a_spreadsheet_would_run_is_quoted(text: str) -> None:
    assert neutralise_formula(text) == "'" + text
