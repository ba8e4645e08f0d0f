"""Tables of expansions: what was asked for, and the chunks that are done."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import CheckConstraint, Column, ForeignKey, String
from sqlmodel import Field

from store.models import Table, _json, _one_of, utc_now


class AnnotationState(StrEnum):
    """Whether the new version is made: ``open`` until it is, ``done`` then."""

    OPEN = "open"
    DONE = "done"


class Annotation(Table, table=True):
    """One expansion of a benchmark version into a new one; the same request always is the same row.

    Attributes:
        id: from the parent's content, the settings and the new version's name.
        benchmark_version_id: the parent.
        version: name of the new version.
        settings: ``ToolexSettings.as_json()``.
        settings_hash: of the settings and every prompt's version.
        max_cost, max_calls: the budget in US dollars and calls; null is no limit of its own.
        state: see ``AnnotationState``.
        made_version_id: the new version, once it is stored.
        artifacts: ``provenance``, ``ranks``, ``states`` → hash of the frame, once done.
        batched: whether questions are written into batch files instead of asked.
        retry_failed: whether the job that was started last asks recorded failures again.
        batch: artifact hashes of the batch files whose answers are waited for, in order; empty where the command
            line wrote them.
        answers: artifact hashes of the answers files that were imported, in order.
        pending: questions whose answers are waited for.
        person: who asked for it; "" for the command line.
    """

    __tablename__ = "annotation"
    __table_args__ = (
        _one_of("state", AnnotationState),
        CheckConstraint("(state = 'done') = (made_version_id IS NOT NULL)", name="made"),
    )

    id: str = Field(primary_key=True)
    benchmark_version_id: int = Field(foreign_key="benchmark_version.id", index=True)
    version: str
    settings: dict[str, Any] = Field(default_factory=dict, sa_column=_json())
    settings_hash: str
    max_cost: float | None = None
    max_calls: int | None = None
    state: str = AnnotationState.OPEN
    made_version_id: int | None = Field(default=None, foreign_key="benchmark_version.id")
    artifacts: dict[str, str] = Field(default_factory=dict, sa_column=_json())
    batched: bool = False
    retry_failed: bool = False
    batch: list[str] = Field(default_factory=list, sa_column=_json())
    answers: list[str] = Field(default_factory=list, sa_column=_json())
    pending: int = 0
    person: str = ""
    created_at: datetime = Field(default_factory=utc_now)
    updated_at: datetime = Field(default_factory=utc_now)


class AnnotationChunk(Table, table=True):
    """Some queries of an expansion that are through all stages.

    Attributes:
        number: its place.
        start, stop: its queries, in the benchmark's order.
        artifacts: name of each frame of ``pipeline.toolex.frames.ExpansionFrames`` → hash.
        failures: questions without a valid answer, by stage.
    """

    __tablename__ = "annotation_chunk"

    annotation_id: str = Field(
        sa_column=Column(String, ForeignKey("annotation.id", ondelete="CASCADE"), primary_key=True)
    )
    number: int = Field(primary_key=True)
    start: int
    stop: int
    artifacts: dict[str, str] = Field(default_factory=dict, sa_column=_json())
    failures: dict[str, int] = Field(default_factory=dict, sa_column=_json())
    made_at: datetime = Field(default_factory=utc_now)
