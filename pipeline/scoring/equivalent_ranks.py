"""How high a run ranks the annotated tool, the best equivalent, and a random tool that is neither (SCORING §3).

Only queries with at least one equivalent outside C* take part. What counts as an equivalent is the compiled
benchmark's ``equivalents_basis``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numba
import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.identifiers import hash_bytes
from pipeline.run import Run
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.membership import relevant_rows
from pipeline.scoring.random_words import below, mix

#: A random negative comes from this many first results, and only where there are that many.
NEGATIVE_DEPTH = 100

#: Ranks that the curves show.
CURVE_RANKS = 20

SEED = 70_321


class Target(StrEnum):
    """What a curve follows."""

    TRUTH = "truth"
    EQUIVALENT = "equivalent"
    NEGATIVE = "negative"


class Found(StrEnum):
    """What a query's first K results hold."""

    BOTH = "both"
    ONLY_TRUTH = "only_truth"
    ONLY_EQUIVALENT = "only_equivalent"
    NEITHER = "neither"


@dataclass(frozen=True, eq=False)
class RankCurves:
    """Cumulative distributions of the best ranks of one run.

    Attributes:
        curves: one row a target and rank r: ``target``, ``rank``, ``queries`` (whose best rank is ≤ r), ``n``,
            ``fraction`` (queries / n). The negative's rows are missing where ``why_no_negative`` says so.
        queries: queries with an equivalent outside C*.
        negatives: those of them for which a negative could be drawn; the negative's n.
        why_no_negative: why the random negative has no curve, in words; empty when it has one.
    """

    curves: pl.DataFrame
    queries: int
    negatives: int
    why_no_negative: str


def negative_ranks(compiled: CompiledBenchmark, run: Run, seed: int = SEED) -> npt.NDArray[np.int32]:
    """The 1-based rank of one random non-relevant tool among each query's first 100 results; int32 (queries,).

    Drawn uniformly, by the query's id and the seed alone, so that it is the same in every view of the run; 0 where
    the run is shallower than 100 or holds only relevant tools there.
    """
    out = np.zeros(len(compiled.queries), dtype=np.int32)
    _draw(
        run.offsets,
        relevant_rows(compiled, run),
        compiled.queries.blob,
        compiled.queries.offsets,
        np.uint64(seed),
        NEGATIVE_DEPTH,
        out,
    )
    return out


def rank_table(
    per_query: pl.DataFrame,
    compiled: CompiledBenchmark,
    negatives: npt.NDArray[np.int32] | None = None,
    *,
    domain: str | None = None,
    k: int = 10,
) -> pl.DataFrame:
    """The queries behind the curves.

    Args:
        per_query: ``RunScores.per_query``.
        compiled: the labels.
        negatives: of ``negative_ranks``; None when the ranking is not at hand.
        domain: only queries of this domain.
        k: cutoff of the four-way split.

    Returns:
        One row a query with an equivalent outside C*: ``query_id``, ``domain``, ``source``, ``retrieved``,
        ``truth_rank``, ``equivalent_rank``, ``negative_rank`` (null when not retrieved or not drawn) and ``found``
        (of ``Found``, within the first k).
    """
    drawn = np.zeros(per_query.height, dtype=np.int32) if negatives is None else negatives
    table = per_query.select(
        "query_id",
        "domain",
        "source",
        "retrieved",
        truth_rank="first_truth_rank",
        equivalent_rank="best_equivalent_rank",
        negative_rank=pl.Series(drawn),
    ).with_columns(pl.when(pl.col("negative_rank") > 0).then("negative_rank"))
    keep = np.diff(compiled.outside_offsets) > 0
    table = table.filter(pl.Series(keep))
    if domain is not None:
        table = table.filter(pl.col("domain") == domain)
    truth = (pl.col("truth_rank") <= k).fill_null(False)
    equivalent = (pl.col("equivalent_rank") <= k).fill_null(False)
    return table.with_columns(
        found=pl.when(truth & equivalent)
        .then(pl.lit(Found.BOTH.value))
        .when(truth)
        .then(pl.lit(Found.ONLY_TRUTH.value))
        .when(equivalent)
        .then(pl.lit(Found.ONLY_EQUIVALENT.value))
        .otherwise(pl.lit(Found.NEITHER.value))
    )


def rank_curves(table: pl.DataFrame, ranks: int = CURVE_RANKS) -> RankCurves:
    """The curves of ``rank_table``, for r = 1 … ``ranks``; a query whose target is not retrieved never counts."""
    negatives = int(table["negative_rank"].count())
    reason = ""
    if table.height == 0:
        reason = "No query has an equivalent outside the ground truth."
    elif negatives == 0:
        deep = int((table["retrieved"] >= NEGATIVE_DEPTH).sum())
        reason = (
            f"Nothing was drawn at random: the ranking is not at hand, or its first {NEGATIVE_DEPTH} are all valid."
            if deep
            else f"The run has fewer than {NEGATIVE_DEPTH} results for every query, too few to draw a random one from."
        )
    rows: list[tuple[str, int, int, int, float]] = []
    for target in Target:
        n = negatives if target is Target.NEGATIVE else table.height
        if n == 0:
            continue
        found = table[f"{target}_rank"].drop_nulls().to_numpy()
        reached = np.cumsum(np.bincount(found[found <= ranks], minlength=ranks + 1))[1:]
        rows += [(target.value, r, count, n, count / n) for r, count in enumerate(reached.tolist(), start=1)]
    schema = {
        "target": pl.String,
        "rank": pl.Int32,
        "queries": pl.Int64,
        "n": pl.Int64,
        "fraction": pl.Float64,
    }
    return RankCurves(pl.DataFrame(rows, schema=schema, orient="row"), table.height, negatives, reason)


def queries_at(table: pl.DataFrame, target: Target, rank: int) -> pl.DataFrame:
    """The queries behind one point of a curve: those whose best rank of ``target`` is at most ``rank``, best first."""
    column = f"{target}_rank"
    return table.filter(pl.col(column) <= rank).sort(column, "query_id")


def four_way_split(table: pl.DataFrame) -> pl.DataFrame:
    """How many queries of ``rank_table`` hold what in their first K.

    Returns:
        One row for each of ``Found``, in its order: ``found``, ``queries``, ``n``, ``fraction`` (null when n is 0).
    """
    counts = [int((table["found"] == found.value).sum()) for found in Found]
    n = table.height
    return pl.DataFrame(
        {
            "found": [found.value for found in Found],
            "queries": counts,
            "n": [n] * len(counts),
            "fraction": [count / n if n else None for count in counts],
        },
        schema={"found": pl.String, "queries": pl.Int64, "n": pl.Int64, "fraction": pl.Float64},
    )


@numba.njit(cache=True, nogil=True)
def _draw(run_offsets, relevant, blob, id_offsets, seed, depth, out):  # type: ignore[no-untyped-def]
    for q in range(len(run_offsets) - 1):
        start = run_offsets[q]
        if run_offsets[q + 1] - start < depth:
            continue
        choices = 0
        for r in range(depth):
            choices += not relevant[start + r]
        if choices == 0:
            continue
        word = mix(mix(seed) ^ hash_bytes(blob, id_offsets[q], id_offsets[q + 1]))
        wanted = np.int64(below(word, np.uint64(choices)))
        for r in range(depth):
            if not relevant[start + r]:
                if wanted == 0:
                    out[q] = r + 1
                    break
                wanted -= 1
