"""Runs: stored with their figures in one transaction, published, withdrawn, looked up."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence

import polars as pl
from sqlalchemy import select
from sqlmodel import Session, col

from store.access import retrievers
from store.access.run_figures import SUMMARY_SCHEMA, check_summaries, insert_summaries
from store.access.texts import check_texts
from store.artifacts import ArtifactStore
from store.errors import Conflict, InvalidRecord, NotFound
from store.models import (
    BenchmarkVersion,
    MetricSummary,
    Provenance,
    Retriever,
    Run,
    State,
    Submission,
    SubmissionState,
    Trained,
    Visibility,
    new_token,
    utc_now,
)
from store.records import RunRecord, Summary, record

_ARTIFACTS = ("ranking_artifact", "per_query_artifact", "raw_artifact")

#: States from which a run can be published (again).
_PUBLISHABLE = {State.SCORED.value, State.IN_REVIEW.value, State.WITHDRAWN.value}


def add_run(
    session: Session,
    run: Run,
    summaries: Sequence[Summary],
    *,
    submission: Submission | None = None,
    artifacts: ArtifactStore | None = None,
) -> RunRecord:
    """Store a scored run, its figures and its submission: all of it or, on any error, nothing.

    A run added as ``published`` gets its publication time here; a private one gets its token.

    Args:
        session: of ``Database.session``; the rows are there for others once it ends.
        run: a new row.
        summaries: its figures, each (view, metric, K, average, domain) once.
        submission: a new or stored submission row that became this run.
        artifacts: where the run's artifacts are; required when the run names any.

    Raises:
        ArtifactMissing, ArtifactDamaged: an artifact that the run names is not whole.
        InvalidRecord: a figure is not finite, out of range or given twice; a run without figures is published; an
            uploaded or measured run has no ranking.
        NotFound: the benchmark version or retriever is not stored.
    """
    _check_run(session, run, summaries)
    check_texts(method=run.method, contract=run.contract, link=run.link, licence=run.licence)
    if submission is not None:
        check_texts(link=submission.link, licence=submission.licence, contact=submission.contact)
    check_summaries(summaries)
    for name in _ARTIFACTS:
        digest = getattr(run, name)
        if digest is not None:
            if artifacts is None:
                raise InvalidRecord(f"the artifact store is needed to check the run's {name}")
            artifacts.require(digest)
    if run.state == State.PUBLISHED.value and run.published_at is None:
        run.published_at = utc_now()
    if run.visibility == Visibility.PRIVATE.value and run.private_token is None:
        run.private_token = new_token()
    session.add(run)
    session.flush()
    insert_summaries(session, run.id, summaries)
    if submission is not None:
        submission.run_id = run.id
        submission.benchmark_version_id = run.benchmark_version_id
        submission.state = SubmissionState.SCORED.value
        submission.updated_at = utc_now()
        session.add(submission)
        session.flush()
    return record(RunRecord, run)


def get(session: Session, run_id: str) -> RunRecord:
    """A run by id, whoever may see it: for its owner, jobs and the command line. Pages use ``get_shown``.

    Raises:
        NotFound: there is none.
    """
    return record(RunRecord, _row(session, run_id))


def get_shown(session: Session, run_id: str, *, token: str | None = None, person: str | None = None) -> RunRecord:
    """A run as somebody may see it: published and public, with the private link's token, or their own.

    Raises:
        NotFound: there is none, or not for this person; the two cannot be told apart.
    """
    row = session.get(Run, run_id)
    if row is not None:
        shown = row.state == State.PUBLISHED.value and row.visibility == Visibility.PUBLIC.value
        linked = (
            token is not None
            and row.private_token is not None
            and secrets.compare_digest(token.encode(), row.private_token.encode())
        )
        if shown or linked or (person is not None and _owner(session, run_id) == person):
            return record(RunRecord, row)
    raise NotFound(f"no run {run_id} that you may see")


def publish(session: Session, run_id: str, *, visibility: Visibility | None = None) -> RunRecord:
    """Publish a scored, reviewed or withdrawn run; publishing a published one changes only its visibility.

    Raises:
        NotFound: there is no such run.
        Conflict: the run is not scored yet.
    """
    row = _row(session, run_id, lock=True)
    if row.state != State.PUBLISHED.value:
        if row.state not in _PUBLISHABLE:
            raise Conflict(f"run {run_id} is {row.state}: only a scored run can be published")
        row.state = State.PUBLISHED.value
        row.published_at = utc_now()
        row.withdrawn_at = None
    if visibility is not None:
        _set_visibility(row, visibility)
    session.flush()
    return record(RunRecord, row)


def withdraw(session: Session, run_id: str) -> RunRecord:
    """Take a published run off the leaderboard; it stays stored and can be published again.

    Raises:
        NotFound: there is no such run.
        Conflict: the run is not published.
    """
    row = _row(session, run_id, lock=True)
    if row.state == State.WITHDRAWN.value:
        return record(RunRecord, row)
    if row.state != State.PUBLISHED.value:
        raise Conflict(f"run {run_id} is {row.state}: only a published run can be withdrawn")
    if row.provenance == Provenance.REPORTED.value:
        raise Conflict(f"run {run_id} is a figure reported in {row.place}; reported rows cannot be withdrawn")
    row.state = State.WITHDRAWN.value
    row.withdrawn_at = utc_now()
    session.flush()
    return record(RunRecord, row)


def set_visibility(session: Session, run_id: str, visibility: Visibility) -> RunRecord:
    """Make a run public or private; every time it becomes private it gets a new link.

    Raises:
        NotFound: there is no such run.
    """
    row = _row(session, run_id, lock=True)
    _set_visibility(row, visibility)
    session.flush()
    return record(RunRecord, row)


def edit(
    session: Session,
    run_id: str,
    *,
    retriever_name: str | None = None,
    method: str | None = None,
    contract: str | None = None,
    trained_on_benchmark: Trained | None = None,
    link: str | None = None,
    licence: str | None = None,
    contact: str | None = None,
) -> RunRecord:
    """Change what a submitter says about a run; its ranking and figures never change. None leaves a field as it is.

    Raises:
        NotFound: there is no such run.
        Conflict: the run is reported from a paper.
        InvalidRecord: a text is too long or has control characters.
    """
    check_texts(method=method, contract=contract, link=link, licence=licence, contact=contact)
    row = _row(session, run_id, lock=True)
    if row.provenance == Provenance.REPORTED.value:
        raise Conflict(f"run {run_id} is a figure reported in {row.place}; reported rows cannot be edited")
    if retriever_name is not None:
        row.retriever_id = retrievers.ensure_for_name(session, retriever_name).id
    for name, value in {"method": method, "contract": contract, "link": link, "licence": licence}.items():
        if value is not None:
            setattr(row, name, value.strip())
    if trained_on_benchmark is not None:
        row.trained_on_benchmark = Trained(trained_on_benchmark).value
    submission = session.scalars(select(Submission).where(col(Submission.run_id) == run_id)).first()
    if submission is not None:
        for name, value in {"contact": contact, "link": link, "licence": licence}.items():
            if value is not None:
                setattr(submission, name, value.strip())
        submission.updated_at = utc_now()
    session.flush()
    return record(RunRecord, row)


def list_runs(
    session: Session,
    *,
    benchmark_version_id: int | None = None,
    person: str | None = None,
    states: Collection[State] | None = None,
    provenances: Collection[Provenance] | None = None,
    retriever_id: int | None = None,
    public_only: bool = False,
) -> pl.DataFrame:
    """Runs, newest first.

    Args:
        session: of ``Database.reading`` or ``session``.
        benchmark_version_id: only runs of this version.
        person: only runs that this person submitted.
        states: only runs in these states.
        provenances: only runs of these provenances.
        retriever_id: only runs of this retriever.
        public_only: leave private and unpublished runs out.

    Returns:
        Columns run_id, benchmark, benchmark_version_id, retriever_key, retriever, method, level, contract,
        provenance, state, visibility, place, raw_name, queries_answered, queries_total, flags, person, created_at,
        published_at.
    """
    query = (
        select(
            col(Run.id),
            col(BenchmarkVersion.slug) + "@" + col(BenchmarkVersion.version),
            col(Run.benchmark_version_id),
            col(Retriever.key),
            col(Retriever.name),
            col(Run.method),
            col(Run.level),
            col(Run.contract),
            col(Run.provenance),
            col(Run.state),
            col(Run.visibility),
            col(Run.place),
            col(Run.raw_name),
            col(Run.queries_answered),
            col(Run.queries_total),
            col(Run.flags),
            col(Submission.person),
            col(Run.created_at),
            col(Run.published_at),
        )
        .join(BenchmarkVersion, col(BenchmarkVersion.id) == col(Run.benchmark_version_id))
        .join(Retriever, col(Retriever.id) == col(Run.retriever_id))
        .join(Submission, col(Submission.run_id) == col(Run.id), isouter=True)
    )
    if benchmark_version_id is not None:
        query = query.where(col(Run.benchmark_version_id) == benchmark_version_id)
    if person is not None:
        query = query.where(col(Submission.person) == person)
    if states is not None:
        query = query.where(col(Run.state).in_([State(state).value for state in states]))
    if provenances is not None:
        query = query.where(col(Run.provenance).in_([Provenance(item).value for item in provenances]))
    if retriever_id is not None:
        query = query.where(col(Run.retriever_id) == retriever_id)
    if public_only:
        query = query.where(col(Run.state) == State.PUBLISHED.value, col(Run.visibility) == Visibility.PUBLIC.value)
    rows = session.execute(query.order_by(col(Run.created_at).desc(), col(Run.id))).all()
    return pl.DataFrame([tuple(row) for row in rows], schema=_LISTING, orient="row")


_TIME = pl.Datetime("us", "UTC")
_LISTING: dict[str, pl.DataType] = {
    "run_id": pl.String(),
    "benchmark": pl.String(),
    "benchmark_version_id": pl.Int64(),
    "retriever_key": pl.String(),
    "retriever": pl.String(),
    "method": pl.String(),
    "level": pl.String(),
    "contract": pl.String(),
    "provenance": pl.String(),
    "state": pl.String(),
    "visibility": pl.String(),
    "place": pl.String(),
    "raw_name": pl.String(),
    "queries_answered": pl.Int64(),
    "queries_total": pl.Int64(),
    "flags": pl.List(pl.String()),
    "person": pl.String(),
    "created_at": _TIME,
    "published_at": _TIME,
}


def versions(session: Session, run_id: str) -> list[RunRecord]:
    """The published public runs of the same leaderboard row, current one first.

    Raises:
        NotFound: there is no such run.
    """
    row = _row(session, run_id)
    query = select(Run).where(
        col(Run.benchmark_version_id) == row.benchmark_version_id,
        col(Run.retriever_id) == row.retriever_id,
        col(Run.method) == row.method,
        col(Run.level) == row.level,
        col(Run.contract) == row.contract,
        col(Run.contract_hash).is_not_distinct_from(row.contract_hash),
        col(Run.provenance) == row.provenance,
        col(Run.place) == row.place,
        col(Run.state) == State.PUBLISHED.value,
        col(Run.visibility) == Visibility.PUBLIC.value,
    )
    found = [record(RunRecord, item) for item in session.scalars(query)]
    return sorted(
        found, key=lambda item: (item.published_at or item.created_at, item.created_at, item.id), reverse=True
    )


def identical_rankings(
    session: Session, benchmark_version_id: int, ranking_hash: str, *, except_run: str | None = None
) -> list[RunRecord]:
    """Published public runs of the version with exactly this ranking, oldest first."""
    query = select(Run).where(
        col(Run.benchmark_version_id) == benchmark_version_id,
        col(Run.ranking_hash) == ranking_hash,
        col(Run.state) == State.PUBLISHED.value,
        col(Run.visibility) == Visibility.PUBLIC.value,
    )
    found = [record(RunRecord, row) for row in session.scalars(query) if row.id != except_run]
    return sorted(found, key=lambda item: (item.created_at, item.id))


def summaries(session: Session, run_id: str) -> pl.DataFrame:
    """All figures of a run: view, metric, k, average, domain, value, low, high, n, printed, note, in key order."""
    columns = [getattr(MetricSummary, name) for name in SUMMARY_SCHEMA]
    rows = session.execute(select(*columns).where(col(MetricSummary.run_id) == run_id)).all()
    frame = pl.DataFrame([tuple(row) for row in rows], schema=SUMMARY_SCHEMA, orient="row")
    return frame.sort("metric", "k", "average", "domain", "view")


def _check_run(session: Session, run: Run, given: Sequence[Summary]) -> None:
    if session.get(BenchmarkVersion, run.benchmark_version_id) is None:
        raise NotFound(f"no benchmark version has the id {run.benchmark_version_id}")
    if session.get(Retriever, run.retriever_id) is None:
        raise NotFound(f"no retriever has the id {run.retriever_id}")
    if run.provenance != Provenance.REPORTED.value and run.ranking_artifact is None:
        raise InvalidRecord("an uploaded or measured run needs its ranking as an artifact")
    if run.state == State.PUBLISHED.value and not given:
        raise InvalidRecord("a run without figures cannot be published")


def _set_visibility(row: Run, visibility: Visibility) -> None:
    wanted = Visibility(visibility).value
    if wanted == Visibility.PRIVATE.value and row.visibility != wanted:
        row.private_token = new_token()
    row.visibility = wanted


def _row(session: Session, run_id: str, *, lock: bool = False) -> Run:
    query = select(Run).where(col(Run.id) == run_id)
    row = session.scalars(query.with_for_update() if lock else query).first()
    if row is None:
        raise NotFound(f"no run has the id {run_id!r}")
    return row


def _owner(session: Session, run_id: str) -> str | None:
    return session.scalars(select(Submission.person).where(col(Submission.run_id) == run_id)).first()  # type: ignore[call-overload]
