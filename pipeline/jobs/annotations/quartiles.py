"""Lift and fine-tuning gain by the length of the labelled documents: does redundancy help short documents more?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.benchmark import Benchmark
from pipeline.jobs.benchmark_library import load_benchmark
from pipeline.jobs.site import Site
from pipeline.retrieval.document_tokens import count_tokens
from pipeline.toolex.statistics import by_length_quartile


def lift_by_length(
    site: Site, version_id: int, runs: Mapping[str, str], *, metric: str = "NDCG", k: int = 10
) -> pl.DataFrame:
    """Mean lift (new minus old) of each run by quartile of documentation length.

    Args:
        site: where they are stored.
        version_id: of the benchmark.
        runs: name → artifact of a run's per-query scores on this version.
        metric: of the scores.
        k: cutoff.

    Returns:
        Columns of ``by_length_quartile``, one more a run; fractions.

    Raises:
        ArtifactMissing, ArtifactDamaged: scores are not whole.
        BenchmarkError: the version has no content.
        NotFound: there is no such version.
    """
    benchmark = load_benchmark(site, version_id)
    old, new = f"old_{metric}@{k}", f"new_{metric}@{k}"
    values = {name: _scores(site, benchmark, artifact, pl.col(new) - pl.col(old)) for name, artifact in runs.items()}
    return by_length_quartile(benchmark, _lengths(benchmark), values)


def gain_by_length(
    site: Site, version_id: int, pairs: Mapping[str, tuple[str, str]], *, metric: str = "NDCG", k: int = 10
) -> pl.DataFrame:
    """Mean gain (fine-tuned minus base, both against every valid answer) of each pair by quartile.

    Args:
        site: where they are stored.
        version_id: of the benchmark.
        pairs: name → artifacts of the per-query scores of the base and of the fine-tuned run.
        metric: of the scores.
        k: cutoff.

    Returns:
        As ``lift_by_length``.

    Raises:
        ArtifactMissing, ArtifactDamaged, BenchmarkError, NotFound: as ``lift_by_length``.
    """
    benchmark = load_benchmark(site, version_id)
    new = pl.col(f"new_{metric}@{k}")
    values = {
        name: _scores(site, benchmark, tuned, new) - _scores(site, benchmark, base, new)
        for name, (base, tuned) in pairs.items()
    }
    return by_length_quartile(benchmark, _lengths(benchmark), values)


def _scores(site: Site, benchmark: Benchmark, artifact: str, score: pl.Expr) -> npt.NDArray[np.float64]:
    """One value a query, in the benchmark's order."""
    scores = site.artifacts.get_frame(artifact).select("query_id", score.alias("value"))
    joined = benchmark.queries.select("query_id").join(scores, on="query_id", how="left", maintain_order="left")
    return joined["value"].fill_null(0.0).to_numpy().astype(np.float64)


def _lengths(benchmark: Benchmark) -> list[int]:
    """Tokens of each tool's documentation; 0 where no query is labelled with it, since nobody asks for that."""
    labelled = set(benchmark.ground_truth["tool_ids"].explode().to_list())
    rows = benchmark.tools.select("tool_id", pl.col("documentation").fill_null("")).rows()
    counts = iter(count_tokens([text for tool, text in rows if tool in labelled]).tolist())
    return [next(counts) if tool in labelled else 0 for tool, _ in rows]
