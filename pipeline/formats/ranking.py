"""A ranked run as a frame, the way rankings are stored, and back."""

from __future__ import annotations

import numpy as np
import polars as pl

from pipeline.errors import RunFileError
from pipeline.formats.ranking_hash import ranking_hash
from pipeline.identifiers import IdTable
from pipeline.run import Run, RunTarget

#: Columns of a stored ranking: queries in byte order, best tool first, ranks from 1.
RANKING = {"query_id": pl.String, "tool_id": pl.String, "score": pl.Float32, "rank": pl.Int32}


def ranking_frame(run: Run, target: RunTarget) -> pl.DataFrame:
    """The run's rows with their ids, in the columns of ``RANKING``."""
    lengths = np.diff(run.offsets)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    ranks = np.arange(len(run.tools), dtype=np.int64) - np.repeat(run.offsets[:-1], lengths) + 1
    return pl.DataFrame(
        {
            "query_id": pl.Series(target.queries.ids, dtype=pl.String).gather(rows),
            "tool_id": pl.Series(target.tools.ids, dtype=pl.String).gather(run.tools),
            "score": pl.Series(run.scores),
            "rank": pl.Series(ranks.astype(np.int32)),
        },
        schema=RANKING,
    )


def run_from_ranking(frame: pl.DataFrame, target: RunTarget) -> Run:
    """The run that ``ranking_frame`` made the frame of, over a benchmark that has all its ids.

    Raises:
        RunFileError: a query or tool is not in the benchmark.
    """
    ordered = frame.select(*RANKING).with_columns(
        query=pl.Series(_positions(frame["query_id"], target.queries, "query", target)),
        tool=pl.Series(_positions(frame["tool_id"], target.tools, "tool", target)),
    )
    ordered = ordered.sort("query", "rank")
    counts = np.bincount(ordered["query"].to_numpy(), minlength=len(target.queries))
    offsets = np.zeros(len(target.queries) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    tools = ordered["tool"].to_numpy().astype(np.int32)
    return Run(offsets, tools, ordered["score"].to_numpy(), ranking_hash(offsets, tools, target))


def _positions(column: pl.Series, table: IdTable, what: str, target: RunTarget) -> pl.Series:
    distinct = column.unique()
    found = table.find(distinct.to_list())
    if len(found) and int(found.min()) < 0:
        raise RunFileError(f"the ranking has the {what} {distinct[int(found.argmin())]!r}, which {target.name} has not")
    return column.replace_strict(distinct, pl.Series(found), return_dtype=pl.Int32)
