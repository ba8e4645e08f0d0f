"""Options that several verbs share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.errors import UsageError

if TYPE_CHECKING:
    from pipeline.run import Order

RunFile = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="The run file: TREC, JSON, JSONL, CSV, TSV or Parquet, plain, .gz or .zst."),
]
BenchmarkName = Annotated[
    str,
    typer.Option("--benchmark", "-b", metavar="B", help="A stored benchmark as slug or slug@version, or a folder."),
]
OrderOption = Annotated[
    str | None,
    typer.Option(
        "--order", metavar="score|rank|distance", help="What orders the lists, when scores and ranks disagree."
    ),
]
PartOption = Annotated[
    str | None,
    typer.Option("--part", metavar="SUBSET/SPLIT", help="Which part of an MTEB predictions file to read."),
]
Encoding = Annotated[
    str, typer.Option("--preset", metavar="card|paper", help="Encode as the model card or as the papers did.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on the terminal.")]


class ReportFormat(StrEnum):
    """How ``validate`` and listings print."""

    TABLE = "table"
    JSON = "json"


class ScoreFormat(StrEnum):
    """How ``score`` prints."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"
    LATEX = "latex"


def cutoffs(text: str) -> tuple[int, ...]:
    """``1,5,10`` as distinct ascending integers of 1 to 1,000.

    Raises:
        UsageError: anything else.
    """
    try:
        values = sorted({int(part) for part in text.split(",")})
    except ValueError:
        values = []
    if not values or values[0] < 1 or values[-1] > 1000 or "_" in text:
        raise UsageError(f"--k takes cutoffs from 1 to 1000 separated by commas, such as 1,5,10,20; found {text!r}")
    return tuple(values)


def declared_order(text: str | None) -> Order | None:
    """What ``--order`` declares, None when it was left out.

    Raises:
        UsageError: it is none of score, rank and distance.
    """
    from pipeline.run import Order

    if text is None:
        return None
    try:
        return Order(text)
    except ValueError:
        raise UsageError(f"--order takes score, rank or distance; found {text!r}") from None
