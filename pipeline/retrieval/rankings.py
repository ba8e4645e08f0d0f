"""From ranked positions to a run over a benchmark's ids."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.formats.ranking_hash import ranking_hash
from pipeline.run import Run, RunTarget


@dataclass(frozen=True, eq=False)
class Rankings:
    """Ranked tools of consecutive queries; positions count in byte order of the tool ids.

    Attributes:
        tools: int32 (queries, depth), best first; places from ``counts`` on mean nothing.
        scores: float32 (queries, depth), non-increasing up to ``counts``.
        counts: int64 (queries,), how many places of each row are used.
    """

    tools: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]
    counts: npt.NDArray[np.int64]

    @classmethod
    def empty(cls, queries: int, depth: int) -> Rankings:
        """Rows without results."""
        return cls(
            np.zeros((queries, depth), dtype=np.int32),
            np.zeros((queries, depth), dtype=np.float32),
            np.zeros(queries, dtype=np.int64),
        )

    def run(self, target: RunTarget) -> Run:
        """The run; row q is the query at position q of ``target.queries``.

        Raises:
            ValueError: there are more or fewer rows than queries.
        """
        if len(self.counts) != len(target.queries):
            raise ValueError(f"{len(self.counts)} rankings for {len(target.queries)} queries of {target.name}")
        offsets = np.zeros(len(self.counts) + 1, dtype=np.int64)
        np.cumsum(self.counts, out=offsets[1:])
        used = np.arange(self.tools.shape[1])[None, :] < self.counts[:, None]
        # Adding 0 turns -0.0 into 0.0, as reading a file does.
        tools, scores = self.tools[used], self.scores[used] + np.float32(0)
        return Run(offsets, tools, scores, ranking_hash(offsets, tools, target))


def run_frame(run: Run, target: RunTarget) -> pl.DataFrame:
    """The run as rows ``query_id``, ``tool_id``, ``score`` (float32), best first within each query."""
    queries = np.repeat(np.arange(len(target.queries)), np.diff(run.offsets))
    return pl.DataFrame(
        {
            "query_id": pl.Series(target.queries.ids, dtype=pl.String).gather(queries),
            "tool_id": pl.Series(target.tools.ids, dtype=pl.String).gather(run.tools),
            "score": pl.Series(run.scores, dtype=pl.Float32),
        }
    )
