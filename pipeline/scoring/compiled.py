"""Compiled ground truth: every label of one benchmark version as flat arrays, ready for the kernels.

Offline, once per benchmark version: each query gets a local list of the distinct tools its valid
combinations use (C* first), and each combination becomes a few small local ids. A run then maps each ranked
tool to its local id once, and only *which ranks a combination hits* is left to compute (SCORING §5).
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.benchmark import Average
from pipeline.errors import EquiRankError
from pipeline.identifiers import IdTable
from pipeline.run import RunTarget
from pipeline.scoring.version import COMPILER_VERSION

IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]


class EquivalentsBasis(StrEnum):
    """What counts as an equivalent outside C*: stage-2 verified tools, or what the combinations hold."""

    VERIFIED = "verified"
    COMBINATIONS = "combinations"


class CompiledFileError(EquiRankError):
    """A file of compiled ground truth is damaged or of another compiler version; build it again."""


@dataclass(frozen=True, eq=False)
class CompiledBenchmark:
    """The labels of one benchmark version over sorted queries and tools.

    All ``*_offsets`` are int64 with one entry more than there are rows: row i is ``[o[i]:o[i + 1]]``.
    Queries and tools are sorted by the UTF-8 bytes of their ids, so position order is byte order.

    Attributes:
        name: ``slug@version``.
        content_hash: of the benchmark the arrays were compiled from.
        headline: the average that ranks the leaderboard.
        domain_names: in order of first appearance among the benchmark's queries; may hold "".
        source_names: likewise.
        equivalents_basis: where ``equivalent_tools`` and ``outside_tools`` come from.
        notes: what the compiler added, in words.
        queries: query ids.
        tools: tool ids.
        domain_of: int32 (queries,), positions in ``domain_names``.
        source_of: int32 (queries,), positions in ``source_names``.
        truth_offsets: C* of each query, in label order, in ``truth_tools``.
        local_offsets: the distinct tools of a query's valid combinations, in ``local_tools``; C* comes first.
        block_offsets: blocks of each query; a block is a stretch of consecutive combinations of equal size.
        block_sizes: int32 (blocks,), tools in each combination of the block.
        block_members: int64 (blocks + 1), where each block starts in ``members``.
        combination_offsets: combinations of each query (C* is the first, the others by RRF score, then by the bytes
            of their ids); only counts, no array behind it.
        members: uint16 (uint32 when a query has more than 65,536 local tools), local ids, ascending in each
            combination, combination after combination.
        subquery_offsets: sub-queries of each query.
        equivalent_offsets: equivalents outside C* of each sub-query, in ``equivalent_tools``; all empty when the
            basis is ``combinations``, which know of no sub-queries.
        outside_offsets: distinct equivalents outside C* of each query, in ``outside_tools``.
        judged_offsets: distinct tools with any verdict (C*, equivalents judged valid or invalid, members of any
            combination) of each query, in ``judged_tools``.
    """

    name: str
    content_hash: str
    headline: Average
    domain_names: tuple[str, ...]
    source_names: tuple[str, ...]
    equivalents_basis: EquivalentsBasis
    notes: tuple[str, ...]
    queries: IdTable
    tools: IdTable
    domain_of: IntArray
    source_of: IntArray
    truth_offsets: LongArray
    truth_tools: IntArray
    local_offsets: LongArray
    local_tools: IntArray
    block_offsets: LongArray
    block_sizes: IntArray
    block_members: LongArray
    combination_offsets: LongArray
    members: npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
    subquery_offsets: LongArray
    equivalent_offsets: LongArray
    equivalent_tools: IntArray
    outside_offsets: LongArray
    outside_tools: IntArray
    judged_offsets: LongArray
    judged_tools: IntArray

    @cached_property
    def target(self) -> RunTarget:
        """What a run file of this benchmark is read against."""
        return RunTarget(self.name, self.queries, self.tools, self.truth_offsets, self.truth_tools)

    @property
    def has_combinations(self) -> bool:
        """Whether any query has a valid combination beyond C*."""
        return int(self.combination_offsets[-1]) > len(self.queries)

    def combination(self, query: int, index: int) -> IntArray:
        """Positions of the tools of one valid combination.

        Args:
            query: position of the query.
            index: 0-based position among the query's distinct valid combinations; 0 is C*.

        Raises:
            IndexError: the query has fewer combinations.
        """
        seen = 0
        for block in range(int(self.block_offsets[query]), int(self.block_offsets[query + 1])):
            size = int(self.block_sizes[block])
            start, end = int(self.block_members[block]), int(self.block_members[block + 1])
            if index - seen < (end - start) // size:
                first = start + (index - seen) * size
                local = self.members[first : first + size].astype(np.int64)
                tools: IntArray = self.local_tools[self.local_offsets[query] + local]
                return tools
            seen += (end - start) // size
        raise IndexError(f"query {self.queries[query]!r} has {seen} valid combinations, no number {index}")

    def save(self, path: Path) -> None:
        """Write one uncompressed ``.npz`` (plain arrays, no pickle; zip checksums show damage)."""
        text: dict[str, Any] = {"compiler": COMPILER_VERSION}
        arrays: dict[str, npt.NDArray[Any]] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                arrays[field.name] = value
            elif isinstance(value, IdTable):
                arrays |= {f"{field.name}.{part.name}": getattr(value, part.name) for part in fields(IdTable)}
            else:
                text[field.name] = value
        arrays["text"] = np.frombuffer(json.dumps(text).encode(), dtype=np.uint8)
        with path.open("wb") as out:
            np.savez(out, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, path: Path) -> CompiledBenchmark:
        """Read what ``save`` wrote.

        Raises:
            CompiledFileError: the file is damaged, incomplete or of another compiler version.
            FileNotFoundError: there is no such file.
        """
        try:
            with np.load(path, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            text = json.loads(arrays.pop("text").tobytes())
            if text.pop("compiler") != COMPILER_VERSION:
                raise CompiledFileError(f"{path} was written by another version of the compiler; build it again")
            values: dict[str, Any] = {
                **text,
                "headline": Average(text["headline"]),
                "equivalents_basis": EquivalentsBasis(text["equivalents_basis"]),
                "domain_names": tuple(text["domain_names"]),
                "source_names": tuple(text["source_names"]),
                "notes": tuple(text["notes"]),
            }
            for table in ("queries", "tools"):
                values[table] = IdTable(*(arrays.pop(f"{table}.{part.name}") for part in fields(IdTable)))
            return cls(**values, **arrays)
        except (zipfile.BadZipFile, ValueError, KeyError, TypeError, EOFError, OSError) as error:
            if isinstance(error, FileNotFoundError):
                raise
            raise CompiledFileError(
                f"{path} cannot be read as compiled ground truth ({error}); build it again"
            ) from error
