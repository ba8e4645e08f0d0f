"""The SQL tables of what is computed beside figures: lifts of runs, and statistics over whole boards."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Column, ForeignKey, Integer, String
from sqlmodel import Field

from store.models import AverageOf, Table, _one_of, utc_now


class LiftSummary(Table, table=True):
    """What is known of one lift (new minus old) of a scored run, beside its value; keys as in ``MetricSummary``.

    Attributes:
        low, high: ends of the lift's 95 % interval.
        control: the mean lift that as many random tools instead of the valid ones give; null for sources.
        control_low, control_high: what holds the middle 95 % of the random draws.
        judged: share of judged tools among the first K of the scope's lists; null for sources or empty lists.
    """

    __tablename__ = "lift_summary"
    __table_args__ = (_one_of("average", AverageOf), {"sqlite_with_rowid": False})

    run_id: str = Field(sa_column=Column(String, ForeignKey("run.id", ondelete="CASCADE"), primary_key=True))
    metric: str = Field(primary_key=True)
    k: int = Field(primary_key=True)
    average: str = Field(primary_key=True)
    domain: str = Field(default="", primary_key=True)
    low: float | None = None
    high: float | None = None
    control: float | None = None
    control_low: float | None = None
    control_high: float | None = None
    judged: float | None = None


class BoardStatistics(Table, table=True):
    """What was computed over all ranked runs of a benchmark version: tie groups, and gains of fine-tuned retrievers.

    Attributes:
        computed_from: what names the runs and the code behind it; it is out of date when the board's own differs.
        tie_groups_artifact, gains_artifact: hashes of frames in the artifact store.
    """

    __tablename__ = "board_statistics"

    benchmark_version_id: int = Field(
        sa_column=Column(Integer, ForeignKey("benchmark_version.id"), primary_key=True, autoincrement=False)
    )
    computed_from: str
    tie_groups_artifact: str
    gains_artifact: str
    made_at: datetime = Field(default_factory=utc_now)
