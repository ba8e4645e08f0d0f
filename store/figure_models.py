"""The SQL table of figures that papers print outside the leaderboard's tables."""

from __future__ import annotations

from sqlalchemy import Text
from sqlmodel import Field

from store.models import Table, _json


class PublishedFigure(Table, table=True):
    """A figure of a paper outside the leaderboard's tables, as printed.

    Attributes:
        key: its stable name in the data file.
        value: a fraction where ``unit`` is ``%`` or ``pp``, else in ``unit``; null for a text, a list or a range.
        numbers: those of a list or range, in printed order and on the same scale.
        printed: the text as printed.
        derived: computed from printed figures instead of being printed itself.
        benchmark: slug that it belongs to, if any.
        retriever: key that it belongs to, if any.
    """

    __tablename__ = "published_figure"

    id: int | None = Field(default=None, primary_key=True)
    position: int = 0
    key: str = Field(unique=True)
    paper: str
    place: str
    subject: str
    figure: str
    value: float | None = None
    numbers: list[float] = Field(default_factory=list, sa_column=_json())
    printed: str = ""
    unit: str = ""
    derived: bool = False
    note: str = Field(default="", sa_type=Text)
    benchmark: str = ""
    retriever: str = ""
