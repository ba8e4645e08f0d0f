"""Published figures outside the leaderboard's tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from sqlalchemy import delete, select
from sqlmodel import Session, col

from store.database import exclusive
from store.errors import InvalidRecord
from store.figure_models import PublishedFigure


@dataclass(frozen=True)
class Figure:
    """One figure as a paper prints it; see ``store.figure_models.PublishedFigure``."""

    key: str
    paper: str
    place: str
    subject: str
    figure: str
    value: float | None = None
    printed: str = ""
    unit: str = ""
    derived: bool = False
    note: str = ""
    numbers: tuple[float, ...] = ()
    benchmark: str = ""
    retriever: str = ""


def replace_figures(session: Session, figures: Sequence[Figure]) -> bool:
    """Make the stored figures these ones, in this order; returns whether anything changed.

    Raises:
        InvalidRecord: two figures share a key.
    """
    keys = [item.key for item in figures]
    if len(set(keys)) < len(keys):
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise InvalidRecord(f"the published figure {repeated!r} is given twice")
    wanted = [vars(item) | {"numbers": list(item.numbers)} for item in figures]
    exclusive(session, "published figures")
    if list_figures(session).to_dicts() == wanted:
        return False
    session.execute(delete(PublishedFigure))
    session.add_all(PublishedFigure(position=position, **item) for position, item in enumerate(wanted))
    session.flush()
    return True


def list_figures(session: Session, paper: str | None = None, *, benchmark: str | None = None) -> pl.DataFrame:
    """Stored figures in their order, all or of one paper or benchmark slug; columns as the fields of ``Figure``."""
    columns = [getattr(PublishedFigure, name) for name in _SCHEMA]
    query = select(*columns).order_by(col(PublishedFigure.position))
    if paper is not None:
        query = query.where(col(PublishedFigure.paper) == paper)
    if benchmark is not None:
        query = query.where(col(PublishedFigure.benchmark) == benchmark)
    return pl.DataFrame([tuple(row) for row in session.execute(query)], schema=_SCHEMA, orient="row")


_SCHEMA: dict[str, pl.DataType] = {
    "key": pl.String(),
    "paper": pl.String(),
    "place": pl.String(),
    "subject": pl.String(),
    "figure": pl.String(),
    "value": pl.Float64(),
    "printed": pl.String(),
    "unit": pl.String(),
    "derived": pl.Boolean(),
    "note": pl.String(),
    "numbers": pl.List(pl.Float64()),
    "benchmark": pl.String(),
    "retriever": pl.String(),
}
