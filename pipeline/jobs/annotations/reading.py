"""What a finished expansion says, from the frames that stand beside the version it made; cheap enough for a page."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection

import polars as pl

from pipeline.errors import BenchmarkError
from pipeline.formats.ranking import run_of_frame
from pipeline.jobs.annotations.working import chunk_frames
from pipeline.jobs.benchmark_library import load_benchmark, load_compiled
from pipeline.jobs.site import Site
from pipeline.scoring.version import COMPILER_VERSION, SCORER_VERSION
from pipeline.toolex import pool_bias as pools
from pipeline.toolex import statistics
from pipeline.toolex.pool_bias import PoolBias
from pipeline.toolex.provenance import CANDIDATE_RANKS, PROVENANCE, QUERY_STATES
from pipeline.toolex.settings import Stage
from store.access import annotations as stored
from store.access import benchmarks, leaderboard, rankings
from store.access.annotations import AnnotationRecord
from store.cache import FileCache
from store.records import BenchmarkRecord, RunRecord

#: Columns of ``failures``.
FAILURES = {
    "stage": pl.String,
    "query_id": pl.String,
    "position": pl.Int32,
    "tool_ids": pl.List(pl.String),
    "judge": pl.String,
    "failure": pl.String,
}
#: Columns of ``leave_one_out``.
LEFT_OUT = {
    "member": pl.String,
    "run": pl.String,
    "new": pl.Float64,
    "without": pl.Float64,
    "change": pl.Float64,
}
_EMPTY = {
    "states": pl.DataFrame(schema=QUERY_STATES),
    "provenance": pl.DataFrame(schema=PROVENANCE),  # type: ignore[arg-type]
    "ranks": pl.DataFrame(schema=CANDIDATE_RANKS),
}
#: Raise it when ``leave_one_out`` could come out different.
_FORMAT = "1"


def expansion_of(site: Site, version_id: int) -> AnnotationRecord | None:
    """The expansion that made a version; None for one that was imported."""
    with site.database.reading() as session:
        return stored.that_made(session, version_id)


def table1(site: Site, version_id: int) -> pl.DataFrame:
    """Table 1 of a version; see ``pipeline.toolex.statistics.table_one``.

    Raises:
        ArtifactMissing, ArtifactDamaged: a table is not whole.
        BenchmarkError: the version has no content.
        NotFound: there is no such version.
    """
    made = expansion_of(site, version_id)
    frame = None if made is None else states(site, made.id)
    return statistics.table_one(load_benchmark(site, version_id), frame)


def acceptance(site: Site, version_id: int) -> pl.DataFrame:
    """How many candidates each judge accepted, by rank; see ``pipeline.toolex.statistics.acceptance_by_rank``.

    Raises:
        ArtifactMissing, ArtifactDamaged, BenchmarkError, NotFound: as ``table1``.
    """
    return statistics.acceptance_by_rank(load_benchmark(site, version_id).equivalents)


def audits(site: Site, version_id: int) -> pl.DataFrame:
    """How each judge of combinations decided; see ``pipeline.toolex.statistics.audits_by_judge``.

    Raises:
        ArtifactMissing, ArtifactDamaged, BenchmarkError, NotFound: as ``table1``.
    """
    return statistics.audits_by_judge(load_benchmark(site, version_id).combinations)


def states(site: Site, annotation_id: str, columns: Collection[str] = tuple(QUERY_STATES)) -> pl.DataFrame:
    """What became of each query, as far as the expansion is; columns of ``QUERY_STATES``, all or some.

    Raises:
        ArtifactMissing, ArtifactDamaged: a frame is not whole.
        NotFound: there is no such expansion.
    """
    return _frame(site, annotation_id, "states", columns)


def provenance(site: Site, annotation_id: str, columns: Collection[str] = tuple(PROVENANCE)) -> pl.DataFrame:
    """Who gave each verdict and what it took, as far as the expansion is; columns of ``PROVENANCE``, all or some.

    Raises:
        ArtifactMissing, ArtifactDamaged, NotFound: as ``states``.
    """
    return _frame(site, annotation_id, "provenance", columns)


def failures(site: Site, annotation_id: str) -> pl.DataFrame:
    """Questions without a valid answer, by stage; columns of ``FAILURES``.

    A decomposition counts once a query, when no draw was a bijection; its failure is what was wrong with the last one.

    Raises:
        ArtifactMissing, ArtifactDamaged, NotFound: as ``states``.
    """
    asked = provenance(site, annotation_id, FAILURES)
    first = pl.col("stage") == Stage.DECOMPOSE.value
    last = asked.filter(first).group_by("query_id").last().drop("failure")
    kept = states(site, annotation_id, ("query_id", "decomposition_failed", "reason"))
    lost = kept.filter("decomposition_failed").join(last, on="query_id", how="left", maintain_order="left")
    undivided = lost.with_columns(stage=pl.lit(Stage.DECOMPOSE.value), failure=pl.col("reason"))
    later = asked.filter(~first & (pl.col("failure") != ""))
    order = pl.Enum([stage.value for stage in Stage])
    return (
        pl.concat([undivided.select(FAILURES.keys()), later.select(FAILURES.keys())])
        .cast(FAILURES)  # type: ignore[arg-type]
        .sort(pl.col("stage").cast(order), maintain_order=True)
    )


def pool_bias(site: Site, annotation_id: str) -> PoolBias:
    """Which retriever found each accepted equivalent.

    Raises:
        ArtifactMissing, ArtifactDamaged, NotFound: as ``states``.
        BenchmarkError: the expansion is not done.
    """
    record, version = _made(site, annotation_id)
    return pools.pool_bias(load_benchmark(site, version.id), _frame(site, record.id, "ranks"))


def leave_one_out(site: Site, annotation_id: str, *, metric: str = "NDCG", k: int = 10) -> pl.DataFrame:
    """How the new score of every public run on the new version changes without one member's own finds.

    Worked out once for the same runs, and kept.

    Args:
        site: where the runs are.
        annotation_id: of a finished expansion.
        metric: of the scores.
        k: cutoff.

    Returns:
        Columns of ``LEFT_OUT``; ``run`` is an id. See ``pipeline.toolex.pool_bias.leave_one_out``.

    Raises:
        ArtifactMissing, ArtifactDamaged, BenchmarkError, NotFound: as ``pool_bias``.
    """
    record, version = _made(site, annotation_id)
    shown = board_runs(site, version.id)
    if not shown:
        return pl.DataFrame(schema=LEFT_OUT)
    said = [version.content_hash, version.headline, record.artifacts["ranks"], metric, k]
    said += [SCORER_VERSION, COMPILER_VERSION, *sorted(f"{run.id} {run.ranking_hash}" for run in shown)]
    key = f"{_FORMAT}-{hashlib.sha256(json.dumps(said).encode()).hexdigest()}.parquet"
    cache = FileCache.from_settings(site.settings, "leave-one-out")
    known = cache.get(key)
    if known is not None:
        try:
            return pl.read_parquet(known)
        except (OSError, pl.exceptions.PolarsError):
            cache.discard(key)
    target = load_compiled(site, version.id).target
    ranked = {run.id: run_of_frame(site.artifacts.get_frame(run.ranking_artifact or ""), target) for run in shown}
    ranks = _frame(site, record.id, "ranks")
    found = pools.leave_one_out(load_benchmark(site, version.id), ranks, ranked, metric=metric, k=k)
    cache.put(key, found.write_parquet)
    return found


def board_runs(site: Site, version_id: int) -> list[RunRecord]:
    """The runs of a version's leaderboard whose rankings are stored, in the board's order.

    Raises:
        NotFound: there is no such version.
    """
    with site.database.reading() as session:
        board = leaderboard.leaderboard(session, version_id)
        known = {one.run.id: one.run for one in rankings.with_ranking(session, [version_id])}
    return [known[run_id] for run_id in board["run_id"] if run_id in known]


def _frame(site: Site, annotation_id: str, name: str, columns: Collection[str] | None = None) -> pl.DataFrame:
    """A frame of an expansion: the whole beside its version, or its finished chunks under one another."""
    with site.database.reading() as session:
        record = stored.get(session, annotation_id)
        chunks = [] if record.done else stored.chunks(session, record.id)
    wanted = None if columns is None else list(columns)
    if record.done:
        return site.artifacts.get_frame(record.artifacts[name], wanted)
    parts = [chunk_frames(site, chunk, (name,))[name] for chunk in chunks]
    whole = pl.concat([_EMPTY[name], *parts])
    return whole if wanted is None else whole.select(wanted)


def _made(site: Site, annotation_id: str) -> tuple[AnnotationRecord, BenchmarkRecord]:
    """A finished expansion with its version."""
    with site.database.reading() as session:
        record = stored.get(session, annotation_id)
        if record.made_version_id is None:
            raise BenchmarkError(
                f"the expansion {record.id[:12]} is not done: version {record.version} is there once every query is "
                "through all stages"
            )
        return record, benchmarks.get_by_id(session, record.made_version_id)
