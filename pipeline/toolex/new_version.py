"""An expansion as a new version of its benchmark.

What is written depends on the labels only: no time, cost, attempt or draw, so that the same answers give the same
bytes however they were asked for. Those stand in ``provenance_frame``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import polars as pl

from pipeline.benchmark import EQUIVALENTS, SUBQUERIES, TABLES, Benchmark, BenchmarkInfo, Judgement
from pipeline.errors import BenchmarkError
from pipeline.formats.benchmark_validation import build_benchmark
from pipeline.formats.messages import listing, plural
from pipeline.toolex.expand import Expansion, QueryExpansion
from pipeline.toolex.records import AuditedCombination, Verdict
from pipeline.toolex.settings import ToolexSettings

#: Longest text of an entry of ``benchmark.toml``.
_LONGEST = 2_000


def expanded_benchmark(parent: Benchmark, expansion: Expansion, version: str) -> Benchmark:
    """The new version; tools, queries and ground truth are the parent's.

    A verdict without a valid answer is written as ``unsure``: it counts as no, and can be told from a judge's no.

    Args:
        parent: what was expanded.
        expansion: of all its queries, nothing pending.
        version: of the new benchmark, another than the parent's.

    Raises:
        BenchmarkError: something is pending, queries are missing, or the version is the parent's or unusable.
    """
    pending = [query.task.query_id for query in expansion.queries if not query.complete]
    if pending:
        raise BenchmarkError(
            f"The expansion is not finished: {plural(len(pending), 'query is', 'queries are')} pending "
            f"({listing(pending, 5)})."
        )
    missing = sorted(set(parent.queries["query_id"]) - {query.task.query_id for query in expansion.queries})
    if missing:
        raise BenchmarkError(
            f"The expansion lacks {plural(len(missing), 'query', 'queries')} of {parent.info.slug} "
            f"({listing(missing, 5)}); put its chunks together first."
        )
    if version == parent.info.version:
        raise BenchmarkError(
            f"{parent.info.slug}@{version} exists: an expansion is a new version; give it another number."
        )
    queries = expansion.queries
    frames = {
        "tools": parent.tools,
        "queries": parent.queries,
        "ground_truth": parent.ground_truth,
        "subqueries": subqueries_frame(queries),
        "equivalents": equivalents_frame(queries),
        "combinations": combinations_frame(queries),
    }
    return build_benchmark(_info(parent, expansion.settings, version), frames, expansion_notes(expansion))


def together(parts: Iterable[Expansion], parent: Benchmark) -> Expansion:
    """Chunks of one run as one expansion, in the benchmark's order.

    Raises:
        ValueError: there is no chunk, or chunks were made with different settings or pools.
    """
    chunks = list(parts)
    if not chunks or any((chunk.settings, chunk.pool) != (chunks[0].settings, chunks[0].pool) for chunk in chunks):
        raise ValueError("the chunks of an expansion must be there and share their settings and their pool")
    found = {query.task.query_id: query for chunk in chunks for query in chunk.queries}
    ordered = tuple(found[query_id] for query_id in parent.queries["query_id"] if query_id in found)
    return Expansion(chunks[0].settings, chunks[0].pool, ordered)


def _info(parent: Benchmark, settings: ToolexSettings, version: str) -> BenchmarkInfo:
    info = parent.info
    source = "; ".join(filter(None, (info.source, f"expanded with ToolEX, {settings.sentence}")))
    revision = "; ".join(filter(None, (info.revision, f"toolex {settings.hash[:16]}")))
    return replace(
        info,
        version=version,
        parents=(f"{info.slug}@{info.version}",),
        source=source[:_LONGEST],
        revision=revision[:_LONGEST],
    )


def expansion_notes(expansion: Expansion) -> tuple[str, ...]:
    """What a reader of the new version must know, in sentences."""
    settings, queries = expansion.settings, expansion.queries
    notes = [f"Expanded with ToolEX: {settings.sentence}.", f"Settings {settings.hash}."]
    failed = [query.task.query_id for query in queries if query.decomposition_failed]
    if failed:
        notes.append(
            f"decomposition_failed: {plural(len(failed), 'query keeps', 'queries keep')} C* alone: {listing(failed)}."
        )
    truncated = [query.task.query_id for query in queries if query.truncated]
    if truncated:
        notes.append(
            f"truncated: of {plural(len(truncated), 'query', 'queries')} only the best {settings.cap} combinations "
            f"were audited: {listing(truncated)}."
        )
    verdicts = sum(_unanswered(verdict) for query in queries for row in query.verdicts or () for verdict in row)
    audits = sum(_unanswered(made) for query in queries for made in query.combinations or ())
    if verdicts or audits:
        notes.append(
            f"Without a valid answer, and so not accepted: {plural(verdicts, 'candidate')}, "
            f"{plural(audits, 'combination')}."
        )
    return tuple(notes)


def _unanswered(made: Verdict | AuditedCombination) -> bool:
    return made.provenance is not None and bool(made.provenance.failure)


def _judgement(made: Verdict | AuditedCombination) -> str:
    if made.accepted:
        return Judgement.VALID.value
    return Judgement.UNSURE.value if _unanswered(made) else Judgement.INVALID.value


def _judge(made: Verdict | AuditedCombination) -> str:
    return "" if made.provenance is None else made.provenance.judge


def subqueries_frame(queries: Iterable[QueryExpansion]) -> pl.DataFrame:
    """Rows of the table ``subqueries``; none for a query whose decomposition failed."""
    rows = [
        (subquery.query_id, subquery.position, subquery.text, subquery.tool_id)
        for query in queries
        for subquery in query.decomposition.subqueries
    ]
    return pl.DataFrame(rows, schema=SUBQUERIES, orient="row")


def equivalents_frame(queries: Iterable[QueryExpansion]) -> pl.DataFrame:
    """Rows of the table ``equivalents``, every verdict, in rank order."""
    rows = [
        (
            verdict.subquery.query_id,
            verdict.subquery.position,
            verdict.candidate.tool_id,
            _judgement(verdict),
            verdict.reason,
            _judge(verdict),
            verdict.candidate.rank,
            verdict.origin.value,
            verdict.same_operation,
            verdict.inputs_available,
        )
        for query in queries
        for row in query.verdicts or ()
        for verdict in row
    ]
    return pl.DataFrame(rows, schema=EQUIVALENTS, orient="row")


def combinations_frame(queries: Iterable[QueryExpansion]) -> pl.DataFrame:
    """Rows of the table ``combinations``, C* first, then by score."""
    rows = [
        (
            made.query_id,
            list(made.combination.tool_ids),
            made.is_truth,
            made.combination.score,
            _judgement(made),
            made.reason,
            _judge(made),
            made.coverage,
            made.dependency_consistent,
        )
        for query in queries
        for made in query.combinations or ()
    ]
    return pl.DataFrame(rows, schema=TABLES["combinations"], orient="row")
