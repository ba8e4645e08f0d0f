"""Compiled ground truth of benchmark folders that are used as they lie, without a database.

Reading and checking every row of a large folder takes seconds, so the arrays are kept in the home's cache (not in
the folder, which may be somebody else's). The key holds each file's name, size, inode and times: any write to the
folder gives another key.
"""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

from pipeline.errors import BenchmarkError
from pipeline.formats.benchmark_folder import read_benchmark_folder
from pipeline.kernel_cache import sources_hash
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.compiled_cache import FolderCache
from pipeline.scoring.compiler import compile_benchmark
from pipeline.scoring.version import COMPILER_VERSION

#: File systems may stamp two writes in one tick alike; younger files are read anew every time.
_SETTLED_SECONDS = 3.0


def compiled_folder(folder: Path, cache_folder: Path) -> CompiledBenchmark:
    """The labels of a benchmark folder.

    Args:
        folder: with ``benchmark.toml``.
        cache_folder: where compiled folders are kept; one file a folder.

    Raises:
        BenchmarkError: the folder is not a sound benchmark.
    """
    place = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:32]
    before, youngest = _fingerprint(folder)
    key = f"{place}-{before}"
    cache = FolderCache(cache_folder)
    found = cache.get(key)
    if found is not None:
        return found
    compiled = compile_benchmark(read_benchmark_folder(folder))
    after, _ = _fingerprint(folder)
    if after == before and time.time() - youngest > _SETTLED_SECONDS:
        for stale in cache_folder.glob(f"{place}-*"):
            stale.unlink(missing_ok=True)
        cache.put(key, compiled)
    return compiled


def _fingerprint(folder: Path) -> tuple[str, float]:
    """A hash over the state of the folder's files, and the time of the youngest change."""
    digest = hashlib.sha256(f"{COMPILER_VERSION} {sources_hash()}\n".encode())
    youngest = 0.0
    try:
        for path in sorted(folder.iterdir()):
            state = path.stat()
            digest.update(
                f"{path.name}\0{state.st_size} {state.st_ino} {state.st_mtime_ns} {state.st_ctime_ns}\n".encode()
            )
            youngest = max(youngest, state.st_mtime, state.st_ctime)
    except OSError as error:
        raise BenchmarkError(f"the folder {str(folder)!r} cannot be read: {error.strerror}") from None
    return digest.hexdigest()[:32], youngest
