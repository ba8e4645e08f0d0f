"""A run written down again as TREC text."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

import numpy as np
import numpy.typing as npt

from pipeline.errors import RunFileError
from pipeline.identifiers import IdTable
from pipeline.run import Run, RunTarget


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
