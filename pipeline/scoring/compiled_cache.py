"""Compile once per benchmark version: a cache of compiled ground truth, and one in a folder.

A cache is a convenience: whatever is missing, damaged or cannot be written is compiled again.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from pipeline.benchmark import Benchmark
from pipeline.scoring.compiled import CompiledBenchmark, CompiledFileError
from pipeline.scoring.version import COMPILER_VERSION


class CompiledCache(Protocol):
    """Where compiled ground truth is kept, by key (``cache_key``)."""

    def get(self, key: str) -> CompiledBenchmark | None:
        """What is kept under ``key``; None when there is nothing usable."""

    def put(self, key: str, compiled: CompiledBenchmark) -> None:
        """Keep ``compiled`` under ``key``, if that is possible."""


def cache_key(content_hash: str) -> str:
    """The key of a benchmark's compiled ground truth; another compiler version has another key."""
    return f"{content_hash}-{COMPILER_VERSION}"


def compiled_benchmark(benchmark: Benchmark, cache: CompiledCache | None = None) -> CompiledBenchmark:
    """The compiled ground truth of ``benchmark``, from the cache if it is there.

    Raises:
        BenchmarkError: the labels are inconsistent (see ``compile_benchmark``).
    """
    if cache is None:
        return _compile(benchmark)
    key = cache_key(benchmark.content_hash)
    found = cache.get(key)
    if found is None or found.content_hash != benchmark.content_hash:
        found = _compile(benchmark)
        cache.put(key, found)
    # The content hash does not cover the benchmark's name and headline.
    info = benchmark.info
    return replace(found, name=f"{info.slug}@{info.version}", headline=info.effective_headline)


def _compile(benchmark: Benchmark) -> CompiledBenchmark:
    from pipeline.scoring.compiler import compile_benchmark

    return compile_benchmark(benchmark)


class FolderCache:
    """Files named by key in one folder, written atomically.

    A file that cannot be read counts as absent and is written again; a folder that cannot be written to is left
    alone. For a benchmark folder, ``FolderCache(folder / ".compiled")`` keeps the arrays beside the benchmark.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, key: str) -> Path:
        """Where ``key`` is kept."""
        return self.folder / f"{key}.npz"

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
