"""Ids as bytes: an immutable table that maps opaque ids to positions, usable inside numba kernels.

Ids are compared byte for byte in UTF-8 (never as numbers, never case-folded, never normalised).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np
import numpy.typing as npt

from pipeline.word_scan import load_word


@numba.njit(cache=True, nogil=True)
def hash_bytes(buffer, start, end):  # type: ignore[no-untyped-def]
    """FNV-1a over ``buffer[start:end]``, eight bytes a step, folded so that the low bits depend on all bytes.

    The last step of an id of eight bytes or more takes its last eight, whatever overlaps; shorter ids go by bytes.
    """
    value = np.uint64(14695981039346656037) ^ np.uint64(end - start)
    if end - start < 8:
        for i in range(start, end):
            value = (value ^ np.uint64(buffer[i])) * np.uint64(1099511628211)
    else:
        place = start
        while place < end - 8:
            value = (value ^ load_word(buffer, place)) * np.uint64(0x9E3779B97F4A7C15)
            value = value ^ (value >> np.uint64(32))
            place += 8
        value = (value ^ load_word(buffer, end - 8)) * np.uint64(0x9E3779B97F4A7C15)
    # The last bytes of a word reach only the high bits of a product: fold, spread again, fold.
    value = (value ^ (value >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return value ^ (value >> np.uint64(32))


@numba.njit(cache=True, nogil=True)
def same_bytes(buffer, start, other, other_start, length):  # type: ignore[no-untyped-def]
    """Whether ``length`` bytes are equal, eight at a time."""
    if length < 8:
        for i in range(length):  # noqa: SIM110 (numba compiles the loop, not all())
            if buffer[start + i] != other[other_start + i]:
                return False
        return True
    place = 0
    while place < length - 8:
        if load_word(buffer, start + place) != load_word(other, other_start + place):
            return False
        place += 8
    return load_word(buffer, start + length - 8) == load_word(other, other_start + length - 8)


@numba.njit(cache=True, nogil=True)
def find_bytes(buffer, start, end, blob, offsets, slots):  # type: ignore[no-untyped-def]
    """Position of the id ``buffer[start:end]`` in the table, or -1."""
    mask = np.uint64(len(slots) - 1)
    place = hash_bytes(buffer, start, end) & mask
    length = end - start
    while True:
        candidate = slots[place]
        if candidate < 0:
            return -1
        first = offsets[candidate]
        if offsets[candidate + 1] - first == length and same_bytes(buffer, start, blob, first, length):
            return candidate
        place = (place + np.uint64(1)) & mask


@numba.njit(cache=True, nogil=True)
def find_batch(buffer, starts, lengths, count, blob, offsets, slots, out):  # type: ignore[no-untyped-def]
    """``find_bytes`` for ``count`` ids at once: loads that miss the cache overlap instead of queueing.

    Args:
        starts, lengths: int64, where each id lies in ``buffer``.
        out: int32, receives the positions.
    """
    mask = np.uint64(len(slots) - 1)
    for i in range(count):
        out[i] = slots[hash_bytes(buffer, starts[i], starts[i] + lengths[i]) & mask]
    for i in range(count):
        candidate = out[i]
        if candidate >= 0:
            first = offsets[candidate]
            if offsets[candidate + 1] - first != lengths[i] or not same_bytes(
                buffer, starts[i], blob, first, lengths[i]
            ):
                out[i] = find_bytes(buffer, starts[i], starts[i] + lengths[i], blob, offsets, slots)


@numba.njit(cache=True, nogil=True)
def _fill(blob, offsets, slots):  # type: ignore[no-untyped-def]
    """Insert every id; return the position of the first repeated one, or -1."""
    mask = np.uint64(len(slots) - 1)
    for position in range(len(offsets) - 1):
        start, end = offsets[position], offsets[position + 1]
        if find_bytes(blob, start, end, blob, offsets, slots) >= 0:
            return position
        place = hash_bytes(blob, start, end) & mask
        while slots[place] >= 0:
            place = (place + np.uint64(1)) & mask
        slots[place] = position
    return -1


@numba.njit(cache=True, nogil=True)
def _find_all(blob, offsets, table_blob, table_offsets, slots, out):  # type: ignore[no-untyped-def]
    for position in range(len(offsets) - 1):
        out[position] = find_bytes(blob, offsets[position], offsets[position + 1], table_blob, table_offsets, slots)


def pack(ids: Sequence[str]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Texts as one blob of UTF-8 with offsets, int64 (n + 1).

    Lone surrogates, which no UTF-8 has, are kept as their three bytes: they equal no id.
    """
    encoded = [identifier.encode("utf-8", "surrogatepass") for identifier in ids]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(e) for e in encoded], out=offsets[1:])
    # Writable, like arrays read from a file: numba compiles every kernel twice for read-only arrays.
    return np.frombuffer(bytearray().join(encoded), dtype=np.uint8), offsets


@dataclass(frozen=True, eq=False)
class IdTable:
    """Distinct ids in a fixed order, with an open-addressing hash table over their bytes.

    Attributes:
        blob: all ids' UTF-8 bytes, one after another.
        offsets: int64, n + 1; id i is ``blob[offsets[i]:offsets[i + 1]]``.
        slots: int32, a power of two ≥ 2 n; a position or -1.
    """

    blob: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int32]

    @classmethod
    def from_ids(cls, ids: Sequence[str]) -> IdTable:
        """Build the table.

        Raises:
            ValueError: an id occurs twice, or is no valid Unicode.
        """
        for identifier in ids:
            identifier.encode()
        blob, offsets = pack(ids)
        slots = np.full(1 << max(4, (2 * len(ids)).bit_length()), -1, dtype=np.int32)
        repeated = _fill(blob, offsets, slots)
        if repeated >= 0:
            raise ValueError(f"id {ids[repeated]!r} occurs twice")
        return cls(blob, offsets, slots)

    def __len__(self) -> int:
        """Number of ids."""
        return len(self.offsets) - 1

    def __getitem__(self, position: int) -> str:
        """The id at ``position``."""
        return self.blob[self.offsets[position] : self.offsets[position + 1]].tobytes().decode()

    @cached_property
    def ids(self) -> list[str]:
        """All ids in order."""
        return [self[i] for i in range(len(self))]

    def find(self, ids: Sequence[str]) -> npt.NDArray[np.int32]:
        """Positions of ``ids``, -1 where unknown; int32 (len(ids),)."""
        blob, offsets = pack(ids)
        out = np.empty(len(ids), dtype=np.int32)
        _find_all(blob, offsets, self.blob, self.offsets, self.slots, out)
        return out
