"""Compile once per benchmark version: a folder of compiled ground truth.

The cache is a convenience: whatever is missing, damaged or cannot be written is compiled again.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from pipeline.scoring.compiled import CompiledBenchmark, CompiledFileError


class FolderCache:
    """Files named by key in one folder, written atomically.

    A key names everything that the arrays depend on: content, name, headline and compiler version. A file that
    cannot be read counts as absent and is written again; a folder that cannot be written to is left alone.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, key: str) -> Path:
        """Where ``key`` is kept."""
        return self.folder / f"{key}.npz"

    def compiled(self, key: str, make: Callable[[], CompiledBenchmark]) -> CompiledBenchmark:
        """What is kept under ``key``; else what ``make`` gives, which is then kept."""
        found = self.get(key)
        if found is None:
            found = make()
            self.put(key, found)
        return found

    def get(self, key: str) -> CompiledBenchmark | None:
        """What is kept under ``key``; None when it is absent, damaged or cannot be read."""
        try:
            return CompiledBenchmark.load(self.path(key))
        except (CompiledFileError, OSError):
            return None

    def put(self, key: str, compiled: CompiledBenchmark) -> None:
        """Write a temporary file and rename it; without permission or space nothing is kept."""
        temporary = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.folder, suffix=".part")
            os.close(handle)
            temporary = Path(name)
            compiled.save(temporary)
            temporary.replace(self.path(key))
        except OSError:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    temporary.unlink()
