"""Figures printed in papers, as ``reported`` runs that follow their data file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, delete, select
from sqlmodel import Session, col

from store.access.run_figures import SUMMARY_SCHEMA, check_summaries, insert_summaries
from store.database import exclusive
from store.errors import InvalidRecord
from store.models import Level, MetricSummary, Provenance, Run, State, Trained, utc_now
from store.records import Summary

_FIELDS = ("trained_on_benchmark", "link", "licence", "flags", "notes", "queries_total")


@dataclass(frozen=True)
class ReportedRow:
    """One line of a published table.

    Attributes:
        place: where it is printed (``ToolEX Table 2``).
        contract: the setting, where the table has several of one retriever, method and level.
    """

    benchmark_version_id: int
    retriever_id: int
    place: str
    method: str
    summaries: tuple[Summary, ...]
    level: str = Level.QUERY.value
    contract: str = ""
    trained_on_benchmark: str = Trained.UNKNOWN.value
    link: str = ""
    licence: str = ""
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    queries_total: int | None = None

    @property
    def key(self) -> tuple[int, str, int, str, str, str]:
        """What makes it one row of one table."""
        return (self.benchmark_version_id, self.place, self.retriever_id, self.method, self.level, self.contract)


@dataclass(frozen=True)
class ReportedChanges:
    """How many rows were new, changed, as stored, or no longer in the data file."""

    inserted: int
    updated: int
    unchanged: int
    removed: int


def upsert_reported(session: Session, rows: Sequence[ReportedRow], *, remove_others: bool = False) -> ReportedChanges:
    """Make the stored reported rows these ones; a row keeps its run id and date when its figures change.

    Loading the same rows again changes nothing; of two processes that load at once, one waits for the other.

    Args:
        session: of ``Database.session``.
        rows: lines of the papers' tables.
        remove_others: delete reported rows that are not among them.

    Raises:
        InvalidRecord: two rows have the same key, or a figure must not be stored.
    """
    _check(rows)
    exclusive(session, "reported rows")
    stored = {_key(run): run for run in session.scalars(_reported())}
    figures = _figures(session)
    inserted = updated = unchanged = 0
    for row in rows:
        run = stored.pop(row.key, None)
        wanted = set(row.summaries)
        if run is None:
            now = utc_now()
            run = Run(
                **dict[str, Any](zip(_KEY, row.key, strict=True)),
                **_described(row),
                provenance=Provenance.REPORTED.value,
                state=State.PUBLISHED.value,
                created_at=now,
                published_at=now,
            )
            session.add(run)
            session.flush()
            insert_summaries(session, run.id, row.summaries)
            inserted += 1
            continue
        described = _described(row)
        same_text = all(getattr(run, name) == value for name, value in described.items())
        if same_text and figures.get(run.id, set()) == wanted:
            unchanged += 1
            continue
        for name, value in described.items():
            setattr(run, name, value)
        session.execute(delete(MetricSummary).where(col(MetricSummary.run_id) == run.id))
        insert_summaries(session, run.id, row.summaries)
        updated += 1
    removed = 0
    if remove_others:
        for run in stored.values():
            session.execute(delete(MetricSummary).where(col(MetricSummary.run_id) == run.id))
            session.delete(run)
            removed += 1
    session.flush()
    return ReportedChanges(inserted, updated, unchanged, removed)


_KEY = ("benchmark_version_id", "place", "retriever_id", "method", "level", "contract")


def _key(run: Run) -> tuple[int, str, int, str, str, str]:
    return (run.benchmark_version_id, run.place, run.retriever_id, run.method, run.level, run.contract)


def _described(row: ReportedRow) -> dict[str, Any]:
    return {name: list(value) if isinstance(value := getattr(row, name), tuple) else value for name in _FIELDS}


def _reported() -> Select[Run]:
    return select(Run).where(col(Run.provenance) == Provenance.REPORTED.value)


def _figures(session: Session) -> dict[str, set[Summary]]:
    columns = [getattr(MetricSummary, name) for name in SUMMARY_SCHEMA]
    query = (
        select(MetricSummary.run_id, *columns)  # type: ignore[call-overload]
        .join(Run, col(Run.id) == col(MetricSummary.run_id))
        .where(col(Run.provenance) == Provenance.REPORTED.value)
    )
    found: defaultdict[str, set[Summary]] = defaultdict(set)
    for run_id, *values in session.execute(query):
        found[run_id].add(Summary(**dict(zip(SUMMARY_SCHEMA, values, strict=True))))
    return found


def _check(rows: Sequence[ReportedRow]) -> None:
    seen = set()
    for row in rows:
        if not row.place:
            raise InvalidRecord("a reported row says where it is printed (place)")
        if row.key in seen:
            raise InvalidRecord(
                f"{row.place} has two rows for the same benchmark, retriever, method and level: {row.key}"
            )
        seen.add(row.key)
        check_summaries(row.summaries)
