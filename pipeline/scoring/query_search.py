"""Find queries: by their words, by what their labels hold, and by what runs make of them."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import polars as pl

from pipeline.benchmark import Benchmark
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.gain_table import check_same_queries

#: ``tools`` is the size of C*, ``combinations`` counts distinct valid ones with C*, ``equivalents`` distinct valid
#: tools outside C*.
QUERY_TABLE = {
    "query_id": pl.String,
    "text": pl.String,
    "instruction": pl.String,
    "domain": pl.String,
    "source": pl.String,
    "tools": pl.Int32,
    "combinations": pl.Int32,
    "equivalents": pl.Int32,
}

_TERM = re.compile(r'"([^"]+)"|(\S+)')


@dataclass(frozen=True)
class Range:
    """Whole numbers from ``low`` to ``high``, ends included; None is open."""

    low: int | None = None
    high: int | None = None

    def contains(self, column: str) -> pl.Expr:
        """Whether the column lies in the range."""
        inside = pl.lit(True)
        if self.low is not None:
            inside = inside & (pl.col(column) >= self.low)
        if self.high is not None:
            inside = inside & (pl.col(column) <= self.high)
        return inside


@dataclass(frozen=True)
class QueryFilter:
    """Which queries to show; the defaults show all.

    Attributes:
        text: words that must all occur in the text, instruction or id, in any order and case; a phrase in double
            quotes must occur as it is.
        domains: only these; None is all.
        sources: only these; None is all.
        tools: number of tools in C*.
        combinations: number of valid combinations.
        equivalents: number of equivalents outside C*.
    """

    text: str = ""
    domains: Collection[str] | None = None
    sources: Collection[str] | None = None
    tools: Range = Range()
    combinations: Range = Range()
    equivalents: Range = Range()


def query_table(benchmark: Benchmark, compiled: CompiledBenchmark) -> pl.DataFrame:
    """All queries with what their labels hold; columns of ``QUERY_TABLE``, in the benchmark's order."""
    counts = pl.DataFrame(
        {
            "query_id": pl.Series(compiled.queries.ids, dtype=pl.String),
            "tools": np.diff(compiled.truth_offsets).astype(np.int32),
            "combinations": np.diff(compiled.combination_offsets).astype(np.int32),
            "equivalents": np.diff(compiled.outside_offsets).astype(np.int32),
        }
    )
    return benchmark.queries.join(counts, on="query_id", how="left", maintain_order="left").select(*QUERY_TABLE)


def search_queries(table: pl.DataFrame, text: str) -> pl.DataFrame:
    """The queries that hold every word (or quoted phrase) of ``text``, whatever the case; all for an empty text."""
    terms = [(phrase or word).lower() for phrase, word in _TERM.findall(text)]
    if not terms:
        return table
    # A line break between the fields: no phrase of one line matches across them.
    fields = [pl.col(name).fill_null("") for name in ("query_id", "text", "instruction")]
    searched = table.select(pl.concat_str(fields, separator="\n").str.to_lowercase().alias("all"))["all"]
    keep = pl.repeat(True, table.height, eager=True)
    for term in terms:
        keep = keep & searched.str.contains(term, literal=True)
    return table.filter(keep)


def filter_queries(table: pl.DataFrame, chosen: QueryFilter) -> pl.DataFrame:
    """The queries of ``query_table`` that a filter keeps, in the same order."""
    keep = chosen.tools.contains("tools")
    keep = keep & chosen.combinations.contains("combinations") & chosen.equivalents.contains("equivalents")
    for column, values in (("domain", chosen.domains), ("source", chosen.sources)):
        if values is not None:
            keep = keep & pl.col(column).is_in(list(values))
    return search_queries(table.filter(keep), chosen.text)


def by_disagreement(
    table: pl.DataFrame,
    first: pl.DataFrame,
    second: pl.DataFrame,
    *,
    view: str = "new",
    metric: str = "NDCG",
    k: int = 10,
) -> pl.DataFrame:
    """The queries with the scores of two runs, largest difference first.

    Args:
        table: queries, with a column ``query_id``.
        first: ``RunScores.per_query``.
        second: of the other run.
        view: ``old`` or ``new``.
        metric: ``NDCG``, ``Recall`` or ``Comp``.
        k: cutoff.

    Returns:
        The table with ``first``, ``second`` and ``disagreement`` (second minus first, signed), sorted by its size;
        equal ones keep their order.

    Raises:
        ValueError: the runs are not over the same queries.
    """
    check_same_queries(first, second)
    column = f"{view}_{metric}@{k}"
    scores = pl.DataFrame({"query_id": first["query_id"], "first": first[column], "second": second[column]})
    return (
        table.join(scores, on="query_id", how="inner", maintain_order="left")
        .with_columns(disagreement=pl.col("second") - pl.col("first"))
        .sort(pl.col("disagreement").abs(), descending=True, maintain_order=True)
    )


def missed_but_equivalent(table: pl.DataFrame, per_query: pl.DataFrame, k: int = 10) -> pl.DataFrame:
    """The queries where a run has no ground-truth tool among its first K but an equivalent.

    Args:
        table: queries, with a column ``query_id``.
        per_query: ``RunScores.per_query``.
        k: any cutoff.

    Returns:
        The table's rows with ``truth_rank`` (null when not retrieved) and ``equivalent_rank``, in the same order.
    """
    missed = pl.col("first_truth_rank").is_null() | (pl.col("first_truth_rank") > k)
    chosen = per_query.filter(missed & (pl.col("best_equivalent_rank") <= k))
    ranks = chosen.select("query_id", truth_rank="first_truth_rank", equivalent_rank="best_equivalent_rank")
    return table.join(ranks, on="query_id", how="inner", maintain_order="left")
