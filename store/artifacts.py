"""Files named by the hash of their content, on a local disk or an object store.

Layout: ``ab/cd/<sha256>.parquet`` for frames, ``ab/cd/<sha256>.bin`` for anything else. On a local disk a file is
written under a temporary name, fsynced, renamed, and its folder fsynced: once ``put_…`` returned, the artifact is
there after a power cut, and a reader never sees half a file. Putting the same content twice changes nothing.
A row that names an artifact is written after the artifact; ``store.access.doctor`` finds the ones that no row names.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any

import fsspec
import polars as pl

from store.errors import ArtifactDamaged, ArtifactMissing, StoreError
from store.settings import Settings, redacted

FRAME = "parquet"
FILE = "bin"

_CHUNK = 1 << 20
_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES}
_NAME = re.compile(r"^[0-9a-f]{64}\.(parquet|bin)$")
_HASH = re.compile(r"^[0-9a-f]{64}$")

#: Fixed, so that the same frame always makes the same bytes.
_PARQUET: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 3,
    "statistics": True,
    "row_group_size": 1 << 18,
    "data_page_size": 1 << 20,
}


@dataclass(frozen=True)
class StoredArtifact:
    """A file in the store.

    Attributes:
        size: in bytes.
        modified: when it was written, None where the store does not say.
    """

    hash: str
    size: int
    modified: datetime | None


class ArtifactStore:
    """Content-addressed files under one folder or object-store prefix.

    Args:
        url: a folder, or an fsspec address such as ``s3://bucket/path``.
        cache_folder: where files of a remote store are kept for reading; needed for remote stores only.

    Raises:
        StoreError: the address cannot be used or its driver is not installed.
    """

    def __init__(self, url: str | Path, cache_folder: Path | None = None) -> None:
        """Prepare access; nothing is written yet."""
        self.url = redacted(str(url))
        scheme = str(url).split("://", 1)[0] if "://" in str(url) else "file"
        try:
            self._fs, root = fsspec.core.url_to_fs(str(url))
        except (ImportError, ValueError) as error:
            hint = "pip install 'equirank[s3]'" if scheme == "s3" else "use a folder or s3://bucket/path"
            raise StoreError(
                f"artifacts cannot be kept at {self.url} ({error}): {hint} (EQUIRANK_ARTIFACT_URL)"
            ) from None
        self._root = str(root).rstrip("/")
        self._local = scheme in {"file", "local"}
        self._cache = cache_folder
        self._checked: dict[str, tuple[int, int]] = {}
        self._put: set[str] = set()

    @classmethod
    def from_settings(cls, settings: Settings) -> ArtifactStore:
        """The store that the settings name."""
        return cls(settings.artifact_url, settings.cache_folder / "artifacts")

    @property
    def is_local(self) -> bool:
        """Whether the files lie on this machine's file system (which two hosts do not share by themselves)."""
        return self._local

    # Writing

    def put_bytes(self, content: bytes) -> str:
        """Keep these bytes; returns their sha256 in hex."""
        with self._incoming() as (file, path):
            file.write(content)
            file.flush()
            return self._take(path, hashlib.sha256(content).hexdigest(), FILE)

    def put_file(self, source: str | Path | IO[bytes]) -> str:
        """Keep a copy of a file or of what is left in a binary stream, a chunk at a time; returns its sha256."""
        with self._incoming() as (file, path):
            if isinstance(source, str | Path):
                with Path(source).open("rb") as opened:
                    digest = _copy(opened, file)
            else:
                digest = _copy(source, file)
            file.flush()
            return self._take(path, digest, FILE)

    def put_frame(self, frame: pl.DataFrame) -> str:
        """Keep a frame as parquet (zstd); equal frames make equal bytes. Returns the file's sha256."""
        with self._incoming() as (_, path):
            frame.rechunk().write_parquet(path, **_PARQUET)
            with path.open("rb") as written:
                digest = hashlib.file_digest(written, "sha256").hexdigest()
            return self._take(path, digest, FRAME)

    @contextmanager
    def _incoming(self) -> Iterator[tuple[IO[bytes], Path]]:
        """A temporary file on the file system of the store (or of the system, for a remote store)."""
        folder = Path(self._root) / "incoming" if self._local else None
        try:
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=folder, prefix="new-")
        except OSError as error:
            raise StoreError(
                f"nothing can be written to {self.url} ({error.strerror}): "
                "set EQUIRANK_ARTIFACT_URL or EQUIRANK_HOME to a folder that can be written"
            ) from None
        path = Path(name)
        try:
            with os.fdopen(handle, "r+b") as file:
                yield file, path
        except OSError as error:
            if error.errno in _DISK_ERRORS:
                raise StoreError(
                    f"the artifact was not written to {self.url} ({error.strerror}): nothing is stored; "
                    "make room, or set EQUIRANK_ARTIFACT_URL to another place"
                ) from None
            raise
        finally:
            path.unlink(missing_ok=True)

    def _take(self, path: Path, digest: str, suffix: str) -> str:
        """Move a finished temporary file to its name, unless a whole one is there."""
        target = self._path(digest, suffix)
        size = path.stat().st_size
        if self._local:
            final = Path(target)
            if final.is_file() and final.stat().st_size == size and self._is_whole(final, digest):
                _fsync(final.parent)  # another writer may have renamed it a moment ago
                return digest
            _fsync(path)
            made = [folder for folder in (final.parent.parent, final.parent) if not folder.is_dir()]
            final.parent.mkdir(parents=True, exist_ok=True)
            path.chmod(0o644)
            path.replace(final)
            _fsync(final.parent)
            for folder in made:
                _fsync(folder.parent)
            stat = final.stat()
            self._checked[target] = (stat.st_mtime_ns, stat.st_size)
        elif not (self._fs.exists(target) and self._fs.size(target) == size):
            # An object appears whole or not at all, so no temporary name is needed there.
            self._fs.makedirs(target.rsplit("/", 1)[0], exist_ok=True)
            self._fs.put_file(str(path), target)
        self._put.add(digest)
        return digest

    # Reading

    def exists(self, digest: str) -> bool:
        """Whether a file with this hash is there (its content is not looked at)."""
        return self._find(digest) is not None

    def require(self, digest: str) -> None:
        """Make sure that the file is there and whole, before a row names it; raises as ``open``.

        What this process wrote or read before is not read again, so this is quick inside a transaction.
        """
        if self._local or digest not in self._put:
            self.local_path(digest)

    def open(self, digest: str) -> IO[bytes]:
        """The file, for reading from its start; the caller closes it.

        Raises:
            ArtifactMissing: there is none.
            ArtifactDamaged: its bytes have another hash.
        """
        return self.local_path(digest).open("rb")

    def get_bytes(self, digest: str) -> bytes:
        """All bytes of a file; raises as ``open``."""
        return self.local_path(digest).read_bytes()

    def get_frame(self, digest: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """A frame, or some of its columns; raises as ``open``."""
        return pl.read_parquet(self.local_path(digest), columns=list(columns) if columns is not None else None)

    def scan(self, digest: str) -> pl.LazyFrame:
        """A frame to query without loading it all; raises as ``open``."""
        return pl.scan_parquet(self.local_path(digest))

    def local_path(self, digest: str) -> Path:
        """A whole, checked copy of the file on this machine: the file itself, or its copy in the cache folder.

        The hash is checked once a process for as long as the file does not change; raises as ``open``.
        """
        found = self._find(digest)
        if found is None:
            raise ArtifactMissing(
                f"artifact {digest} is not in {self.url}: it was removed, or EQUIRANK_ARTIFACT_URL names another place"
            )
        path = Path(found) if self._local else self._fetch(found, digest)
        if not self._is_whole(path, digest):
            if not self._local:
                path.unlink(missing_ok=True)
            raise ArtifactDamaged(self._damage(digest))
        return path

    def verify(self, digest: str) -> None:
        """Read the whole file and compare its hash, whatever was checked before.

        Raises:
            ArtifactMissing: there is none.
            ArtifactDamaged: its bytes have another hash.
        """
        found = self._find(digest)
        if found is None:
            raise ArtifactMissing(f"artifact {digest} is not in {self.url}")
        with self._fs.open(found, "rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise ArtifactDamaged(self._damage(digest))

    def stored(self) -> Iterator[StoredArtifact]:
        """Every artifact in the store."""
        if not self._fs.exists(self._root):
            return
        for name, details in self._fs.find(self._root, detail=True).items():
            base = name.rsplit("/", 1)[-1]
            if _NAME.match(base):
                yield StoredArtifact(base.split(".")[0], int(details["size"]), _modified(details))

    def remove_abandoned(self, older_than: timedelta = timedelta(days=1)) -> int:
        """Delete temporary files that killed writers left; returns how many. Remote stores have none."""
        folder = Path(self._root) / "incoming"
        if not self._local or not folder.is_dir():
            return 0
        limit = (datetime.now(UTC) - older_than).timestamp()
        abandoned = [path for path in folder.glob("new-*") if path.stat().st_mtime <= limit]
        for path in abandoned:
            path.unlink(missing_ok=True)
        return len(abandoned)

    def remove(self, digest: str) -> None:
        """Delete a file; only for ones that no row names (``store.access.doctor.orphans``)."""
        found = self._find(digest)
        if found is not None:
            self._fs.rm_file(found)

    def _path(self, digest: str, suffix: str) -> str:
        return f"{self._root}/{digest[:2]}/{digest[2:4]}/{digest}.{suffix}"

    def _find(self, digest: str) -> str | None:
        if not _HASH.match(digest):
            return None
        for suffix in (FRAME, FILE):
            path = self._path(digest, suffix)
            if Path(path).is_file() if self._local else self._fs.exists(path):
                return path
        return None

    def _fetch(self, found: str, digest: str) -> Path:
        """Copy an object into the cache folder, under a temporary name first."""
        folder = self._cache or Path(tempfile.gettempdir()) / "equirank-artifacts"
        target = folder / digest[:2] / found.rsplit("/", 1)[-1]
        if not target.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=target.parent, prefix="new-")
            try:
                with os.fdopen(handle, "wb") as file, self._fs.open(found, "rb") as remote:
                    shutil.copyfileobj(remote, file, _CHUNK)
                Path(name).replace(target)
            finally:
                Path(name).unlink(missing_ok=True)
        return target

    def _is_whole(self, path: Path, digest: str) -> bool:
        stat = path.stat()
        state = (stat.st_mtime_ns, stat.st_size)
        if self._checked.get(str(path)) == state:
            return True
        with path.open("rb") as file:
            whole = hashlib.file_digest(file, "sha256").hexdigest() == digest
        if whole:
            self._checked[str(path)] = state
        return whole

    def _damage(self, digest: str) -> str:
        return (
            f"artifact {digest} in {self.url} is damaged (its bytes have another hash): "
            "restore the file from a backup, or put the same content again"
        )


def _copy(source: IO[bytes], target: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while chunk := source.read(_CHUNK):
        digest.update(chunk)
        target.write(chunk)
    return digest.hexdigest()


def _fsync(path: Path) -> None:
    """Force a file, or a folder's list of names, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _modified(details: dict[str, Any]) -> datetime | None:
    for name in ("mtime", "LastModified", "created"):
        value = details.get(name)
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, datetime):
            return value if value.tzinfo else value.replace(tzinfo=UTC)
    return None
