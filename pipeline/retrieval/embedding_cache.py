"""Embeddings kept on disk: found again by embedding space and text, safe under several writers and ``kill -9``.

A space (``Contract.space``) is a folder of segments. A segment is a plain ``.npy`` file of float32 rows, laid out at
its full size when it is opened, and an ``.index`` file that grows by one record a row *after* the row was written: a
row without a record does not exist. Each writer has segments of its own; a text that two of them encoded is
there twice and does no harm. A record carries a checksum, so that rows lost in a power failure are encoded again.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]

#: One record of an index: sha256 of the text, crc32 of the row, seconds that encoding it took.
_RECORD = np.dtype([("key", "V32"), ("crc", "<u4"), ("seconds", "<f4")])
_HEADER = b"equirank embeddings 1\n"
_HEADER_BYTES = 64


@dataclass(frozen=True, eq=False)
class Lookup:
    """What a cache holds of some texts.

    Attributes:
        found: bool (texts,).
        embeddings: float32 (texts, dimension), rows that were not found are 0; None when nothing was.
        seconds: float32 (texts,), what encoding each took when it was done; 0 where not found.
        devices: where the found ones were encoded.
    """

    found: npt.NDArray[np.bool_]
    embeddings: FloatArray | None
    seconds: FloatArray
    devices: frozenset[str]


class EmbeddingWriter(Protocol):
    """Takes finished embeddings, batch by batch."""

    def add(self, keys: Sequence[bytes], embeddings: FloatArray, seconds: float) -> None:
        """Keep a batch; once this returns, the process may be killed without losing it.

        Args:
            keys: sha256 of each text, as ``Contract.key`` gives it.
            embeddings: float32 (keys, dimension).
            seconds: what encoding the whole batch took.
        """


class EmbeddingCache(Protocol):
    """Where embeddings are kept."""

    def look_up(self, space: str, keys: Sequence[bytes]) -> Lookup:
        """What is there, in the order of ``keys``."""

    def writer(self, space: str, rows: int, device: str) -> AbstractContextManager[EmbeddingWriter]:
        """A writer for at most ``rows`` embeddings computed on ``device``."""


@dataclass(eq=False)
class _Segment:
    path: Path
    device: str = ""
    read: int = 0
    rows: FloatArray | None = None


@dataclass(eq=False)
class _Space:
    segments: dict[str, _Segment] = field(default_factory=dict)
    places: dict[bytes, tuple[_Segment, int, int, float]] = field(default_factory=dict)


class FolderEmbeddingCache:
    """A cache in a folder, which may be deleted at any time.

    Args:
        folder: made on the first write.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._spaces: dict[str, _Space] = {}

    def look_up(self, space: str, keys: Sequence[bytes]) -> Lookup:
        """What is there, in the order of ``keys``; damaged rows count as absent."""
        known = self._refresh(space)
        found = np.zeros(len(keys), dtype=np.bool_)
        seconds = np.zeros(len(keys), dtype=np.float32)
        embeddings: FloatArray | None = None
        devices = set()
        for i, key in enumerate(keys):
            place = known.places.get(key)
            if place is None:
                continue
            segment, row, crc, cost = place
            assert segment.rows is not None
            values = segment.rows[row]
            if zlib.crc32(values) != crc or (embeddings is not None and embeddings.shape[1] != len(values)):
                del known.places[key]
                continue
            if embeddings is None:
                embeddings = np.zeros((len(keys), len(values)), dtype=np.float32)
            embeddings[i] = values
            found[i], seconds[i] = True, cost
            devices.add(segment.device)
        return Lookup(found, embeddings, seconds, frozenset(devices))

    def holds(self, space: str, keys: Sequence[bytes]) -> npt.NDArray[np.bool_]:
        """Which keys are there (a bool each), without reading their embeddings."""
        known = self._refresh(space)
        return np.array([key in known.places for key in keys], dtype=np.bool_)

    @contextmanager
    def writer(self, space: str, rows: int, device: str) -> Iterator[EmbeddingWriter]:
        """A writer for at most ``rows`` embeddings; everything it added stays, however the block is left."""
        writer = _SegmentWriter(self.folder / space, rows, device)
        try:
            yield writer
        finally:
            writer.close()

    def size(self) -> int:
        """Bytes on disk."""
        return sum(path.stat().st_blocks * 512 for path in self.folder.glob("*/*") if path.is_file())

    def discard(self, space: str) -> None:
        """Forget every embedding of a space."""
        self._spaces.pop(space, None)
        shutil.rmtree(self.folder / space, ignore_errors=True)

    def _refresh(self, space: str) -> _Space:
        """Read the records that were added since the last time, by whomever."""
        known = self._spaces.setdefault(space, _Space())
        present = {path.stem: path for path in (self.folder / space).glob("*.index")}
        if known.segments.keys() - present.keys():  # the folder was cleared
            known = self._spaces[space] = _Space()
        for name, path in sorted(present.items()):
            segment = known.segments.setdefault(name, _Segment(path.with_suffix(".npy")))
            with contextlib.suppress(OSError, ValueError):  # of a writer that has not got that far
                self._read_records(known, segment, path)
        return known

    def _read_records(self, known: _Space, segment: _Segment, path: Path) -> None:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
            if len(header) < _HEADER_BYTES or not header.startswith(_HEADER):
                return
            file.seek(_HEADER_BYTES + segment.read * _RECORD.itemsize)
            content = file.read()
        count = len(content) // _RECORD.itemsize  # a torn record at the end is left for the next time
        if count == 0:
            return
        if segment.rows is None:
            segment.device = header[len(_HEADER) :].rstrip(b"\0").decode()
            mapped = np.lib.format.open_memmap(segment.path, mode="r")
            if mapped.dtype != np.float32 or mapped.ndim != 2:
                return
            segment.rows = np.asarray(mapped)
        records = np.frombuffer(content, dtype=_RECORD, count=count)
        last = min(count, len(segment.rows) - segment.read)
        for i, (key, crc, cost) in enumerate(records[:last].tolist()):
            known.places[key] = (segment, segment.read + i, crc, cost)
        segment.read += count


