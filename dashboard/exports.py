"""What leaves the site as a file, for the site of this process; made where the command line makes it too."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from dashboard.current_site import the_site
from pipeline.jobs import board_report as made
from pipeline.jobs.board_report import BoardFigure

__all__ = ["BoardFigure", "board_latex", "board_report"]


def board_report(figure: BoardFigure, rows: pl.DataFrame, address: str | None = None) -> str:
    """See ``pipeline.jobs.board_report.board_report``."""
    return made.board_report(the_site(), figure, rows, address)


def board_latex(figure: BoardFigure, only: Collection[str] | None = None) -> str:
    """See ``pipeline.jobs.board_report.board_latex``."""
    return made.board_latex(the_site(), figure, only)
