from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from pipeline.retrieval.embedding_cache import FolderEmbeddingCache

SPACE = "ab" * 32


def keys(start: int, end: int) -> list[bytes]:
    return [hashlib.sha256(str(i).encode()).digest() for i in range(start, end)]


def rows(start: int, end: int, dimension: int = 8) -> np.ndarray:
    return np.arange(start, end, dtype=np.float32)[:, None] + np.linspace(0, 0.5, dimension, dtype=np.float32)


def fill(cache: FolderEmbeddingCache, start: int, end: int, batch: int = 4) -> None:
    with cache.writer(SPACE, end - start, "cpu (test)") as writer:
        for i in range(start, end, batch):
            j = min(i + batch, end)
            writer.add(keys(i, j), rows(i, j), seconds=0.5 * (j - i))


def test_keeps_what_was_added_in_any_order(tmp_path: Path) -> None:
    cache = FolderEmbeddingCache(tmp_path / "c")
    assert not cache.look_up(SPACE, keys(0, 3)).found.any()
    fill(cache, 0, 10)
    for reader in (cache, FolderEmbeddingCache(tmp_path / "c")):
        wanted = keys(8, 12)[::-1]
        held = reader.look_up(SPACE, wanted)
        assert held.found.tolist() == [False, False, True, True]
        np.testing.assert_array_equal(held.embeddings[2:], rows(8, 10)[::-1])
        assert held.seconds.tolist() == [0, 0, 0.5, 0.5]
        assert held.devices == {"cpu (test)"}


def test_spaces_are_apart_and_can_be_discarded(tmp_path: Path) -> None:
    cache = FolderEmbeddingCache(tmp_path)
    fill(cache, 0, 4)
    assert not cache.look_up("cd" * 32, keys(0, 4)).found.any()
    assert cache.size() > 0
    cache.discard(SPACE)
    assert not cache.look_up(SPACE, keys(0, 4)).found.any()
    fill(cache, 2, 4)
    assert cache.look_up(SPACE, keys(0, 4)).found.tolist() == [False, False, True, True]


def test_another_readers_index_follows_a_growing_segment(tmp_path: Path) -> None:
    writing, reading = FolderEmbeddingCache(tmp_path), FolderEmbeddingCache(tmp_path)
    with writing.writer(SPACE, 8, "cpu") as writer:
        writer.add(keys(0, 4), rows(0, 4), 1.0)
        assert reading.look_up(SPACE, keys(0, 8)).found.sum() == 4
        writer.add(keys(4, 8), rows(4, 8), 1.0)
        assert reading.look_up(SPACE, keys(0, 8)).found.all()


def test_segments_are_plain_npy_files(tmp_path: Path) -> None:
    fill(FolderEmbeddingCache(tmp_path), 0, 6)
    (segment,) = tmp_path.rglob("*.npy")
    np.testing.assert_array_equal(np.load(segment), rows(0, 6))


def test_a_torn_record_and_a_damaged_row_do_not_exist(tmp_path: Path) -> None:
    fill(FolderEmbeddingCache(tmp_path), 0, 6)
    (index,) = tmp_path.rglob("*.index")
    index.write_bytes(index.read_bytes()[:-7])
    (segment,) = tmp_path.rglob("*.npy")
    content = bytearray(segment.read_bytes())
    content[-6 * 32 + 3] ^= 0xFF  # in row 0
    segment.write_bytes(content)
    held = FolderEmbeddingCache(tmp_path).look_up(SPACE, keys(0, 6))
    assert held.found.tolist() == [False, True, True, True, True, False]


def test_a_segment_without_its_other_half_is_ignored(tmp_path: Path) -> None:
    fill(FolderEmbeddingCache(tmp_path), 0, 3)
    fill(FolderEmbeddingCache(tmp_path), 3, 6)
    first, second = sorted(tmp_path.rglob("*.npy"))
    first.unlink()
    second.with_suffix(".index").write_bytes(b"equirank")
    assert not FolderEmbeddingCache(tmp_path).look_up(SPACE, keys(0, 6)).found.any()


def test_refuses_more_or_other_rows_than_announced(tmp_path: Path) -> None:
    with FolderEmbeddingCache(tmp_path).writer(SPACE, 2, "cpu") as writer:
        writer.add(keys(0, 1), rows(0, 1), 0.1)
        with pytest.raises(ValueError, match="at most 1 rows"):
            writer.add(keys(0, 2), rows(0, 2), 0.1)
        with pytest.raises(ValueError, match="expected 8 dimensions"):
            writer.add(keys(1, 2), rows(1, 2, dimension=4), 0.1)


WRITER = textwrap.dedent(
    """
    import sys, time
    from pathlib import Path
    from pipeline.retrieval.embedding_cache import FolderEmbeddingCache
    from tests.pipeline.retrieval.test_embedding_cache import SPACE, keys, rows
    start, end, pause = int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    with FolderEmbeddingCache(Path(sys.argv[1])).writer(SPACE, end - start, "cpu") as writer:
        for i in range(start, end, 4):
            writer.add(keys(i, i + 4), rows(i, i + 4), 0.1)
            print(i + 4, flush=True)
            time.sleep(pause)
    """
)


def writer(folder: Path, start: int, end: int, pause: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(folder), str(start), str(end), str(pause)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3])


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    both = [writer(tmp_path, 0, 400, 0), writer(tmp_path, 200, 600, 0)]
    assert [p.wait(60) for p in both] == [0, 0]
    held = FolderEmbeddingCache(tmp_path).look_up(SPACE, keys(0, 600))
    assert held.found.all()
    np.testing.assert_array_equal(held.embeddings, rows(0, 600))


def test_kill_minus_nine_loses_nothing_that_was_added(tmp_path: Path) -> None:
    process = writer(tmp_path, 0, 4000, 0.002)
    assert process.stdout is not None
    added = 0
    deadline = time.monotonic() + 30
    while added < 40 and time.monotonic() < deadline:
        added = int(process.stdout.readline())
    os.kill(process.pid, signal.SIGKILL)
    added = max([added, *(int(line) for line in process.stdout.read().split())])
    process.wait(10)
    held = FolderEmbeddingCache(tmp_path).look_up(SPACE, keys(0, 4000))
    assert held.found[:added].all()
    assert held.found.sum() in (added, added + 4)
    fill(FolderEmbeddingCache(tmp_path), added, added + 8)  # another writer goes on
    assert FolderEmbeddingCache(tmp_path).look_up(SPACE, keys(0, added + 8)).found.all()
