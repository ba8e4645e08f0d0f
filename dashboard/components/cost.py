"""What a retriever costs: the columns that a board can show, and the axes of the plot of score against cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from dashboard.components.numbers import size, whole


def small_number(value: float) -> str:
    """Three digits at most before the point, two that count: ``0.52``, ``3.4``, ``79``, ``1 200``."""
    if value >= 100:
        return whole(round(value))
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


@dataclass(frozen=True)
class Cost:
    """One kind of cost, lower is better.

    Attributes:
        key: the word in permalinks and the table's column.
        column: of the board (``reading.board``).
        title: header of the table's column.
        help: what it means, on hover.
        axis: name of the axis, with the unit.
        width: pixels of the table's column.
        write: a value with the unit that the title or axis names.
        measured: whether it depends on the machine that it was measured on.
        scale: what the stored value is divided by.
    """

    key: str
    column: str
    title: str
    help: str
    axis: str
    width: int
    write: Callable[[float], str]
    measured: bool = False
    scale: float = 1.0


#: Kinds of cost by key; ``size`` has its column in the table already.
COSTS: dict[str, Cost] = {
    cost.key: cost
    for cost in (
        Cost(
            "size",
            "parameters",
            "Size",
            "Number of weights.",
            "number of weights",
            62,
            lambda value: size(int(value)),
        ),
        Cost(
            "dimension",
            "dimension",
            "Dimension",
            "Numbers in one embedding.",
            "dimensions of an embedding",
            86,
            lambda value: whole(int(value)),
        ),
        Cost(
            "encoding",
            "encode_seconds_per_1000_documents",
            "s / 1k docs",
            "Seconds to encode 1,000 documents (to index them, for BM25), as measured here.",
            "seconds to encode 1,000 documents",
            96,
            small_number,
            measured=True,
        ),
        Cost(
            "query",
            "query_ms",
            "ms / query",
            "Milliseconds to encode one query and search, averaged over batches, as measured here.",
            "milliseconds a query",
            92,
            small_number,
            measured=True,
        ),
        Cost(
            "index",
            "index_bytes",
            "Index MB",
            "Memory of the vectors, or of the postings of BM25.",
            "index, MB",
            84,
            small_number,
            scale=1e6,
        ),
    )
}
#: Those that are columns of their own, hidden at first.
COST_COLUMNS = ("encoding", "query", "dimension", "index", "device")


def with_costs(board: pl.DataFrame, measured: pl.DataFrame) -> pl.DataFrame:
    """A board with what its runs cost; what was measured goes before what is printed of a retriever.

    Args:
        board: of ``store.access.leaderboard.leaderboard``.
        measured: of ``store.access.efficiency.efficiencies``.
    """
    both = ("parameters", "dimension")
    named = measured.rename({name: f"measured_{name}" for name in both})
    return (
        board.join(named, on="run_id", how="left", maintain_order="left")
        .with_columns(pl.coalesce(f"measured_{name}", name).alias(name) for name in both)
        .drop(f"measured_{name}" for name in both)
    )
