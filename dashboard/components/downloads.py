"""A table as files: CSV (formulas neutralised), Parquet, Markdown and LaTeX, made when they are asked for."""

from __future__ import annotations

import io
from collections.abc import Callable

import polars as pl
import streamlit as st

from pipeline.formats.tables import TableFormat, write_table


def parquet_bytes(frame: pl.DataFrame) -> bytes:
    """The frame as one parquet file."""
    file = io.BytesIO()
    frame.write_parquet(file, compression="zstd")
    return file.getvalue()


def download_menu(
    *,
    key: str,
    name: str,
    data: Callable[[], pl.DataFrame],
    table: Callable[[], pl.DataFrame],
    latex: Callable[[], str] | None = None,
    report: Callable[[], str] | None = None,
) -> None:
    """A popover with downloads.

    Args:
        key: prefix of the widgets' keys.
        name: file name without an ending; ours, never a user's.
        data: full precision, for CSV and Parquet.
        table: text as shown, for Markdown and LaTeX.
        latex: LaTeX of its own (a paper's layout), else the plain table.
        report: a self-contained HTML file of what is shown, where there is one.
    """
    with st.popover("Download", icon=":material/download:", key=f"{key}_menu"):
        st.caption("CSV and Parquet hold fractions in full precision; Markdown and LaTeX what is shown.")
        _one("CSV", f"{name}.csv", "text/csv", lambda: write_table(_flat(data()), TableFormat.CSV).encode(), key)
        _one("Parquet", f"{name}.parquet", "application/vnd.apache.parquet", lambda: parquet_bytes(data()), key)
        _one(
            "Markdown", f"{name}.md", "text/markdown", lambda: write_table(table(), TableFormat.MARKDOWN).encode(), key
        )
        written = latex or (lambda: write_table(table(), TableFormat.LATEX))
        _one("LaTeX", f"{name}.tex", "application/x-tex", lambda: written().encode(), key)
        if report is not None:
            _one("Report (HTML)", f"{name}.html", "text/html", lambda: report().encode(), key)


def _one(label: str, file_name: str, mime: str, content: Callable[[], bytes], key: str) -> None:
    st.download_button(
        label,
        data=content,
        file_name=file_name,
        mime=mime,
        on_click="ignore",
        width="stretch",
        key=f"{key}_{label.lower()}",
    )


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Lists as text: CSV has none."""
    lists = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.List)]
    return frame.with_columns(pl.col(name).list.join("; ") for name in lists)
