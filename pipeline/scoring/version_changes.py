"""What moved between two versions of a benchmark: queries, tools and labels, added, removed or changed."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from pipeline.benchmark import Benchmark, Judgement

_NUL = "\x00"
#: Columns of ``VersionChanges.counts``.
COUNTS: dict[str, pl.DataType] = {
    "part": pl.String(),
    "before": pl.Int64(),
    "after": pl.Int64(),
    "added": pl.Int64(),
    "removed": pl.Int64(),
    "changed": pl.Int64(),
}
#: Columns of ``VersionChanges.queries`` after the id: what was added to or removed from a query's labels.
LABEL_CHANGES = ("equivalents_added", "equivalents_removed", "combinations_added", "combinations_removed")


@dataclass(frozen=True, eq=False)
class VersionChanges:
    """The difference between two versions.

    Attributes:
        counts: columns of ``COUNTS``, one row each for ``queries``, ``tools``, ``ground truth``, ``sub-queries``,
            ``equivalents`` and ``combinations``; of the last two only valid ones count. ``changed`` are those in both
            versions that differ (any text, document, domain or label); it is null where a thing is its own content.
        queries: one row a query of either version whose content or labels differ, by id: ``query_id``, ``state``
            (``added``, ``removed``, ``changed`` in text, instruction, domain or source, or ``same``),
            ``ground_truth_changed`` and the counts of ``LABEL_CHANGES``.
    """

    counts: pl.DataFrame
    queries: pl.DataFrame


def version_changes(before: Benchmark, after: Benchmark) -> VersionChanges:
    """Compare two versions of a benchmark by ids.

    Args:
        before: the older one, such as a parent.
        after: the newer one.
    """
    queries = _compared(_by_key(before.queries, ["query_id"]), _by_key(after.queries, ["query_id"]))
    tools = _compared(_by_key(before.tools, ["tool_id"]), _by_key(after.tools, ["tool_id"]))
    truths = _compared(_truths(before), _truths(after))
    place = ["query_id", "position"]
    subqueries = _compared(_by_key(before.subqueries, place), _by_key(after.subqueries, place))
    equivalents = _compared(_equivalents(before), _equivalents(after))
    combinations = _compared(_combinations(before), _combinations(after))
    parts = {
        "queries": (queries, True),
        "tools": (tools, True),
        "ground truth": (truths, True),
        "sub-queries": (subqueries, True),
        "equivalents": (equivalents, False),
        "combinations": (combinations, False),
    }
    counts = [_counted(part, compared, keyed=keyed) for part, (compared, keyed) in parts.items()]
    return VersionChanges(
        pl.DataFrame(counts, schema=COUNTS, orient="row"), _by_query(queries, truths, equivalents, combinations)
    )


def _by_key(frame: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """The key's columns and ``content``: everything else as one value, absent text the same as empty."""
    others = [name for name in frame.columns if name not in key]
    return frame.select(*key, content=pl.struct(pl.col(name).fill_null("") for name in others))


def _truths(benchmark: Benchmark) -> pl.DataFrame:
    return benchmark.ground_truth.select("query_id", content=_as_set("tool_ids"))


def _equivalents(benchmark: Benchmark) -> pl.DataFrame:
    valid = benchmark.equivalents.filter(pl.col("verdict") == Judgement.VALID.value)
    return valid.select("query_id", "position", "tool_id").unique().with_columns(content=pl.lit(""))


def _combinations(benchmark: Benchmark) -> pl.DataFrame:
    """Distinct valid combinations; C* is always one."""
    valid = benchmark.combinations.filter(pl.col("verdict") == Judgement.VALID.value)
    both = pl.concat([frame.select("query_id", "tool_ids") for frame in (benchmark.ground_truth, valid)])
    return both.select("query_id", tools=_as_set("tool_ids")).unique().with_columns(content=pl.lit(""))


def _as_set(column: str) -> pl.Expr:
    """Sorted ids in one text: no id holds a NUL, so texts are equal exactly when the sets are."""
    return pl.col(column).list.unique().list.sort().list.join(_NUL)


def _compared(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """The key's columns, ``in_before``, ``in_after`` and, for what is in both, ``differs``."""
    key = [name for name in before.columns if name != "content"]
    joined = before.with_columns(in_before=pl.lit(True)).join(
        after.with_columns(in_after=pl.lit(True)), on=key, how="full", coalesce=True, suffix="_after"
    )
    return joined.select(
        *key,
        pl.col("in_before").fill_null(False),
        pl.col("in_after").fill_null(False),
        differs=(pl.col("in_before") & pl.col("in_after") & (pl.col("content") != pl.col("content_after"))).fill_null(
            False
        ),
    )


def _counted(part: str, compared: pl.DataFrame, *, keyed: bool) -> tuple[str, int, int, int, int, int | None]:
    both = compared["in_before"] & compared["in_after"]
    before, after, shared = int(compared["in_before"].sum()), int(compared["in_after"].sum()), int(both.sum())
    return part, before, after, after - shared, before - shared, int(compared["differs"].sum()) if keyed else None


def _by_query(
    queries: pl.DataFrame, truths: pl.DataFrame, equivalents: pl.DataFrame, combinations: pl.DataFrame
) -> pl.DataFrame:
    state = (
        pl.when(~pl.col("in_before"))
        .then(pl.lit("added"))
        .when(~pl.col("in_after"))
        .then(pl.lit("removed"))
        .when("differs")
        .then(pl.lit("changed"))
        .otherwise(pl.lit("same"))
    )
    found = queries.select("query_id", state=state).join(
        truths.select("query_id", ground_truth_changed="differs"), on="query_id", how="left"
    )
    for name, labels in (("equivalents", equivalents), ("combinations", combinations)):
        counted = labels.group_by("query_id").agg(
            (~pl.col("in_before")).sum().cast(pl.Int64).alias(f"{name}_added"),
            (~pl.col("in_after")).sum().cast(pl.Int64).alias(f"{name}_removed"),
        )
        found = found.join(counted, on="query_id", how="left")
    found = found.with_columns(
        pl.col("ground_truth_changed").fill_null(False), *(pl.col(name).fill_null(0) for name in LABEL_CHANGES)
    )
    moved = (
        (pl.col("state") != "same")
        | pl.col("ground_truth_changed")
        | pl.any_horizontal(pl.col(name) > 0 for name in LABEL_CHANGES)
    )
    return found.filter(moved).sort("query_id")
