from __future__ import annotations

import errno
import hashlib
import io
import os
import threading
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from store.artifacts import ArtifactStore
from store.errors import ArtifactDamaged, ArtifactMissing, StoreError

ABSENT = "0" * 64


@pytest.fixture(params=["local", "remote"])
def artifacts(request, tmp_path):
    """A local folder, and fsspec's in-memory file system in the place of an object store."""
    if request.param == "local":
        return ArtifactStore(tmp_path / "artifacts")
    return ArtifactStore(f"memory://{tmp_path.name}/artifacts", tmp_path / "cache")


def _frame(rows: int = 1000) -> pl.DataFrame:
    random = np.random.default_rng(7)
    return pl.DataFrame(
        {
            "query_id": [f"q{i // 10}" for i in range(rows)],
            "tool_id": [f"t{i}" for i in random.integers(0, 500, rows)],
            "score": random.random(rows).astype(np.float32),
        }
    )


def test_bytes_come_back_under_their_hash(artifacts):
    digest = artifacts.put_bytes(b"a ranking")
    assert digest == hashlib.sha256(b"a ranking").hexdigest()
    assert artifacts.exists(digest)
    assert artifacts.get_bytes(digest) == b"a ranking"
    with artifacts.open(digest) as file:
        assert file.read(2) == b"a "
    artifacts.verify(digest)


def test_files_and_streams_are_copied(artifacts, tmp_path):
    content = bytes(range(256)) * 20_000
    path = tmp_path / "run.trec"
    path.write_bytes(content)
    from_path = artifacts.put_file(path)
    stream = io.BytesIO(b"read before" + content)
    stream.read(11)
    assert artifacts.put_file(stream) == from_path
    assert artifacts.get_bytes(from_path) == content
    assert path.read_bytes() == content


def test_frames_come_back_whole_or_by_column(artifacts):
    frame = _frame()
    digest = artifacts.put_frame(frame)
    assert_frame_equal(artifacts.get_frame(digest), frame)
    assert_frame_equal(artifacts.get_frame(digest, ["score"]), frame.select("score"))
    found = artifacts.scan(digest).filter(pl.col("query_id") == "q3").collect()
    assert found.height == 10


def test_equal_frames_make_one_artifact(artifacts):
    frame = _frame(300_000)
    pieces = pl.concat([frame[:7], frame[7:150_000], frame[150_000:]], rechunk=False)
    assert pieces.n_chunks() > 1
    assert artifacts.put_frame(frame) == artifacts.put_frame(pieces) == artifacts.put_frame(frame.clone())
    assert len(list(artifacts.stored())) == 1


def test_layout(tmp_path):
    artifacts = ArtifactStore(tmp_path / "artifacts")
    digest = artifacts.put_frame(_frame())
    other = artifacts.put_bytes(b"x")
    assert (tmp_path / "artifacts" / digest[:2] / digest[2:4] / f"{digest}.parquet").is_file()
    assert (tmp_path / "artifacts" / other[:2] / other[2:4] / f"{other}.bin").is_file()
    assert list((tmp_path / "artifacts" / "incoming").iterdir()) == []


def test_a_missing_artifact_is_named(artifacts):
    for read in (artifacts.open, artifacts.get_frame, artifacts.scan, artifacts.verify, artifacts.get_bytes):
        with pytest.raises(ArtifactMissing, match=ABSENT):
            read(ABSENT)
    assert not artifacts.exists(ABSENT)
    assert not artifacts.exists("../../etc/passwd")


def test_damage_is_found_by_readers_and_repaired_by_putting_again(tmp_path):
    artifacts = ArtifactStore(tmp_path / "artifacts")
    digest = artifacts.put_frame(_frame())
    assert artifacts.get_frame(digest).height == 1000
    path = artifacts.local_path(digest)
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(bytes(damaged))
    for read in (artifacts.get_frame, artifacts.verify, artifacts.open):
        with pytest.raises(ArtifactDamaged, match=digest):
            read(digest)
    assert artifacts.put_frame(_frame()) == digest
    artifacts.verify(digest)


def test_a_truncated_file_is_damaged(tmp_path):
    artifacts = ArtifactStore(tmp_path / "artifacts")
    digest = artifacts.put_bytes(b"complete")
    artifacts.local_path(digest).write_bytes(b"compl")
    with pytest.raises(ArtifactDamaged, match=digest):
        artifacts.get_bytes(digest)


def test_a_failed_write_leaves_nothing(tmp_path):
    artifacts = ArtifactStore(tmp_path / "artifacts")

    class Breaking(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            raise ConnectionError("the upload broke off")

    with pytest.raises(ConnectionError):
        artifacts.put_file(Breaking())
    assert [path for path in (tmp_path / "artifacts").rglob("*") if path.is_file()] == []


def test_many_writers_of_one_content(artifacts):
    frame = _frame()
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.append(artifacts.put_frame(frame))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8
    assert len(set(made)) == 1
    artifacts.verify(made[0])


def test_listing_and_removal(artifacts):
    assert list(artifacts.stored()) == []
    digest = artifacts.put_bytes(b"12345")
    (stored,) = artifacts.stored()
    assert (stored.hash, stored.size) == (digest, 5)
    assert stored.modified is not None
    assert abs(datetime.now(UTC) - stored.modified) < timedelta(minutes=1)
    artifacts.remove(digest)
    assert not artifacts.exists(digest)


def test_what_a_row_may_name(artifacts, tmp_path):
    digest = artifacts.put_bytes(b"there")
    artifacts.require(digest)
    with pytest.raises(ArtifactMissing, match=ABSENT):
        artifacts.require(ABSENT)
    if artifacts.is_local:
        artifacts.local_path(digest).write_bytes(b"other")
        with pytest.raises(ArtifactDamaged, match=digest):
            artifacts.require(digest)


def test_another_process_is_not_trusted(tmp_path):
    digest = ArtifactStore(tmp_path / "artifacts").put_bytes(b"there")
    fresh = ArtifactStore(tmp_path / "artifacts")
    fresh.require(digest)
    next((tmp_path / "artifacts").rglob("*.bin")).write_bytes(b"THERE")
    with pytest.raises(ArtifactDamaged):
        ArtifactStore(tmp_path / "artifacts").require(digest)


def test_a_full_disk_is_said_in_words(tmp_path):
    class Full(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(StoreError, match="No space left on device"):
        ArtifactStore(tmp_path / "artifacts").put_file(Full())


def test_leftovers_of_killed_writers_are_removed(tmp_path):
    artifacts = ArtifactStore(tmp_path / "artifacts")
    digest = artifacts.put_bytes(b"kept")
    left = tmp_path / "artifacts" / "incoming" / "new-abc"
    left.write_bytes(b"half")
    assert artifacts.remove_abandoned() == 0
    os.utime(left, (0, 0))
    assert artifacts.remove_abandoned() == 1
    assert not left.exists()
    assert artifacts.exists(digest)


def test_an_address_that_cannot_be_used_names_the_setting(tmp_path):
    with pytest.raises(StoreError, match="EQUIRANK_ARTIFACT_URL"):
        ArtifactStore("nosuchscheme://bucket/path")
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="EQUIRANK_ARTIFACT_URL"):
        ArtifactStore(tmp_path / "file" / "artifacts").put_bytes(b"x")
