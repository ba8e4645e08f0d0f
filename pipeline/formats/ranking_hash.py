"""One hash for one ranking: equal exactly when the same queries have the same tools in the same order."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from pipeline.identifiers import IdTable
from pipeline.run import RunTarget

_VERSION = b"equirank ranking 1\n"


def ranking_hash(offsets: npt.NDArray[np.int64], tools: npt.NDArray[np.int32], target: RunTarget) -> str:
    """sha256 over query ids and ranked tool ids, whatever else the benchmark holds.

    The encoding is a dictionary of the answered queries' ids and one of the tools' ids, both in byte order and
    with their lengths, then the length of every list, then every list as places in the tool dictionary (all
    numbers little-endian uint32): nothing else decodes to the same ranking, and no other ranking encodes to it.

    Args:
        offsets: int64 (queries + 1).
        tools: int32 (rows), positions in the target's tools, best first.
        target: the tables the positions are in.
    """
    lengths = np.diff(offsets)
    answered = np.flatnonzero(lengths)
    used = np.zeros(len(target.tools), dtype=np.bool_)
    used[tools] = True
    places = np.cumsum(used, dtype=np.uint32) - np.uint32(1)
    digest = hashlib.sha256(_VERSION)
    _add_ids(digest, target.queries, answered)
    _add_ids(digest, target.tools, np.flatnonzero(used))
    digest.update(lengths[answered].astype("<u4").tobytes())
    for start in range(0, len(tools), 1 << 20):
        digest.update(places[tools[start : start + (1 << 20)]].astype("<u4").tobytes())
    return digest.hexdigest()


def _add_ids(digest: hashlib._Hash, table: IdTable, positions: npt.NDArray[np.int64]) -> None:
    lengths = np.diff(table.offsets)[positions]
    digest.update(len(positions).to_bytes(4, "little"))
    digest.update(lengths.astype("<u4").tobytes())
    if len(positions) == len(table):
        digest.update(table.blob[: table.offsets[-1]].tobytes())
        return
    keep = np.zeros(len(table), dtype=np.bool_)
    keep[positions] = True
    digest.update(table.blob[: table.offsets[-1]][np.repeat(keep, np.diff(table.offsets))].tobytes())
