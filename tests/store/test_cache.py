from __future__ import annotations

import numpy as np
import pytest

from store.cache import FileCache


def test_a_file_comes_back_under_its_key(tmp_path):
    cache = FileCache(tmp_path / "cache")
    assert cache.get("compiled-abc.npz") is None
    path = cache.put("compiled-abc.npz", lambda target: np.savez(target, a=np.arange(3)))
    assert cache.get("compiled-abc.npz") == path
    assert np.load(path)["a"].tolist() == [0, 1, 2]
    cache.discard("compiled-abc.npz")
    assert cache.get("compiled-abc.npz") is None


def test_any_text_is_a_key_and_stays_in_the_folder(tmp_path):
    cache = FileCache(tmp_path / "cache")
    keys = ["../outside", "a/b", "", "UPPER", "x" * 500, "ünïcode"]
    for key in keys:
        cache.put_bytes(key, key.encode())
    for key in keys:
        assert cache.get(key).read_bytes() == key.encode()
        assert cache.get(key).parent == tmp_path / "cache"
    assert len(list((tmp_path / "cache").iterdir())) == len(keys)


def test_a_failed_writer_leaves_the_old_file(tmp_path):
    cache = FileCache(tmp_path / "cache")
    cache.put_bytes("key", b"old")

    def broken(target):
        target.write_bytes(b"half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        cache.put("key", broken)
    assert cache.get("key").read_bytes() == b"old"
    assert [path.name for path in cache.folder.iterdir()] == ["key"]
