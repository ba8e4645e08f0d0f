"""Disputing a verdict of a stored version, and what the next version takes from the disputes that were upheld."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from pipeline.benchmark import Benchmark, Judgement, Origin
from pipeline.errors import BenchmarkError
from pipeline.jobs.site import Site
from pipeline.jobs.submission import LOCAL_PERSON
from store.access import benchmarks, disputes
from store.access.disputes import DisputeRecord
from store.records import BenchmarkRecord
from store.validation_models import Dispute, DisputeState, DisputeSubject


@dataclass(frozen=True)
class Verdict:
    """A verdict that can be disputed; the labels that a benchmark came with are none.

    Attributes:
        position: of the sub-query that the tool was judged for; None for a combination.
        tool_ids: the tool, or the set.
        valid: what was decided.
        reason: the judge's words.
    """

    query_id: str
    position: int | None
    tool_ids: tuple[str, ...]
    valid: bool
    reason: str = ""

    @property
    def subject(self) -> DisputeSubject:
        """Whether a tool was judged, or a set."""
        return DisputeSubject.COMBINATION if self.position is None else DisputeSubject.EQUIVALENT


def disputable(benchmark: Benchmark, query_id: str) -> list[Verdict]:
    """The verdicts on one query: single tools by sub-query, then combinations, in the benchmark's order."""
    here = pl.col("query_id") == query_id
    truth = benchmark.ground_truth.filter(here).explode("tool_ids", empty_as_null=False)["tool_ids"]
    steps = benchmark.subqueries.filter(here).select("position", "tool_id")
    tools = (
        benchmark.equivalents.filter(here & (pl.col("origin").fill_null("") != Origin.GROUND_TRUTH.value))
        .join(steps, on=["position", "tool_id"], how="anti", maintain_order="left")
        .sort("position", maintain_order=True)
    )
    if steps.is_empty():
        tools = tools.filter(~pl.col("tool_id").is_in(truth.to_list()))
    sets = benchmark.combinations.filter(here & ~pl.col("is_ground_truth").fill_null(False))
    valid = pl.col("verdict") == Judgement.VALID.value
    found = [
        Verdict(query_id, position, (tool,), said, reason or "")
        for position, tool, said, reason in tools.select("position", "tool_id", valid, "reason").iter_rows()
    ]
    found += [
        Verdict(query_id, None, tuple(members), said, reason or "")
        for members, said, reason in sets.select("tool_ids", valid, "reason").iter_rows()
    ]
    return found


def find_verdict(benchmark: Benchmark, query_id: str, tool_ids: Sequence[str], position: int | None) -> Verdict:
    """A verdict by what it is about.

    Args:
        benchmark: the version.
        query_id: of the query.
        tool_ids: the tool, or the set in any order.
        position: of the sub-query, from 0; None for a combination.

    Raises:
        BenchmarkError: there is no such verdict, or it is the label itself.
    """
    if benchmark.queries.filter(pl.col("query_id") == query_id).is_empty():
        raise BenchmarkError(f"the benchmark has no query {query_id!r}")
    wanted = set(tool_ids)
    for verdict in disputable(benchmark, query_id):
        if verdict.position == position and set(verdict.tool_ids) == wanted:
            return verdict
    what = "these tools as a combination" if position is None else f"this tool for sub-query {position}"
    raise BenchmarkError(
        f"nobody judged {what} of query {query_id!r}: only verdicts can be disputed, not the labels that the benchmark "
        "came with"
    )


def dispute_verdict(
    site: Site, benchmark: BenchmarkRecord, verdict: Verdict, reason: str, person: str = ""
) -> DisputeRecord:
    """Say that a verdict is wrong; it stays as it is until a keeper makes a new version.

    Args:
        site: where the dispute is kept.
        benchmark: the version.
        verdict: of ``disputable`` or ``find_verdict``.
        reason: why it is wrong.
        person: who says so; "" for nobody in particular.

    Raises:
        InvalidRecord: a text is missing, too long or has invisible characters.
        Conflict: the verdict is disputed already, or too many were disputed in a day.
    """
    row = Dispute(
        benchmark_version_id=benchmark.id,
        query_id=verdict.query_id,
        subject=verdict.subject.value,
        position=verdict.position,
        tool_ids=list(verdict.tool_ids),
        claimed_valid=not verdict.valid,
        reason=reason,
        person=person,
    )
    with site.database.session() as session:
        return disputes.open_dispute(session, row, limit=site.settings.limit_disputes_per_day)


def resolve_dispute(site: Site, dispute_id: str, *, upheld: bool, words: str, by: str = LOCAL_PERSON) -> DisputeRecord:
    """Decide a dispute; see ``store.access.disputes.resolve``."""
    with site.database.session() as session:
        return disputes.resolve(session, dispute_id, upheld=upheld, words=words, by=by)


def list_disputes(site: Site, benchmark: BenchmarkRecord | None, query_id: str | None = None) -> list[DisputeRecord]:
    """Disputes of a version, or of the whole site; those that wait first."""
    with site.database.reading() as session:
        return disputes.list_disputes(session, None if benchmark is None else benchmark.id, query_id=query_id)


def dispute_json(dispute: DisputeRecord, benchmark: str) -> dict[str, object]:
    """A dispute in the shape of ``equirank dispute list --format json``."""
    return {
        "id": dispute.id,
        "benchmark": benchmark,
        "query_id": dispute.query_id,
        "subject": dispute.subject,
        "position": dispute.position,
        "tool_ids": list(dispute.tool_ids),
        "claimed_verdict": _word(dispute.claimed_valid),
        "reason": dispute.reason,
        "person": dispute.person,
        "state": dispute.state,
        "resolution": dispute.resolution,
        "opened": dispute.created_at.isoformat(timespec="seconds"),
        "resolved": None if dispute.resolved_at is None else dispute.resolved_at.isoformat(timespec="seconds"),
    }


def upheld_lines(site: Site, benchmark: BenchmarkRecord) -> str:
    """The verdicts that the next version should change, as JSON Lines: one upheld dispute a line, oldest first."""
    with site.database.reading() as session:
        found = disputes.list_disputes(session, benchmark.id, states=[DisputeState.UPHELD])
    lines = []
    for dispute in sorted(found, key=lambda one: (one.resolved_at or one.created_at, one.id)):
        line = {
            "benchmark": benchmark.name,
            "query_id": dispute.query_id,
            "subject": dispute.subject,
            "position": dispute.position,
            "tool_ids": list(dispute.tool_ids),
            "verdict": _word(dispute.claimed_valid),
            "reason": dispute.reason,
            "resolution": dispute.resolution,
            "dispute": dispute.id,
        }
        lines.append(json.dumps(line, ensure_ascii=False))
    return "".join(line + "\n" for line in lines)


def version_names(site: Site) -> dict[int, str]:
    """Id → ``slug@version`` of every stored version."""
    with site.database.reading() as session:
        return {record.id: record.name for record in benchmarks.list_records(session)}


def _word(valid: bool) -> str:
    return (Judgement.VALID if valid else Judgement.INVALID).value
