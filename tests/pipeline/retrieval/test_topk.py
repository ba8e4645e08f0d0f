from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.retrieval import topk
from pipeline.retrieval.progress import Cancelled, Progress
from pipeline.retrieval.topk import top_k


def vectors(count: int, dimension: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def expected(queries: np.ndarray, tools: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """By brute force: float64 products rounded to float32, ties by position descending."""
    scores = (queries.astype(np.float64) @ tools.astype(np.float64).T).astype(np.float32)
    order = np.stack([np.lexsort((np.arange(len(tools)), row))[::-1][:depth] for row in scores])
    return order, np.take_along_axis(scores, order, axis=1)


@pytest.mark.parametrize("device", ["cpu", "cpu:0"])
@pytest.mark.parametrize("depth", [1, 10, 100])
def test_equals_brute_force(device: str, depth: int) -> None:
    queries, tools = vectors(300, 37, 0), vectors(2000, 37, 1)
    found = top_k(queries, tools, depth, device=device)
    order, scores = expected(queries, tools, depth)
    np.testing.assert_allclose(found.scores, scores, rtol=2e-7)
    assert (found.tools == order).mean() > 0.9999


def test_equal_tools_tie_exactly_and_go_by_position_descending() -> None:
    tools = vectors(3000, 384, 3)
    tools[100:900] = tools[50]  # more equal tools than there is room for candidates
    queries = np.concatenate([tools[50:51], vectors(5, 384, 4)])
    found = top_k(queries, tools, 100)
    assert found.tools[0].tolist() == list(range(899, 799, -1))
    assert len(set(found.scores[0].tolist())) == 1


def test_chunks_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, tools = vectors(70, 96, 5), vectors(5000, 96, 6)
    tools[4000:4100] = tools[:100]
    whole = top_k(queries, tools, 50)
    monkeypatch.setattr(topk, "_QUERIES", 7)
    monkeypatch.setattr(topk, "_PRODUCTS", 7 * 333)
    split = top_k(queries, tools, 50)
    np.testing.assert_array_equal(whole.tools, split.tools)
    np.testing.assert_array_equal(whole.scores, split.scores)


def test_unnormalised_vectors_of_very_different_length() -> None:
    queries, tools = vectors(20, 64, 7) * 30, vectors(500, 64, 8)
    tools *= np.geomspace(1e-3, 1e3, 500, dtype=np.float32)[:, None]
    np.testing.assert_array_equal(top_k(queries, tools, 20).tools, expected(queries, tools, 20)[0])


def test_depth_is_clamped_and_memory_maps_are_read(tmp_path: Path) -> None:
    np.save(tmp_path / "tools.npy", vectors(5, 16, 9))
    tools = np.load(tmp_path / "tools.npy", mmap_mode="r")
    found = top_k(vectors(3, 16, 10), tools, 100)
    assert found.tools.shape == (3, 5)
    assert found.counts.tolist() == [5, 5, 5]


def test_nothing_to_search() -> None:
    assert top_k(np.zeros((2, 4), np.float32), np.zeros((0, 4), np.float32), 10).counts.tolist() == [0, 0]
    assert len(top_k(np.zeros((0, 4), np.float32), vectors(3, 4, 0), 10).counts) == 0


def test_refuses_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        top_k(vectors(1, 4, 0), vectors(1, 4, 0), 0)
    with pytest.raises(ValueError, match="4 dimensions"):
        top_k(vectors(1, 4, 0), vectors(1, 5, 0), 1)


def test_reports_and_stops() -> None:
    seen: list[Progress] = []
    top_k(vectors(600, 8, 0), vectors(50, 8, 1), 5, progress=seen.append)
    assert (seen[0].done, seen[-1].done, seen[-1].total, seen[-1].remaining_s) == (0, 600, 600, 0.0)
    with pytest.raises(Cancelled, match="search"):
        top_k(vectors(600, 8, 0), vectors(50, 8, 1), 5, cancelled=lambda: True)
