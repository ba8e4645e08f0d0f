"""The table of downstream studies: whether an agent solved its tasks under each way of giving it tools."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Text
from sqlmodel import Field

from store.models import Table, _json, new_run_id, utc_now


class DownstreamStudy(Table, table=True):
    """One imported study; it is never changed, and its label is never used again.

    Attributes:
        label: the owner's words.
        benchmark_version_id: whose queries the tasks are; null where no benchmark was named.
        artifact: hash of the frame: task, category, setting, passed.
        settings: names of the settings that were compared, in order; differences are to those before.
        tasks: distinct tasks, each counted once a category.
        note: agent, judge and date, in words.
    """

    __tablename__ = "downstream_study"

    id: str = Field(default_factory=new_run_id, primary_key=True)
    label: str = Field(unique=True)
    benchmark_version_id: int | None = Field(default=None, foreign_key="benchmark_version.id", index=True)
    artifact: str
    settings: list[Any] = Field(default_factory=list, sa_column=_json())
    tasks: int
    note: str = Field(default="", sa_type=Text)
    created_at: datetime = Field(default_factory=utc_now)
