"""A ranked run as a frame, the way rankings are stored, and back."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.errors import RunFileError
from pipeline.formats.parquet import positions_of
from pipeline.formats.ranking_hash import ranking_hash
from pipeline.identifiers import IdTable
from pipeline.run import Run, RunTarget

#: Columns of a stored ranking: queries in byte order, best tool first, ranks from 1.
RANKING = {"query_id": pl.String, "tool_id": pl.String, "score": pl.Float32, "rank": pl.Int32}


def ranking_frame(run: Run, target: RunTarget) -> pl.DataFrame:
    """A run as ``query_id, tool_id, score (Float32), rank (Int32, from 1)``, in the benchmark's query order."""
    lengths = np.diff(run.offsets)
    queries = np.repeat(np.arange(len(lengths), dtype=np.uint32), lengths)
    ranks = np.arange(len(run.tools), dtype=np.int64) - np.repeat(run.offsets[:-1], lengths) + 1
    return pl.DataFrame(
        {
            "query_id": _gather(target.queries, queries),
            "tool_id": _gather(target.tools, run.tools.astype(np.uint32)),
            "score": run.scores,
            "rank": ranks.astype(np.int32),
        },
        schema=RANKING,
    )


def _gather(table: IdTable, positions: npt.NDArray[np.uint32]) -> pl.Series:
    return pl.Series(table.ids, dtype=pl.String).gather(pl.Series(positions, dtype=pl.UInt32))


def run_of_frame(frame: pl.DataFrame, target: RunTarget) -> Run:
    """The inverse of ``ranking_frame``, for rows in any order.

    Raises:
        RunFileError: an id is not in the benchmark, or a rank or tool repeats within a query.
    """
    query = positions_of(frame["query_id"], target.queries)
    tool = positions_of(frame["tool_id"], target.tools)
    if frame.height and (query.min() < 0 or tool.min() < 0):
        raise RunFileError(
            f"the stored ranking names ids that {target.name} does not have: it belongs to another version"
        )
    rank = frame["rank"].to_numpy()
    order = np.lexsort((rank, query))
    query, tool, rank = query[order], tool[order], rank[order]
    pairs = query.astype(np.int64) * len(target.tools) + tool
    same_query = query[1:] == query[:-1]
    if (same_query & (rank[1:] == rank[:-1])).any() or len(np.unique(pairs)) != len(pairs):
        raise RunFileError("the stored ranking repeats a rank or a tool within a query: it is damaged")
    offsets = np.zeros(len(target.queries) + 1, dtype=np.int64)
    np.cumsum(np.bincount(query, minlength=len(target.queries)), out=offsets[1:])
    scores = frame["score"].to_numpy().astype(np.float32)[order]
    return Run(offsets, tool, scores, ranking_hash(offsets, tool, target))
