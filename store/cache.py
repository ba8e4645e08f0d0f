"""A folder of files that can be made again: key → file, written whole or not at all."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from store.settings import Settings

_PLAIN = re.compile(r"^[a-z0-9][a-z0-9._-]{0,120}$")


class FileCache:
    """Files by key, such as the compiled ground truth of a benchmark version.

    The key must name the content fully (content hash and format version), so that an entry never goes stale.

    Args:
        folder: made on the first write.
    """

    def __init__(self, folder: Path) -> None:
        """Remember the folder."""
        self.folder = folder

    @classmethod
    def from_settings(cls, settings: Settings, name: str) -> FileCache:
        """The cache called ``name`` under the home folder."""
        return cls(settings.cache_folder / name)

    def path(self, key: str) -> Path:
        """Where the file of ``key`` lies, whether it is there or not; keys of any text are safe."""
        return self.folder / (key if _PLAIN.match(key) else hashlib.sha256(key.encode()).hexdigest())

    def get(self, key: str) -> Path | None:
        """The file of ``key``, None when it is not there."""
        path = self.path(key)
        return path if path.is_file() else None

    def put(self, key: str, write: Callable[[Path], None]) -> Path:
        """Make the file of ``key``: ``write`` fills a temporary file, which then takes its place at once.

        Two processes may do so at the same time; the later one wins and a reader sees one of both, whole.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        target = self.path(key)
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="new-") as folder:
            # A folder of its own, since some writers (numpy) add a suffix to a name without one.
            temporary = Path(folder) / target.name
            write(temporary)
            return temporary.replace(target)

    def put_bytes(self, key: str, content: bytes) -> Path:
        """Make the file of ``key`` from these bytes."""
        return self.put(key, lambda path: _write(path, content))

    def discard(self, key: str) -> None:
        """Forget the file of ``key``, as when it turned out unreadable."""
        self.path(key).unlink(missing_ok=True)


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
