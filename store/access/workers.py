"""Heartbeats of the processes that do jobs.

Times are the database's on PostgreSQL, where workers run on several machines whose clocks may differ.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import delete, func, select
from sqlmodel import Session, col

from store.models import Worker, utc_now
from store.records import WorkerRecord


def beat(session: Session, worker_id: str, *, host: str, pid: int, queues: Sequence[str], device: str) -> None:
    """Say that a worker is alive; the first time makes its row."""
    now = _now(session)
    row = session.get(Worker, worker_id)
    if row is None:
        session.add(
            Worker(id=worker_id, host=host, pid=pid, queues=list(queues), device=device, started_at=now, seen_at=now)
        )
        return
    if (row.host, row.pid) != (host, pid):
        row.host, row.pid, row.started_at = host, pid, now
    row.queues, row.device, row.seen_at = list(queues), device, now


def remove(session: Session, worker_id: str, pid: int) -> None:
    """Take away the row of a worker that stops, unless another process has taken its name over."""
    session.execute(delete(Worker).where(col(Worker.id) == worker_id, col(Worker.pid) == pid))


def list_workers(session: Session) -> list[WorkerRecord]:
    """All workers that did not stop in order, the one heard last first; see ``WorkerRecord.silent_s``."""
    now = _now(session)
    rows = session.scalars(select(Worker).order_by(col(Worker.seen_at).desc(), col(Worker.id)))
    return [
        WorkerRecord(
            id=row.id,
            host=row.host,
            pid=row.pid,
            queues=tuple(row.queues),
            device=row.device,
            started_at=row.started_at,
            seen_at=row.seen_at,
            silent_s=max(0.0, (now - row.seen_at).total_seconds()),
        )
        for row in rows
    ]


def alive(session: Session, lost_seconds: float) -> list[WorkerRecord]:
    """The workers that were heard within ``lost_seconds``."""
    return [worker for worker in list_workers(session) if worker.silent_s <= lost_seconds]


def forget(session: Session, worker_ids: Collection[str]) -> None:
    """Take away the rows of workers that are known to be dead."""
    session.execute(delete(Worker).where(col(Worker.id).in_(list(worker_ids))))


def _now(session: Session) -> datetime:
    if session.get_bind().dialect.name == "postgresql":
        # Not now(), which is when the transaction began.
        found = session.scalar(select(func.clock_timestamp()))
        assert isinstance(found, datetime)
        return found
    return utc_now()