class _SegmentWriter:
    """Appends to a segment of its own, which the first batch opens.

    It writes through the file, never through a map, so that a full disk is an error and not the end of the process.
    """

    def __init__(self, folder: Path, rows: int, device: str) -> None:
        self._folder = folder
        self._left = rows
        self._device = device
        self._dimension = 0
        self._files: tuple[BinaryIO, BinaryIO] | None = None

    def add(self, keys: Sequence[bytes], embeddings: FloatArray, seconds: float) -> None:
        """See ``EmbeddingWriter``."""
        rows = np.ascontiguousarray(embeddings, dtype="<f4")
        vectors, index = self._files or self._open(rows.shape[1])
        if rows.shape != (len(keys), self._dimension) or len(keys) > self._left:
            raise ValueError(
                f"{rows.shape} embeddings for {len(keys)} texts; expected {self._dimension} dimensions and at most "
                f"{self._left} rows"
            )
        if not len(keys):
            return
        self._left -= len(keys)
        vectors.write(rows.tobytes())
        vectors.flush()
        records = np.empty(len(keys), dtype=_RECORD)
        records["key"] = np.frombuffer(b"".join(keys), dtype="V32")
        records["crc"] = [zlib.crc32(row) for row in rows]
        records["seconds"] = seconds / len(keys)
        index.write(records.tobytes())
        index.flush()

    def close(self) -> None:
        """Bring everything to the disk."""
        for file in self._files or ():
            with file:
                file.flush()
                os.fsync(file.fileno())

    def _open(self, dimension: int) -> tuple[BinaryIO, BinaryIO]:
        self._folder.mkdir(parents=True, exist_ok=True)
        name = secrets.token_hex(8)
        self._dimension = dimension
        vectors = (self._folder / f"{name}.npy").open("xb")
        shape = {"descr": "<f4", "fortran_order": False, "shape": (self._left, dimension)}
        np.lib.format.write_array_header_1_0(vectors, shape)
        # Laid out at its full size, the rest a hole: a reader can map it while it grows.
        vectors.flush()
        vectors.truncate(vectors.tell() + 4 * self._left * dimension)
        index = (self._folder / f"{name}.index").open("xb")
        label = self._device.encode()[: _HEADER_BYTES - len(_HEADER)]
        index.write((_HEADER + label).ljust(_HEADER_BYTES, b"\0"))
        index.flush()
        self._files = vectors, index
        return self._files
