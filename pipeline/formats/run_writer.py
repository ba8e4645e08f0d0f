"""A run written down again: TREC text, and the frame kept as parquet."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.errors import RunFileError
from pipeline.formats.parquet import positions_of
from pipeline.formats.ranking_hash import ranking_hash
from pipeline.identifiers import IdTable
from pipeline.run import Run, RunTarget

RANKING = {"query_id": pl.String, "tool_id": pl.String, "score": pl.Float32, "rank": pl.Int32}


def write_trec(run: Run, target: RunTarget, path: Path, tag: str) -> None:
    """Write ``query_id Q0 tool_id rank score tag`` lines; the scores read back to the identical float32.

    Args:
        tag: the run's name; spaces and control characters become ``_``.

    Raises:
        RunFileError: an id holds white space or a control character, which TREC cannot carry.
    """
    name = "".join("_" if c.isspace() or not c.isprintable() else c for c in tag) or "run"
    with path.open("w", encoding="utf-8", newline="\n") as out:
        _write_rows(run, target, out, name)


def _write_rows(run: Run, target: RunTarget, out: TextIO, tag: str) -> None:
    tools = _text_ids(target.tools, np.unique(run.tools))
    for query in np.flatnonzero(np.diff(run.offsets)).tolist():
        start, end = int(run.offsets[query]), int(run.offsets[query + 1])
        query_id = _checked(target.queries[query])
        rows = zip(run.tools[start:end].tolist(), shortest(run.scores[start:end]), strict=True)
        out.writelines(
            f"{query_id} Q0 {tools[tool]} {rank} {score} {tag}\n" for rank, (tool, score) in enumerate(rows, 1)
        )


def _text_ids(table: IdTable, positions: npt.NDArray[np.int32]) -> dict[int, str]:
    return {position: _checked(table[position]) for position in positions.tolist()}


def _checked(identifier: str) -> str:
    if (
        not identifier
        or "\ufeff" in identifier
        or any(c.isspace() or not (c.isprintable() or ord(c) >= 160) for c in identifier)
    ):
        raise RunFileError(
            f"id {identifier!r} is empty or holds white space or a control character:"
            f" TREC cannot carry it, write Parquet instead"
        )
    return identifier


def shortest(scores: npt.NDArray[np.float32]) -> list[str]:
    """The shortest decimals that read back, through float64, to the same float32."""
    texts = [str(score) for score in scores]
    back = np.array([float(text) for text in texts], dtype=np.float64).astype(np.float32)
    for i in np.flatnonzero(back != scores).tolist():
        texts[i] = repr(float(scores[i]))
    return texts


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
