"""What to verify next: unjudged tools that public runs rank high, first where judges and repeats disagree."""

from __future__ import annotations

import json

import polars as pl

from pipeline.benchmark import EQUIVALENTS, SUBQUERIES, Benchmark, Judgement, Origin
from pipeline.formats.ranking import run_of_frame
from pipeline.jobs.benchmark_library import load_benchmark, load_compiled
from pipeline.jobs.site import Site
from pipeline.toolex.growth import growth_queue, judge_uncertainty
from store.access import benchmarks, leaderboard, runs
from store.records import BenchmarkRecord

#: Results of a run that are looked at.
DEPTH = 10
#: Columns of ``verdicts_of_versions``.
VERDICTS = {"query_id": pl.String, "position": pl.Int32, "tool_id": pl.String, "accepted": pl.Boolean}
#: Columns of ``questions``.
QUESTIONS = {
    "query_id": pl.String,
    "query": pl.String,
    "position": pl.Int32,
    "subquery": pl.String,
    "reference_tool_id": pl.String,
    "tool_id": pl.String,
    "tool": pl.String,
    "runs": pl.Int64,
    "best_rank": pl.Int64,
    "uncertainty": pl.Float64,
    "priority": pl.Float64,
}


def has_runs(site: Site, benchmark: BenchmarkRecord) -> bool:
    """Whether a public run with a ranking is on this version: without one there is nothing to look through."""
    with site.database.reading() as session:
        board = leaderboard.leaderboard(session, benchmark.id)
    return board["ranking_hash"].null_count() < board.height


def read_growth(site: Site, benchmark: BenchmarkRecord, *, depth: int = DEPTH) -> pl.DataFrame:
    """The queue of a version; columns of ``pipeline.toolex.growth.QUEUE``.

    Runs are the board's: published and public. Repeats are the verdicts of all stored versions of the same slug.

    Args:
        site: where the runs are.
        benchmark: a version with content.
        depth: results of each run that are looked at.

    Raises:
        BenchmarkError: the version has no content.
        ArtifactMissing, ArtifactDamaged: a stored file is not whole.
    """
    content, compiled = load_benchmark(site, benchmark.id), load_compiled(site, benchmark.id)
    with site.database.reading() as session:
        board = leaderboard.leaderboard(session, benchmark.id).filter(pl.col("ranking_hash").is_not_null())
        rankings = {run_id: runs.get(session, run_id).ranking_artifact for run_id in board["run_id"]}
        versions = benchmarks.list_records(session, benchmark.slug)
    ranked = {
        run_id: run_of_frame(site.artifacts.scan(artifact).filter(pl.col("rank") <= depth).collect(), compiled.target)
        for run_id, artifact in rankings.items()
        if artifact is not None
    }
    uncertainty = judge_uncertainty(verdicts_of_versions(site, content, versions))
    return growth_queue(content, ranked, compiled.target, depth=depth, uncertainty=uncertainty)


def verdicts_of_versions(site: Site, benchmark: Benchmark, versions: list[BenchmarkRecord]) -> pl.DataFrame:
    """Every verdict on a single tool that some version holds, each once however many versions copied it.

    Two versions may number the needs of a query differently. Here ``position`` is the place of the need's ground-truth
    tool among the query's labels, so that the same need has the same one everywhere.

    Args:
        site: where the versions are.
        benchmark: whose labels count.
        versions: of one slug; those without content or verdicts are passed over.
    """
    places = (
        benchmark.ground_truth.explode("tool_ids", empty_as_null=False)
        .select("query_id", truth="tool_ids")
        .with_columns(place=pl.int_range(pl.len(), dtype=pl.Int32).over("query_id"))
    )
    found = []
    for version in versions:
        if "equivalents" not in version.artifacts:
            continue
        judged = site.artifacts.get_frame(version.artifacts["equivalents"], list(EQUIVALENTS)).filter(
            pl.col("origin") != Origin.GROUND_TRUTH.value
        )
        steps = pl.DataFrame(schema=SUBQUERIES)
        if "subqueries" in version.artifacts:
            steps = site.artifacts.get_frame(version.artifacts["subqueries"], list(SUBQUERIES))
        needs = steps.select("query_id", "position", truth="tool_id").join(places, on=["query_id", "truth"])
        implied = places.join(steps, on="query_id", how="anti").select("query_id", "truth", "place", position="place")
        needs = pl.concat(
            [needs.select("query_id", "position", "place"), implied.select("query_id", "position", "place")]
        )
        found.append(
            judged.join(needs, on=["query_id", "position"])
            .with_columns(accepted=pl.col("verdict") == Judgement.VALID.value, position=pl.col("place"))
            .select(*VERDICTS, "judge", "reason")
        )
    if not found:
        return pl.DataFrame(schema=VERDICTS)
    return pl.concat(found).unique().select(VERDICTS.keys())


def questions(benchmark: Benchmark, queue: pl.DataFrame, limit: int | None = None) -> pl.DataFrame:
    """What a judge would be asked next: each tool of the queue against each need of its query.

    Args:
        benchmark: the version that the queue is of.
        queue: columns of ``pipeline.toolex.growth.QUEUE``, the most wanted first.
        limit: pairs of query and tool to take; None takes all.

    Returns:
        Columns of ``QUESTIONS``, in the queue's order and then by position.
    """
    wanted = queue.head(queue.height if limit is None else limit).with_row_index("order")
    implied = (
        benchmark.ground_truth.join(benchmark.subqueries, on="query_id", how="anti")
        .explode("tool_ids", empty_as_null=False)
        .select("query_id", pl.int_range(pl.len(), dtype=pl.Int32).over("query_id").alias("position"),
                pl.lit("", pl.String).alias("text"), pl.col("tool_ids").alias("tool_id"))
    )  # fmt: skip
    needs = pl.concat([benchmark.subqueries.select(implied.columns), implied])
    return (
        wanted.join(needs.rename({"text": "subquery", "tool_id": "reference_tool_id"}), on="query_id")
        .join(benchmark.queries.select("query_id", query="text"), on="query_id", how="left")
        .join(benchmark.tools.select("tool_id", tool="name"), on="tool_id", how="left")
        .sort("order", "position")
        .select(pl.col(name).cast(dtype) for name, dtype in QUESTIONS.items())
    )


def question_lines(asked: pl.DataFrame) -> str:
    """``questions`` as JSON Lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in asked.iter_rows(named=True))
