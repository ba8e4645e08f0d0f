"""Statistics of runs and boards: intervals, random controls, other readings, tie groups and gains.

A run's statistics are made by a job after it landed. Whatever lies in files is written before the row that names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from sqlalchemy import delete, insert, or_, select, update
from sqlmodel import Session, col

from store.artifacts import ArtifactStore
from store.database import exclusive
from store.errors import InvalidRecord, NotFound
from store.models import MetricSummary, Run, State, Visibility, utc_now
from store.records import BoardStatisticsRecord, record
from store.statistics_models import BoardStatistics, LiftSummary

_KEY = ("metric", "k", "average", "domain")
#: Columns of ``set_run_statistics``'s intervals.
INTERVALS: dict[str, pl.DataType] = {
    "view": pl.String(),
    "metric": pl.String(),
    "k": pl.Int64(),
    "average": pl.String(),
    "domain": pl.String(),
    "low": pl.Float64(),
    "high": pl.Float64(),
}
#: Columns of ``set_run_statistics``'s lifts and of ``lifts``.
LIFTS: dict[str, pl.DataType] = {
    "metric": pl.String(),
    "k": pl.Int64(),
    "average": pl.String(),
    "domain": pl.String(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "control": pl.Float64(),
    "control_low": pl.Float64(),
    "control_high": pl.Float64(),
    "judged": pl.Float64(),
}
_LANDED = (State.SCORED.value, State.IN_REVIEW.value, State.PUBLISHED.value)


@dataclass(frozen=True)
class BoardRun:
    """A run with per-query scores, as the board's statistics need it."""

    run_id: str
    per_query_artifact: str


def set_run_statistics(
    session: Session,
    run_id: str,
    *,
    intervals: pl.DataFrame,
    lifts: pl.DataFrame,
    artifact: str,
    version: str,
    artifacts: ArtifactStore,
) -> None:
    """Store the statistics of a run, replacing what was there: all of it or nothing.

    Args:
        session: of ``Database.session``.
        run_id: the run.
        intervals: columns of ``INTERVALS``; view is ``old`` or ``new``, domain "" for macro and micro.
        lifts: columns of ``LIFTS``.
        artifact: hash of the frame of other readings.
        version: of the code that made them.
        artifacts: where the artifact is.

    Raises:
        NotFound: there is no such run.
        ArtifactMissing, ArtifactDamaged: the artifact is not whole.
        InvalidRecord: an end of an interval is not finite.
    """
    row = session.get(Run, run_id)
    if row is None:
        raise NotFound(f"no run has the id {run_id!r}")
    artifacts.require(artifact)
    for frame in (intervals, lifts):
        numbers = frame.select(pl.selectors.float())
        if any(not numbers[name].drop_nulls().is_finite().all() for name in numbers.columns):
            raise InvalidRecord(f"the statistics of run {run_id} hold a number that is not finite")
    rows = [{"run_id": run_id, **entry} for entry in intervals.select(*INTERVALS).to_dicts()]
    if rows:
        # By primary key, many at once.
        session.execute(update(MetricSummary), rows)
    session.execute(delete(LiftSummary).where(col(LiftSummary.run_id) == run_id))
    rows = [{"run_id": run_id, **entry} for entry in lifts.select(*LIFTS).to_dicts()]
    if rows:
        session.execute(insert(LiftSummary), rows)
    row.statistics_artifact = artifact
    row.statistics_version = version
    row.statistics_at = utc_now()
    session.flush()


def lifts(session: Session, run_id: str) -> pl.DataFrame:
    """What is known of the lifts of a run; columns of ``LIFTS``, in key order."""
    columns = [getattr(LiftSummary, name) for name in LIFTS]
    rows = session.execute(select(*columns).where(col(LiftSummary.run_id) == run_id)).all()
    return pl.DataFrame([tuple(row) for row in rows], schema=LIFTS, orient="row").sort(*_KEY)


def runs_without(session: Session, version: str, *, benchmark_version_id: int | None = None) -> list[str]:
    """Scored runs whose statistics were never made, or by another version of the code; oldest first."""
    query = select(col(Run.id)).where(
        col(Run.per_query_artifact).is_not(None),
        col(Run.ranking_artifact).is_not(None),
        col(Run.state).in_(_LANDED),
        or_(col(Run.statistics_version).is_(None), col(Run.statistics_version) != version),
    )
    if benchmark_version_id is not None:
        query = query.where(col(Run.benchmark_version_id) == benchmark_version_id)
    return list(session.scalars(query.order_by(col(Run.created_at), col(Run.id))))


def boards_with_runs(session: Session) -> list[int]:
    """Benchmark versions that have, or had, a published run with per-query scores."""
    shown = (
        select(col(Run.benchmark_version_id))
        .where(
            col(Run.per_query_artifact).is_not(None),
            col(Run.state) == State.PUBLISHED.value,
            col(Run.visibility) == Visibility.PUBLIC.value,
        )
        .distinct()
    )
    known = select(col(BoardStatistics.benchmark_version_id))
    return sorted({*session.scalars(shown), *session.scalars(known)})


def board_runs(session: Session, run_ids: Sequence[str]) -> list[BoardRun]:
    """Those of the runs that have per-query scores, in the given order."""
    query = select(col(Run.id), col(Run.per_query_artifact)).where(
        col(Run.id).in_(list(run_ids)), col(Run.per_query_artifact).is_not(None)
    )
    found = {run_id: BoardRun(run_id, digest) for run_id, digest in session.execute(query)}
    return [found[run_id] for run_id in run_ids if run_id in found]


def of_board(session: Session, benchmark_version_id: int) -> BoardStatisticsRecord | None:
    """What was last computed over the board, None when nothing was."""
    row = session.get(BoardStatistics, benchmark_version_id)
    return None if row is None else record(BoardStatisticsRecord, row)


def set_of_board(
    session: Session,
    benchmark_version_id: int,
    *,
    computed_from: str,
    tie_groups_artifact: str,
    gains_artifact: str,
    artifacts: ArtifactStore,
) -> None:
    """Store what was computed over a board, in the place of what was there.

    Raises:
        ArtifactMissing, ArtifactDamaged: an artifact is not whole.
    """
    artifacts.require(tie_groups_artifact)
    artifacts.require(gains_artifact)
    exclusive(session, f"statistics of board {benchmark_version_id}")
    row = session.get(BoardStatistics, benchmark_version_id)
    if row is None:
        row = BoardStatistics(
            benchmark_version_id=benchmark_version_id,
            computed_from=computed_from,
            tie_groups_artifact=tie_groups_artifact,
            gains_artifact=gains_artifact,
        )
    row.computed_from = computed_from
    row.tie_groups_artifact = tie_groups_artifact
    row.gains_artifact = gains_artifact
    row.made_at = utc_now()
    session.add(row)
    session.flush()
