"""How a benchmark's labels and documents are spread: what Table 1's means hide, and Figure 5 of the ToolEX paper."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import polars as pl

from pipeline.benchmark import Benchmark
from pipeline.scoring.benchmark_statistics import combinations_per_query, items_per_subquery


class Spread(StrEnum):
    """What is counted."""

    TOOLS_PER_QUERY = "tools_per_query"
    COMBINATIONS = "combinations"
    EQUIVALENTS = "equivalents"
    TOKENS = "tokens"
    TOOL_SOURCES = "tool_sources"


#: Columns of ``benchmark_distributions``: what is counted, a source's name ("" for numbers), a value, how often.
DISTRIBUTIONS: dict[str, pl.DataType] = {
    "spread": pl.String(),
    "name": pl.String(),
    "value": pl.Int64(),
    "n": pl.Int64(),
}


def benchmark_distributions(benchmark: Benchmark, tokens: Sequence[int]) -> pl.DataFrame:
    """Every distribution of a benchmark, exactly: how often each value occurs.

    Args:
        benchmark: any.
        tokens: length of each tool's documentation, in the order of ``benchmark.tools``.

    Returns:
        Columns of ``DISTRIBUTIONS``, by spread and value. ``tools_per_query`` counts queries by the size of C*;
        ``combinations`` queries by valid combinations, C* included, absent where none were judged; ``equivalents``
        sub-queries by valid tools beyond the ground truth, absent likewise; ``tokens`` documents by length;
        ``tool_sources`` tools by the source they name, most first, with value 0.

    Raises:
        ValueError: there are not as many lengths as tools.
    """
    if len(tokens) != benchmark.tools.height:
        raise ValueError(f"{len(tokens)} lengths for {benchmark.tools.height} tools")
    sizes = benchmark.ground_truth.select(value=pl.col("tool_ids").list.n_unique())
    found = {
        Spread.TOOLS_PER_QUERY: sizes,
        Spread.TOKENS: pl.DataFrame({"value": pl.Series(tokens, dtype=pl.Int64)}),
    }
    if benchmark.has_combinations:
        found[Spread.COMBINATIONS] = combinations_per_query(benchmark).select(value="combinations")
    if benchmark.equivalents.height:
        found[Spread.EQUIVALENTS] = items_per_subquery(benchmark).select(value="extra")
    parts = [
        values.select(pl.col("value").cast(pl.Int64))
        .group_by("value")
        .agg(n=pl.len().cast(pl.Int64))
        .sort("value")
        .select(spread=pl.lit(spread.value), name=pl.lit(""), value="value", n="n")
        for spread, values in found.items()
    ]
    sources = benchmark.tools.select(name=pl.col("source").fill_null("")).group_by("name").agg(n=pl.len())
    parts.append(
        sources.sort("n", "name", descending=[True, False]).select(
            spread=pl.lit(Spread.TOOL_SOURCES.value),
            name="name",
            value=pl.lit(0, pl.Int64),
            n=pl.col("n").cast(pl.Int64),
        )
    )
    return pl.concat(parts)


def spread_of(distributions: pl.DataFrame, spread: Spread) -> pl.DataFrame:
    """One distribution: ``name``, ``value`` and ``n``, no rows where it is not known."""
    return distributions.filter(pl.col("spread") == spread.value).select("name", "value", "n")


def quantile(counted: pl.DataFrame, share: float) -> int | None:
    """The smallest value that at least this share of the items do not exceed; None where there are no items.

    Args:
        counted: ``value`` (ascending) and ``n``, as ``spread_of`` gives them.
        share: in (0, 1]; 0.5 is the median (the lower one of an even number).
    """
    if counted.is_empty():
        return None
    reached = counted["n"].cum_sum()
    # Whole numbers on both sides would need fractions of shares; a relative slack of 1e-12 forgives the product.
    place = int((reached < share * int(counted["n"].sum()) * (1 - 1e-12)).sum())
    return int(counted["value"][place])
