"""A run in memory, and the report that says how its file was read.

A run is kept as arrays over a benchmark's own order of queries and tools (compressed sparse rows), already
ranked by the ranking rule of SCORING §2: score descending as float32, ties by ``tool_id`` bytes descending.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.identifiers import IdTable


class Verdict(StrEnum):
    """What became of a file: taken as it is, taken after named normalisations, or refused."""

    ACCEPT = "accept"
    NORMALISE = "normalise"
    REFUSE = "refuse"


class Order(StrEnum):
    """What the submitter declares to be the order of a list: higher scores, lower ranks or lower distances first."""

    SCORE = "score"
    RANK = "rank"
    DISTANCE = "distance"


@dataclass(frozen=True)
class Problem:
    """One reason to refuse a file.

    Attributes:
        message: what is wrong, the offending text and the fix, in words.
        line: 1-based physical line of the file, None where lines mean nothing.
    """

    message: str
    line: int | None = None


@dataclass(frozen=True)
class RunReport:
    """How a run file was read.

    Attributes:
        format: what it was read as (``trec``, ``json``, ``toolret-json``, …), None when nothing fits.
        problems: reasons to refuse, at most twenty, in file order; empty unless refused.
        problem_count: how many there are in all.
        notes: what was normalised or is worth knowing, in words, with counts.
        flags: ``missing:4``, ``ties``, ``shallow``, ``partial``, ``half_precision``, ``oracle_like``, …
        counts: ``lines``, ``queries``, ``depth`` (longest list) and what else the format knows.
        prefill: what the file says of itself: ``tag``, ``retriever``, ``revision``, ….
    """

    verdict: Verdict
    format: str | None
    problems: tuple[Problem, ...] = ()
    problem_count: int = 0
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    prefill: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The documented shape of ``equirank validate --format json``."""
        return {
            "verdict": str(self.verdict),
            "format": self.format,
            "problems": [{"line": p.line, "message": p.message} for p in self.problems],
            "problem_count": self.problem_count,
            "notes": list(self.notes),
            "flags": list(self.flags),
            "counts": dict(self.counts),
            "prefill": dict(self.prefill),
        }


@dataclass(frozen=True, eq=False)
class RunTarget:
    """What a run file is read against: the ids of one benchmark version and its one-to-one labels.

    Attributes:
        name: ``slug@version``, for messages.
        queries: query ids in the benchmark's order (sorted by bytes).
        tools: tool ids in the benchmark's order (sorted by bytes, so position order is byte order).
        truth_offsets: int64 (queries + 1); C* of query q is ``truth_tools[truth_offsets[q]:truth_offsets[q + 1]]``.
        truth_tools: int32, positions in ``tools``.
    """

    name: str
    queries: IdTable
    tools: IdTable
    truth_offsets: npt.NDArray[np.int64]
    truth_tools: npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Run:
    """A ranked run over one benchmark.

    Attributes:
        offsets: int64 (queries + 1); the list of query q is ``tools[offsets[q]:offsets[q + 1]]``, empty when missing.
        tools: int32 (rows), positions in the benchmark's tool table, best first, no repeats in a list.
        scores: float32 (rows), non-increasing in every list.
        ranking_hash: sha256 hex over query ids and ranked tool ids; equal rankings have equal hashes.
    """

    offsets: npt.NDArray[np.int64]
    tools: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]
    ranking_hash: str

    @property
    def queries_answered(self) -> int:
        """Number of queries with at least one row."""
        return int(np.count_nonzero(np.diff(self.offsets)))


@dataclass(frozen=True, eq=False)
class RunReading:
    """The report, and the run when it was not refused."""

    report: RunReport
    run: Run | None
