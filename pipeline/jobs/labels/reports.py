"""The report on a reviewed sample, as words and files; no verdict is ever beside a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from pipeline.formats.figures import points, whole
from pipeline.formats.paired_table import run_names
from pipeline.formats.tables import TableFormat, write_table
from pipeline.jobs.site import Site
from pipeline.scoring.kernel import METRICS
from pipeline.toolex.validation import (
    Bucket,
    Review,
    ReviewedItem,
    ValidationReport,
    corrected_band,
    validation_report,
)
from store.access import benchmarks, leaderboard, reviews, validation
from store.access.reviews import ReviewRecord
from store.access.validation import ItemRecord, SampleRecord
from store.errors import Conflict
from store.records import BenchmarkRecord
from store.validation_models import ReviewerRole, ReviewSlot

#: Columns of ``report_frame`` before one for each bucket; ``scope`` is ``all`` or a domain. ``precision`` is of decided
#: items, ``precision_least`` … ``bounds_high`` of reviewed ones; see ``pipeline.toolex.validation.Bounds``.
REPORT: dict[str, pl.DataType] = {
    "scope": pl.String(),
    "domain": pl.String(),
    "items": pl.Int64(),
    "reviewed": pl.Int64(),
    "decided": pl.Int64(),
    "valid": pl.Int64(),
    "precision": pl.Float64(),
    "precision_low": pl.Float64(),
    "precision_high": pl.Float64(),
    "to_adjudicate": pl.Int64(),
    "precision_least": pl.Float64(),
    "precision_most": pl.Float64(),
    "bounds_low": pl.Float64(),
    "bounds_high": pl.Float64(),
    "agreement": pl.Float64(),
    "kappa": pl.Float64(),
}
_SAID = {f"{slot}_{what}": pl.Boolean() if what == "valid" else pl.String() for slot in ("first", "second", "third")
         for what in ("valid", "bucket", "reason")}  # fmt: skip
#: Columns of ``items_frame``. Which of two people is first and which second differs from item to item.
REVIEWED_ITEMS: dict[str, pl.DataType] = {
    "item": pl.String(),
    "query_id": pl.String(),
    "tool_ids": pl.List(pl.String()),
    "domain": pl.String(),
    "subqueries": pl.Int64(),
    "stratum_items": pl.Int64(),
    **_SAID,
    "valid": pl.Boolean(),
    "buckets": pl.List(pl.String()),
    "judge": pl.String(),
    "judge_reason": pl.String(),
}
#: Columns of ``corrected_frame``; the band reaches over every outcome of the ``to_adjudicate`` open disagreements.
CORRECTED: dict[str, pl.DataType] = {
    "run_id": pl.String(),
    "run": pl.String(),
    "metric": pl.String(),
    "k": pl.Int64(),
    "old": pl.Float64(),
    "new": pl.Float64(),
    "corrected": pl.Float64(),
    "corrected_low": pl.Float64(),
    "corrected_high": pl.Float64(),
    "to_adjudicate": pl.Int64(),
}


@dataclass(frozen=True, eq=False)
class SampleReport:
    """What a sample says so far.

    Attributes:
        benchmark: the reviewed version.
        reviewers: people who gave a verdict.
        adjudicators: people who are invited to decide disagreements.
        overall: over all items.
        domains: name → report over its items; empty where there is one domain only.
    """

    sample: SampleRecord
    benchmark: BenchmarkRecord
    reviewers: int
    adjudicators: int
    overall: ValidationReport
    domains: Mapping[str, ValidationReport]

    @property
    def cutoff(self) -> int:
        """The K that metrics are corrected at: 10 where the version has figures at 10, else its smallest."""
        ks = self.benchmark.ks or (10,)
        return 10 if 10 in ks else min(ks)


def read_report(site: Site, sample_id: str) -> SampleReport:
    """The report on a sample, closed or not.

    Raises:
        NotFound: there is no such sample.
    """
    with site.database.reading() as session:
        sample = validation.get_sample(session, sample_id)
        benchmark = benchmarks.get_by_id(session, sample.benchmark_version_id)
        items = validation.items(session, sample_id)
        said = reviews.verdicts(session, sample_id)
        invited = validation.people(session, sample_id)
    reviewed = reviewed_items(items, said)
    names = sorted({item.domain for item in items})
    by_domain = {
        name: [one for item, one in zip(items, reviewed, strict=True) if item.domain == name] for name in names
    }
    return SampleReport(
        sample,
        benchmark,
        len({review.reviewer_id for review in said}),
        sum(person.role == ReviewerRole.ADJUDICATOR.value for person in invited),
        validation_report(reviewed),
        {name: validation_report(found) for name, found in by_domain.items()} if len(names) > 1 else {},
    )


def reviewed_items(items: Sequence[ItemRecord], said: Sequence[ReviewRecord]) -> list[ReviewedItem]:
    """The items with their verdicts, in the order of ``items``; who gave one is not told, only in which slot."""
    by_item: dict[str, dict[str, Review]] = {}
    for one in said:
        assert one.valid is not None
        # A word that is none of today's does not hide the verdict, nor the report.
        known = one.bucket in list(Bucket)
        bucket = None if one.bucket is None else Bucket(one.bucket) if known else Bucket.OTHER
        by_item.setdefault(one.item, {})[one.slot] = Review(one.slot, one.valid, one.reason, bucket)
    slots = [slot.value for slot in ReviewSlot]
    return [ReviewedItem(item.item, *(by_item.get(item.item, {}).get(slot) for slot in slots)) for item in items]


def headline(report: SampleReport) -> str:
    """The main figure in words, without a full stop: precision, or between what it lies while disagreements are open.

    Only a report with a reviewed item has one.
    """
    found = report.overall
    if not found.to_adjudicate:
        return f"{points(found.precision.value)} % of the accepted combinations are valid"
    undecided, many = whole(found.to_adjudicate), found.to_adjudicate > 1
    if report.sample.is_closed:
        waiting = f"{undecided} {'were' if many else 'was'} not decided by a third reviewer"
    else:
        waiting = f"{undecided} {'wait' if many else 'waits'} for a third reviewer"
    return (
        f"{whole(found.valid)} of {whole(found.reviewed)} reviewed items {'is' if found.valid == 1 else 'are'} valid; "
        f"{waiting}, so precision lies between {points(found.bounds.least)} and {points(found.bounds.most)} % of the "
        "reviewed ones"
    )


def nobody_decides(report: SampleReport) -> str:
    """That open disagreements have nobody who could decide them; empty otherwise."""
    if not report.overall.to_adjudicate or report.adjudicators:
        return ""
    return "Nobody was invited to decide disagreements." if report.sample.is_closed else (
        "Nobody is invited to decide disagreements yet: without a third reviewer they stay open."
    )  # fmt: skip


def report_frame(report: SampleReport) -> pl.DataFrame:
    """The report as a table: all items, then each domain; columns of ``REPORT`` and one a bucket."""
    rows = [_row("all", "", report.overall)]
    rows += [_row("domain", name, found) for name, found in report.domains.items()]
    return pl.DataFrame(rows, schema=REPORT | {bucket.value: pl.Float64() for bucket in Bucket})


def _row(scope: str, domain: str, found: ValidationReport) -> dict[str, Any]:
    return {
        "scope": scope,
        "domain": domain,
        "items": found.items,
        "reviewed": found.reviewed,
        "decided": found.decided,
        "valid": found.valid,
        "precision": found.precision.value,
        "precision_low": found.precision.low,
        "precision_high": found.precision.high,
        "to_adjudicate": found.to_adjudicate,
        "precision_least": found.bounds.least,
        "precision_most": found.bounds.most,
        "bounds_low": found.bounds.low,
        "bounds_high": found.bounds.high,
        "agreement": found.agreement,
        "kappa": found.kappa,
        **{bucket.value: found.taxonomy[bucket] for bucket in Bucket},
    }


def report_json(report: SampleReport, corrected: pl.DataFrame | None = None) -> dict[str, Any]:
    """The report in the shape of ``equirank validation report --format json``; fractions in full precision.

    Args:
        report: see ``read_report``.
        corrected: see ``corrected_frame``.
    """

    def described(found: ValidationReport) -> dict[str, Any]:
        values = _row("", "", found)
        del values["scope"], values["domain"]
        taxonomy = {bucket.value: values.pop(bucket.value) for bucket in Bucket}
        return values | {"confidence": found.precision.confidence, "taxonomy": taxonomy}

    sample, benchmark = report.sample, report.benchmark
    return {
        "sample": {
            "id": sample.id,
            "size": sample.size,
            "seed": sample.seed,
            "note": sample.note,
            "made": sample.created_at.isoformat(timespec="seconds"),
            "closed": None if sample.closed_at is None else sample.closed_at.isoformat(timespec="seconds"),
            "reviewers": report.reviewers,
            "adjudicators": report.adjudicators,
        },
        "benchmark": {"slug": benchmark.slug, "version": benchmark.version, "hash": benchmark.content_hash},
        "all": described(report.overall),
        "domains": {name: described(found) for name, found in report.domains.items()},
        "corrected": [] if corrected is None else corrected.to_dicts(),
    }


def items_frame(site: Site, sample_id: str) -> pl.DataFrame:
    """Every item of a closed sample with what was said of it, without names; columns of ``REVIEWED_ITEMS``.

    Raises:
        NotFound: there is no such sample.
        Conflict: it is not closed: its verdicts must not be read by those who still review.
    """
    with site.database.reading() as session:
        if not validation.get_sample(session, sample_id).is_closed:
            raise Conflict(
                "single verdicts can be read when the sample is closed, so that reviews stay blind until then"
            )
        items = validation.items(session, sample_id)
        said = reviews.verdicts(session, sample_id)
    rows = []
    for item, found in zip(items, reviewed_items(items, said), strict=True):
        row: dict[str, Any] = {
            "item": item.item,
            "query_id": item.query_id,
            "tool_ids": list(item.tool_ids),
            "domain": item.domain,
            "subqueries": item.subqueries,
            "stratum_items": item.stratum_items,
            "judge": item.judge,
            "judge_reason": item.reason,
            "valid": found.deciding.valid if found.deciding is not None else None,
            "buckets": [bucket.value for bucket in found.buckets],
        }
        for slot, review in (("first", found.first), ("second", found.second), ("third", found.third)):
            row[f"{slot}_valid"] = review.valid if review else None
            row[f"{slot}_bucket"] = review.bucket.value if review and review.bucket else None
            row[f"{slot}_reason"] = review.reason if review else None
        rows.append(row)
    return pl.DataFrame(rows, schema=REVIEWED_ITEMS)


def corrected_frame(site: Site, benchmark: BenchmarkRecord, found: ValidationReport, k: int = 10) -> pl.DataFrame:
    """The new metrics of the board's public runs, as they would be if only the valid share of labels counted.

    Args:
        site: where the board is.
        benchmark: the reviewed version; its headline average is taken.
        found: precision of its accepted combinations; see ``pipeline.toolex.validation.corrected_band``.
        k: cutoff.

    Returns:
        Columns of ``CORRECTED``, by metric and then by rank; runs without both figures are left out, and all of them
        where nothing is decided yet.
    """
    rows: list[dict[str, Any]] = []
    if found.precision.value is None:
        return pl.DataFrame(rows, schema=CORRECTED)
    with site.database.reading() as session:
        boards = {metric: leaderboard.leaderboard(session, benchmark.id, metric=metric, k=k) for metric in METRICS}
    for metric, board in boards.items():
        names = run_names(board)
        for name, run_id, old, new in zip(names, board["run_id"], board["old"], board["new"], strict=True):
            if old is None or new is None:
                continue
            band = corrected_band(old, new, found)
            rows.append(
                {
                    "run_id": run_id,
                    "run": name,
                    "metric": metric,
                    "k": k,
                    "old": old,
                    "new": new,
                    "corrected": band.value,
                    "corrected_low": band.low,
                    "corrected_high": band.high,
                    "to_adjudicate": found.to_adjudicate,
                }
            )
    return pl.DataFrame(rows, schema=CORRECTED)


def csv_text(frame: pl.DataFrame) -> str:
    """A frame as CSV that no spreadsheet runs formulas of; lists are joined."""
    lists = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.List)]
    return write_table(frame.with_columns(pl.col(name).list.join("; ") for name in lists), TableFormat.CSV)
