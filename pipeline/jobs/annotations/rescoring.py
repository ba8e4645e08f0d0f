"""Stored runs scored against another version of their benchmark.

A ranking does not change with the labels, so it need not be made again: the stored one is scored by the same scorer
against the new version's combinations and becomes a run of its own. The run that it comes from stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl
from sqlmodel import Session

from pipeline.errors import BenchmarkError
from pipeline.formats.messages import listing, plural
from pipeline.formats.ranking import run_of_frame
from pipeline.jobs.benchmark_library import load_compiled
from pipeline.jobs.measured_runs import run_id_of
from pipeline.jobs.site import Site
from pipeline.jobs.submission import IDENTICAL, tie_band_note
from pipeline.scoring.averages import summarise
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.scores import RunScores, score_run
from pipeline.scoring.version import SCORER_VERSION
from store.access import benchmarks, rankings, runs, submissions
from store.access.rankings import OwnedRun
from store.database import exclusive
from store.errors import Conflict, NotFound
from store.models import Run, State, Submission, Visibility
from store.records import BenchmarkRecord, RunRecord, SubmissionRecord, Summary

#: States in which a run has figures and nobody took it back.
_OFFERED = {State.SCORED.value, State.IN_REVIEW.value, State.PUBLISHED.value}
#: How notes begin that say something about the labels a run was scored with, or about its old board.
_OF_THE_LABELS = (IDENTICAL, "other orders of the tied tools", "whatever the order of the tied tools", "re-scored from")
_TABLES = {"queries": "query_id", "tools": "tool_id"}


@dataclass(frozen=True)
class Rescored:
    """One run with the run that it became on the new version.

    Attributes:
        old: the run whose ranking was scored.
        new: the run on the new version.
        is_new: False when it was there before.
    """

    old: RunRecord
    new: RunRecord
    is_new: bool


def rescorable(site: Site, version_id: int, *, person: str | None = None, everybodys: bool = False) -> list[RunRecord]:
    """Runs of earlier versions that can be scored against this one and have no run on it yet, the oldest first.

    Args:
        site: where the runs are.
        version_id: the new version; earlier ones are its parents, theirs, and so on.
        person: private runs of this person are offered too; None offers public ones only.
        everybodys: all private runs are offered: for the operator's command line, never for a page.

    Raises:
        NotFound: there is no such version.
    """
    version, earlier = _family(site, version_id)
    if not version.has_content:
        return []
    fitting = [before.id for before in earlier if not _difference(site, before, version)]
    with site.database.reading() as session:
        found = rankings.with_ranking(session, fitting)
        known = rankings.with_ranking(session, [version.id])
    there = {one.run.id for one in known}
    taken = {one.ranking for one in known if one.run.state != State.WITHDRAWN.value}
    offered: dict[tuple[str | None, ...], RunRecord] = {}
    for one in found:
        if not (everybodys or _may_see(one, person)) or one.run.state not in _OFFERED:
            continue
        # A run that was scored again before and is on two of the earlier versions is offered once.
        if one.ranking not in taken and _new_id(one.run, version) not in there:
            offered.setdefault(one.ranking, one.run)
    return list(offered.values())


def misfits(site: Site, version_id: int) -> list[str]:
    """Why runs of earlier versions cannot be scored against this one, a sentence a version; empty when all can.

    Raises:
        NotFound: there is no such version.
    """
    version, earlier = _family(site, version_id)
    said = []
    for before in earlier:
        difference = _difference(site, before, version)
        if difference:
            with site.database.reading() as session:
                count = len(rankings.with_ranking(session, [before.id]))
            if count:
                said.append(f"{plural(count, 'run')} of {before.name} cannot be re-scored: {difference}")
    return said


def rescore(
    site: Site,
    version_id: int,
    run_ids: Sequence[str] | None = None,
    *,
    person: str | None = None,
    everybodys: bool = False,
    progress: Callable[[float], None] | None = None,
) -> list[Rescored]:
    """Score stored rankings against a version; each becomes a run of its own there.

    The new run has the old one's provenance, visibility and owner; a private one has a link of its own. Doing it again
    makes nothing new. Statistics follow as for any run.

    Args:
        site: where the runs are.
        version_id: the new version.
        run_ids: which runs, of any version with the same queries and tools; None takes what ``rescorable`` offers.
        person: see ``rescorable``; private runs of others are not found.
        everybodys: see ``rescorable``.
        progress: told the share that is done.

    Returns:
        The pairs, in the order given; the oldest first when none is named.

    Raises:
        NotFound: no such version or run, or none that this person may see.
        BenchmarkError: the version has no content, or other queries or tools than the run's.
        Conflict: the run was withdrawn, or what it became on the version; or it has no stored ranking.
        ArtifactMissing, ArtifactDamaged: a ranking is not whole.
    """
    compiled = load_compiled(site, version_id)
    with site.database.reading() as session:
        version = benchmarks.get_by_id(session, version_id)
    if run_ids is None:
        run_ids = [run.id for run in rescorable(site, version_id, person=person, everybodys=everybodys)]
    # All are looked at before any is scored: a refusal leaves nothing half done.
    chosen = [_chosen(site, version, run_id, person, everybodys) for run_id in dict.fromkeys(run_ids)]
    made = []
    for number, (one, before) in enumerate(chosen, start=1):
        made.append(_rescored(site, compiled, version, one, before))
        if progress is not None:
            progress(number / len(chosen))
    return made


def _chosen(
    site: Site, version: BenchmarkRecord, run_id: str, person: str | None, everybodys: bool
) -> tuple[OwnedRun, BenchmarkRecord]:
    """A run that can be scored, and the version that it is of."""
    with site.database.reading() as session:
        try:
            run = runs.get(session, run_id)
        except NotFound:
            if everybodys:
                raise
            raise _unseen(run_id) from None
        submission = submissions.of_run(session, run_id)
        before = benchmarks.get_by_id(session, run.benchmark_version_id)
    one = OwnedRun(run, submission.person if submission else None)
    if not (everybodys or _may_see(one, person)):
        raise _unseen(run_id)
    if run.ranking_artifact is None:
        raise Conflict(f"run {run_id} is a figure reported in {run.place}: there is no ranking to score")
    if run.state not in _OFFERED:
        raise Conflict(f"run {run_id} is {run.state}: publish it first, then score it again")
    if before.id == version.id:
        raise Conflict(f"run {run_id} is a run of {version.name} already")
    difference = _difference(site, before, version)
    if difference:
        raise BenchmarkError(f"run {run_id} of {before.name} cannot be re-scored: {difference}")
    with site.database.reading() as session:
        known = _known(session, version, one)
    if known is not None and known.state == State.WITHDRAWN.value:
        mine = everybodys or (person is not None and one.person == person)
        raise Conflict(
            f"run {run_id} was scored against {version.name} before, and what it became there was withdrawn"
            + (f": publish run {known.id} to bring it back" if mine else "; only its owner can bring it back")
        )
    return one, before


def _unseen(run_id: str) -> NotFound:
    """Says the same of a run that is not there and of one that belongs to somebody else."""
    return NotFound(f"no run {run_id} that you may see")


def _note(old: RunRecord, before: BenchmarkRecord, version: BenchmarkRecord) -> str:
    """What a new run says of the one it comes from, named only if it is public: whoever sees the new one reads it."""
    shown = old.visibility == Visibility.PUBLIC.value and old.state == State.PUBLISHED.value
    named = f"run {old.id}" if shown else "a run"
    note = f"re-scored from {named} of {before.name}: the same ranking against the labels of {version.name}"
    if any(before.artifacts.get(table) != version.artifacts.get(table) for table in _TABLES):
        note += "; texts differ between the versions, and the ranking was made from the earlier ones"
    return note


def _rescored(
    site: Site, compiled: CompiledBenchmark, version: BenchmarkRecord, one: OwnedRun, before: BenchmarkRecord
) -> Rescored:
    old = one.run
    with site.database.reading() as session:
        known = _known(session, version, one)
    if known is not None:
        return Rescored(old, known, False)
    assert old.ranking_artifact is not None
    ranked = run_of_frame(site.artifacts.get_frame(old.ranking_artifact), compiled.target)
    scores = score_run(compiled, ranked, version.ks)
    columns = ("view", "metric", "k", "average", "domain", "value", "n")
    summary = summarise(scores, compiled).select(columns).with_columns(pl.col("domain").fill_null(""))
    figures = [Summary(**record) for record in summary.iter_rows(named=True)]
    per_query = site.artifacts.put_frame(scores.per_query)
    with site.database.session() as session:
        exclusive(session, f"rescore {version.id}")
        known = _known(session, version, one)
        if known is not None:
            return Rescored(old, known, False)
        # As it is now: it may have been hidden or withdrawn while it was scored.
        now = runs.get(session, old.id)
        if now.state not in _OFFERED:
            raise Conflict(f"run {old.id} was withdrawn meanwhile; it is not scored again")
        row = _row(now, compiled, version, scores, per_query, _note(now, before, version))
        submission = _submission(submissions.of_run(session, old.id), version)
        new = runs.add_run(session, row, figures, submission=submission, artifacts=site.artifacts)
    return Rescored(now, new, True)


def _known(session: Session, version: BenchmarkRecord, one: OwnedRun) -> RunRecord | None:
    """The run on the version that this one became, or another one of the same ranking."""
    found = rankings.with_ranking(session, [version.id])
    for known in found:
        if known.run.id == _new_id(one.run, version):
            return known.run
    for known in found:
        if known.ranking == one.ranking and known.run.state != State.WITHDRAWN.value:
            return known.run
    return None


def _row(
    old: RunRecord,
    compiled: CompiledBenchmark,
    version: BenchmarkRecord,
    scores: RunScores,
    per_query: str,
    note: str,
) -> Run:
    notes = [said for said in old.notes if not said.startswith(_OF_THE_LABELS)]
    band = tie_band_note(scores) if any(said.startswith(_OF_THE_LABELS[1:3]) for said in old.notes) else None
    return Run(
        id=_new_id(old, version),
        benchmark_version_id=version.id,
        retriever_id=old.retriever_id,
        method=old.method,
        level=old.level,
        contract=old.contract,
        contract_hash=old.contract_hash,
        provenance=old.provenance,
        state=old.state,
        visibility=old.visibility,
        place=old.place,
        ranking_artifact=old.ranking_artifact,
        ranking_hash=old.ranking_hash,
        per_query_artifact=per_query,
        raw_artifact=old.raw_artifact,
        raw_name=old.raw_name,
        scorer_version=SCORER_VERSION,
        benchmark_hash=compiled.content_hash,
        depth=old.depth,
        queries_total=old.queries_total,
        queries_answered=old.queries_answered,
        missing=old.missing,
        flags=[flag for flag in old.flags if flag != "identical"],
        notes=[*notes, *([band] if band else []), note],
        efficiency=None if old.efficiency is None else dict(old.efficiency),
        method_settings=None if old.method_settings is None else dict(old.method_settings),
        trained_on_benchmark=old.trained_on_benchmark,
        link=old.link,
        licence=old.licence,
        # As old as the ranking: a board shows the newest, and scoring an old ranking again does not make it so.
        published_at=old.published_at if old.state == State.PUBLISHED.value else None,
    )


def _submission(old: SubmissionRecord | None, version: BenchmarkRecord) -> Submission | None:
    """The submission once more, so that the new run has the same owner; it counts for the day of the first."""
    if old is None:
        return None
    return Submission(
        benchmark_version_id=version.id,
        person=old.person,
        contact=old.contact,
        link=old.link,
        licence=old.licence,
        file_name=old.file_name,
        size=old.size,
        sha256=old.sha256,
        order=old.order,
        part=old.part,
        report=dict(old.report),
        created_at=old.created_at,
    )


def _may_see(one: OwnedRun, person: str | None) -> bool:
    run = one.run
    if run.visibility == Visibility.PUBLIC.value and run.state == State.PUBLISHED.value:
        return True
    return person is not None and one.person == person


def _new_id(old: RunRecord, version: BenchmarkRecord) -> str:
    """The id of the run that a run becomes on a version: always the same, so that nothing is made twice."""
    return run_id_of(f"rescore {old.id} {version.id} {version.content_hash}")


def _family(site: Site, version_id: int) -> tuple[BenchmarkRecord, list[BenchmarkRecord]]:
    """A version, and the versions with content that it was made from, the nearest first."""
    with site.database.reading() as session:
        version = benchmarks.get_by_id(session, version_id)
        stored = {record.name: record for record in benchmarks.list_records(session)}
    found: dict[str, BenchmarkRecord] = {}
    rest = list(version.parents)
    while rest:
        name = rest.pop(0)
        record = stored.get(name)
        if record is None or name in found or name == version.name:
            continue
        found[name] = record
        rest += record.parents
    return version, [record for record in found.values() if record.has_content]


def _difference(site: Site, before: BenchmarkRecord, after: BenchmarkRecord) -> str:
    """Why rankings over one version are none over the other, in words; "" when ids of queries and tools are equal."""
    said = []
    for table, column in _TABLES.items():
        if before.artifacts.get(table) == after.artifacts.get(table):
            continue
        old, new = (_ids(site, record, table, column) for record in (before, after))
        gone, added = sorted(old - new), sorted(new - old)
        changes = []
        if added:
            changes.append(f"{len(added):,} that {before.name} has not ({listing(added, 3)})")
        if gone:
            changes.append(f"{len(gone):,} fewer ({listing(gone, 3)})")
        if changes:
            said.append(f"{after.name} has other {table}, {' and '.join(changes)}")
    return "; ".join(said) + "; retrieve and submit it for that version" if said else ""


def _ids(site: Site, record: BenchmarkRecord, table: str, column: str) -> set[str]:
    digest = record.artifacts.get(table)
    return set() if digest is None else set(site.artifacts.get_frame(digest, [column])[column])
