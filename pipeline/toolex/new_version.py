"""An expansion as a new version of its benchmark.

What is written depends on the labels only: no time, cost, attempt or draw, so that the same answers give the same
bytes however they were asked for. Those stand in the provenance beside it.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from pipeline.benchmark import Benchmark, BenchmarkInfo, Judgement
from pipeline.errors import BenchmarkError
from pipeline.formats.benchmark_validation import build_benchmark
from pipeline.formats.messages import listing, plural
from pipeline.toolex.expand import Expansion
from pipeline.toolex.frames import ExpansionFrames, frames_of
from pipeline.toolex.settings import ToolexSettings

#: Longest text of an entry of ``benchmark.toml``.
_LONGEST = 2_000


def expanded_benchmark(parent: Benchmark, expansion: Expansion, version: str) -> Benchmark:
    """The new version from an expansion of all queries; see ``new_version``."""
    return new_version(parent, expansion.settings, frames_of(expansion), version)


def new_version(parent: Benchmark, settings: ToolexSettings, frames: ExpansionFrames, version: str) -> Benchmark:
    """The new version; tools, queries and ground truth are the parent's.

    A verdict without a valid answer is written as ``unsure``: it counts as no, and can be told from a judge's no.

    Args:
        parent: what was expanded.
        settings: how; they are named in the description.
        frames: of all its queries, nothing pending; see ``together``.
        version: of the new benchmark, another than the parent's.

    Raises:
        BenchmarkError: something is pending, queries are missing, or the version is the parent's or unusable.
    """
    pending = frames.pending
    if pending:
        raise BenchmarkError(
            f"The expansion is not finished: {plural(len(pending), 'query is', 'queries are')} pending "
            f"({listing(pending, 5)})."
        )
    missing = sorted(set(parent.queries["query_id"]) - set(frames.states["query_id"]))
    if missing:
        raise BenchmarkError(
            f"The expansion lacks {plural(len(missing), 'query', 'queries')} of {parent.info.slug} "
            f"({listing(missing, 5)}); put its chunks together first."
        )
    if version == parent.info.version:
        raise BenchmarkError(
            f"{parent.info.slug}@{version} exists: an expansion is a new version; give it another number."
        )
    tables = {
        "tools": parent.tools,
        "queries": parent.queries,
        "ground_truth": parent.ground_truth,
        "subqueries": frames.subqueries,
        "equivalents": frames.equivalents,
        "combinations": frames.combinations,
    }
    return build_benchmark(_info(parent, settings, version), tables, expansion_notes(settings, frames))


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


def expansion_notes(settings: ToolexSettings, frames: ExpansionFrames) -> tuple[str, ...]:
    """What a reader of the new version must know, in sentences."""
    notes = [f"Expanded with ToolEX: {settings.sentence}.", f"Settings {settings.hash}."]
    failed = frames.states.filter("decomposition_failed")["query_id"].to_list()
    if failed:
        notes.append(
            f"decomposition_failed: {plural(len(failed), 'query keeps', 'queries keep')} C* alone: {listing(failed)}."
        )
    truncated = frames.states.filter("truncated")["query_id"].to_list()
    if truncated:
        notes.append(
            f"truncated: of {plural(len(truncated), 'query', 'queries')} only the best {settings.cap} combinations "
            f"were audited: {listing(truncated)}."
        )
    unanswered = pl.col("verdict") == Judgement.UNSURE.value
    verdicts, audits = frames.equivalents.filter(unanswered).height, frames.combinations.filter(unanswered).height
    if verdicts or audits:
        notes.append(
            f"Without a valid answer, and so not accepted: {plural(verdicts, 'candidate')}, "
            f"{plural(audits, 'combination')}."
        )
    return tuple(notes)
