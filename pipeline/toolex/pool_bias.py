"""Whom the pool favours: an equivalent that only one retriever found may be credited to few others.

A benchmark whose candidates come from some retrievers cannot credit equivalents that none of them finds, and its
labels may suit the members of the pool. The report says who found what, and how every score changes without one of
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from pipeline.benchmark import Benchmark, Judgement, Origin
from pipeline.formats.content_hash import content_hash
from pipeline.run import Run
from pipeline.scoring.averages import summarise
from pipeline.scoring.compiler import compile_benchmark
from pipeline.scoring.scores import score_run
from pipeline.toolex.combine import can_serve

_KEY = ["query_id", "position", "tool_id"]


@dataclass(frozen=True, eq=False)
class PoolBias:
    """Who found the accepted equivalents.

    Attributes:
        equivalents: accepted ones besides the ground truth.
        members: one row a member: ``member``, ``found`` (accepted equivalents among its results), ``share``,
            ``only`` (those that no other member found), ``only_share``, ``precision`` (the share of its judged
            results that was accepted).
        only_one: share of the accepted equivalents that a single member found; None without any.
    """

    equivalents: int
    members: pl.DataFrame
    only_one: float | None


def _finders(benchmark: Benchmark, ranks: pl.DataFrame) -> pl.DataFrame:
    """Judged candidates with ``accepted`` and ``finders``, the members that retrieved each."""
    found = ranks.filter(pl.col("rank").is_not_null()).group_by(_KEY).agg(finders=pl.col("member"))
    return (
        benchmark.equivalents.filter(pl.col("origin") != Origin.GROUND_TRUTH.value)
        .select(*_KEY, accepted=pl.col("verdict") == Judgement.VALID.value)
        .join(found, on=_KEY, how="inner")
    )


def pool_bias(benchmark: Benchmark, ranks: pl.DataFrame) -> PoolBias:
    """Which retriever found each accepted equivalent.

    Args:
        benchmark: the expanded version.
        ranks: its ``candidate_ranks_frame``.
    """
    finders = _finders(benchmark, ranks)
    accepted = finders.filter("accepted")
    alone = pl.col("finders").list.len() == 1
    total = accepted.height
    rows = []
    for member in ranks["member"].unique(maintain_order=True):
        has = pl.col("finders").list.contains(member)
        judged, found = finders.filter(has).height, accepted.filter(has).height
        only = accepted.filter(has & alone).height
        share, only_share = (found / total, only / total) if total else (None, None)
        rows.append((member, found, share, only, only_share, found / judged if judged else None))
    schema = {
        "member": pl.String,
        "found": pl.Int64,
        "share": pl.Float64,
        "only": pl.Int64,
        "only_share": pl.Float64,
        "precision": pl.Float64,
    }
    only_one = accepted.filter(alone).height / total if total else None
    return PoolBias(total, pl.DataFrame(rows, schema=schema, orient="row"), only_one)


def without_member(benchmark: Benchmark, ranks: pl.DataFrame, member: str) -> Benchmark:
    """The benchmark as it would be had the member not been in the pool.

    Equivalents that only the member found are left out, and with them the combinations that need one. Verdicts stay as
    they are; combinations that the cap cut off are not asked for, so nothing is added.

    Args:
        benchmark: the expanded version.
        ranks: its ``candidate_ranks_frame``.
        member: who is left out.
    """
    alone = _finders(benchmark, ranks).filter(pl.col("finders") == [member]).select(_KEY)
    equivalents = benchmark.equivalents.join(alone, on=_KEY, how="anti", maintain_order="left")
    lists: dict[str, dict[int, set[str]]] = {}
    valid = equivalents.filter(pl.col("verdict") == Judgement.VALID.value).select(_KEY)
    for query_id, position, tool_id in (*valid.iter_rows(), *benchmark.subqueries.select(_KEY).iter_rows()):
        lists.setdefault(query_id, {}).setdefault(position, set()).add(tool_id)
    touched = set(alone["query_id"])
    keep = [
        is_truth
        or query_id not in touched
        or can_serve(tools, [frozenset(verified) for verified in lists[query_id].values()])
        for query_id, tools, is_truth in benchmark.combinations.select(
            "query_id", "tool_ids", "is_ground_truth"
        ).iter_rows()
    ]
    tables = {
        "tools": benchmark.tools,
        "queries": benchmark.queries,
        "ground_truth": benchmark.ground_truth,
        "subqueries": benchmark.subqueries,
        "equivalents": equivalents,
        "combinations": benchmark.combinations.filter(pl.Series(keep, dtype=pl.Boolean)),
    }
    return Benchmark(benchmark.info, **tables, content_hash=content_hash(tables), notes=benchmark.notes)


def leave_one_out(
    benchmark: Benchmark,
    ranks: pl.DataFrame,
    runs: Mapping[str, Run],
    *,
    metric: str = "NDCG",
    k: int = 10,
) -> pl.DataFrame:
    """How every run's new score changes when one member's own finds no longer count.

    Args:
        benchmark: the expanded version.
        ranks: its ``candidate_ranks_frame``.
        runs: name → run over the benchmark.
        metric: of the scores.
        k: cutoff.

    Returns:
        One row a member and run: ``member``, ``run``, ``new`` (under the whole pool), ``without`` (without the
        member), ``change`` (without minus new, never above 0), by the benchmark's headline average.
    """
    headline = benchmark.info.effective_headline.value

    def scores(labels: Benchmark) -> dict[str, float]:
        compiled = compile_benchmark(labels)
        found = {}
        for name, run in runs.items():
            summary = summarise(score_run(compiled, run, (k,)), compiled)
            row = summary.filter(view="new", metric=metric, k=k, average=headline)
            found[name] = float(row["value"].item())
        return found

    whole = scores(benchmark)
    rows = []
    for member in ranks["member"].unique(maintain_order=True):
        without = scores(without_member(benchmark, ranks, member))
        rows += [(member, name, whole[name], without[name], without[name] - whole[name]) for name in runs]
    schema = {
        "member": pl.String,
        "run": pl.String,
        "new": pl.Float64,
        "without": pl.Float64,
        "change": pl.Float64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")
