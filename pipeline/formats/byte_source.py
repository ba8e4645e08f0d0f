"""The bytes of a file that someone else wrote: plain, gzip or zstd, read once, bounded while reading."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Protocol

import zstandard

from pipeline.formats.limits import Limits
from pipeline.formats.messages import size
from pipeline.formats.problems import Refusal

_CHUNK = 1 << 20
#: Compressed bytes handed to zstd at a time: a hostile frame expands 32,768-fold, to at most 64 MiB here.
_ZSTD_CHUNK = 2048
#: Largest zstd window (``zstd --ultra --long=27``); the frame header asks for this much memory.
_ZSTD_WINDOW = 1 << 27
#: Below this size a high ratio says nothing: a short list of ties compresses well.
_RATIO_FLOOR = 1 << 20

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"


class _Decoder(Protocol):
    """What turns compressed bytes into plain ones."""

    def decode(self) -> bytes:
        """The next plain bytes, b"" at the end of the stream."""


class _Plain:
    def __init__(self, source: ByteSource) -> None:
        self.source = source

    def decode(self) -> bytes:
        return self.source.raw(_CHUNK)


class _Gzip:
    """Gzip members one after another, each checked against its own checksum."""

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self.member = zlib.decompressobj(wbits=31)
        self.pending = b""
        self.started = False
        self.members = 0

    def decode(self) -> bytes:
        while True:
            if not self.pending:
                self.pending = self.source.raw(1 << 16)
            if self.member.eof or not self.started:
                if self.members:
                    self.pending = self.pending.lstrip(b"\0") or self.source.raw(1 << 16).lstrip(b"\0")
                if not self.pending:
                    return b""
                if self.members and not self.pending.startswith(GZIP[: len(self.pending)]):
                    raise Refusal("there is something after the gzip stream that is not gzip: compress the file again")
                self.member = zlib.decompressobj(wbits=31)
                self.started = True
                self.members += 1
            if not self.pending:
                raise Refusal("the gzip stream ends before its end: the file is truncated, upload it again")
            try:
                plain = self.member.decompress(self.pending, _CHUNK)
            except zlib.error as error:
                raise Refusal(f"the gzip stream is damaged ({error}): compress or upload the file again") from None
            self.pending = self.member.unused_data if self.member.eof else self.member.unconsumed_tail
            if plain:
                return plain


class _Zstd:
    """Zstandard frames one after another, skippable ones passed over by the library."""

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self.frame = self._new()
        self.pending = b""
        self.inside = False

    @staticmethod
    def _new() -> zstandard.ZstdDecompressionObj:
        return zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()

    def decode(self) -> bytes:
        while True:
            if not self.pending:
                self.pending = self.source.raw(_ZSTD_CHUNK)
            if not self.pending:
                if self.inside:
                    raise Refusal("the zstd stream ends before its end: the file is truncated, upload it again")
                return b""
            chunk, self.pending = self.pending[:_ZSTD_CHUNK], self.pending[_ZSTD_CHUNK:]
            try:
                plain = self.frame.decompress(chunk)
            except zstandard.ZstdError as error:
                raise Refusal(f"the zstd stream is damaged ({error}): compress or upload the file again") from None
            self.inside = True
            if self.frame.eof:
                self.pending = self.frame.unused_data + self.pending
                self.frame = self._new()
                self.inside = False
            if plain:
                return plain


class ByteSource:
    """A file as a stream of plain bytes; every limit is checked before its bytes are handed on.

    Attributes:
        compression: ``gzip``, ``zstd`` or None, by content.
        size: bytes of the file as it arrived, None when the stream does not say.
    """

    def __init__(
        self, source: Path | BinaryIO, limits: Limits, progress: Callable[[float], None] | None = None
    ) -> None:
        """Open the file and look at its first bytes.

        Raises:
            Refusal: it is larger than an upload may be.
            OSError: it cannot be opened.
        """
        self._path = source if isinstance(source, Path) else None
        self._file: BinaryIO = source.open("rb") if isinstance(source, Path) else source
        self._limits = limits
        self._progress = progress
        self._arrived = 0
        self._expanded = 0
        self._ahead: list[bytes] = []
        self._unread = b""
        self.size = self._measure()
        if self.size is not None and self.size > limits.upload_bytes:
            self._too_large(self.size)
        first = self.raw(8)
        self.compression = "gzip" if first.startswith(GZIP) else "zstd" if first.startswith(ZSTD) else None
        self._unread = first
        decoders: dict[str | None, type[_Plain] | type[_Gzip] | type[_Zstd]] = {"gzip": _Gzip, "zstd": _Zstd}
        self._decoder: _Decoder = decoders.get(self.compression, _Plain)(self)

    def _measure(self) -> int | None:
        try:
            here = self._file.tell()
            end = self._file.seek(0, os.SEEK_END)
            self._file.seek(here)
        except (OSError, AttributeError, ValueError):
            return None
        return end - here

    def _too_large(self, count: int) -> None:
        raise Refusal(
            f"the file has {size(count)}, more than the upload limit of {size(self._limits.upload_bytes)}: "
            "keep fewer results a query, or compress it with gzip or zstd"
        )

    def raw(self, count: int) -> bytes:
        """Up to ``count`` bytes of the file as it arrived, b"" at its end."""
        if self._unread:
            data, self._unread = self._unread, b""
            return data
        data = self._file.read(count)
        self._arrived += len(data)
        if self._arrived > self._limits.upload_bytes:
            self._too_large(self._arrived)
        if self._progress is not None and self.size:
            self._progress(min(self._arrived / self.size, 1.0))
        return data

    def _decode(self) -> bytes:
        data = self._decoder.decode()
        self._expanded += len(data)
        limits = self._limits
        if self._expanded > limits.expanded_bytes:
            raise Refusal(f"the file expands to more than {size(limits.expanded_bytes)}, the limit after decompression")
        if self.compression and self._expanded > _RATIO_FLOOR:
            compressed = self.size or self._arrived
            if self._expanded > limits.expansion_ratio * compressed:
                raise Refusal(
                    f"the file expands more than {limits.expansion_ratio}"
                    f" times ({size(compressed)} of {self.compression} "
                    f"became over {size(self._expanded)}), the limit for compressed files: this is no run file"
                )
        return data

    def peek(self, count: int) -> bytes:
        """The next ``count`` plain bytes (fewer at the end), left in place."""
        have = sum(map(len, self._ahead))
        while have < count:
            data = self._decode()
            if not data:
                break
            self._ahead.append(data)
            have += len(data)
        self._ahead = [b"".join(self._ahead)] if self._ahead else []
        return self._ahead[0][:count] if self._ahead else b""

    def read(self, count: int = -1) -> bytes:
        """Some plain bytes, at most ``count`` (any number when negative); b"" at the end."""
        data = self._ahead.pop(0) if self._ahead else self._decode()
        if 0 <= count < len(data):
            self._ahead.insert(0, data[count:])
            data = data[:count]
        return data

    def readinto(self, target: memoryview) -> int:
        """Fill ``target`` from the start; returns the bytes written, fewer than asked only at the end."""
        filled = 0
        while filled < len(target):
            if self._ahead or self.compression or self._unread:
                data = self.read(len(target) - filled)
                if not data:
                    break
                target[filled : filled + len(data)] = data
                filled += len(data)
                continue
            count = self._read_direct(target[filled:])
            if not count:
                break
            filled += count
        return filled

    def _read_direct(self, target: memoryview) -> int:
        """Plain files go straight into the caller's buffer."""
        readinto = getattr(self._file, "readinto", None)
        if readinto is None:
            data = self._decode()
            self._ahead.append(data)
            return 0 if not data else self.readinto(target)
        count = readinto(target) or 0
        self._arrived += count
        self._expanded += count
        if self._arrived > self._limits.upload_bytes:
            self._too_large(self._arrived)
        if self._expanded > self._limits.expanded_bytes:
            raise Refusal(
                f"the file has more than {size(self._limits.expanded_bytes)}, the limit for the text of a run"
            )
        if self._progress is not None and self.size:
            self._progress(min(self._arrived / self.size, 1.0))
        return int(count)

    def whole(self) -> Path | io.BytesIO:
        """The file itself, for a reader that needs to seek; a stream is read into memory, within the upload limit."""
        if self._path is not None:
            return self._path
        parts = []
        while data := self.read():
            parts.append(data)
        return io.BytesIO(b"".join(parts))

    def exhaust(self, most: int) -> None:
        """Read on, at most ``most`` bytes, only to see whether a limit is met."""
        seen = 0
        while seen < most and (data := self._decode()):
            seen += len(data)

    def close(self) -> None:
        """Close the file when this object opened it."""
        if self._path is not None:
            self._file.close()
