"""Exact top-k by inner product, in chunks: never a full queries × tools matrix.

A matrix product picks candidates; its rounding depends on library, chunk and machine, so every tool whose product
is within twice the rounding bound of the k-th best is scored again by one fixed order of float64 additions, rounded
once to float32. Those scores rank: descending, ties by tool id bytes descending (tools are in byte order of their
ids, so the larger position wins). The result is the same on CPU and GPU, for any chunk size.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from pipeline.retrieval.progress import CancelledCallback, ProgressCallback, Stage
from pipeline.retrieval.rankings import Rankings

FloatArray = npt.NDArray[np.float32]

#: Products held at once, in numbers: 32 M float32 are 128 MB.
_PRODUCTS = 1 << 25
_QUERIES = 256
#: Unit roundoff of float32.
_ROUNDOFF = 2.0**-24


def top_k(
    queries: FloatArray,
    tools: FloatArray,
    depth: int = 100,
    *,
    device: str = "cpu",
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Rankings:
    """The ``depth`` best tools of every query.

    Args:
        queries: float32 (queries, dimension), finite.
        tools: float32 (tools, dimension), finite, in byte order of the tool ids; may be memory-mapped.
        depth: clamped to the number of tools.
        device: ``cpu`` (numpy), or a torch device such as ``cuda``.
        progress: stage ``search``, in queries.
        cancelled: asked between chunks.

    Raises:
        Cancelled: on request.
        ValueError: dimensions differ, or ``depth`` is below 1.
    """
    if depth < 1:
        raise ValueError(f"depth is {depth}; it must be at least 1")
    if queries.shape[1] != tools.shape[1]:
        raise ValueError(f"queries have {queries.shape[1]} dimensions, tools {tools.shape[1]}")
    count, width = len(queries), min(depth, len(tools))
    rankings = Rankings.empty(count, width)
    rankings.counts[:] = width
    if count == 0 or width == 0:
        return rankings
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    margins = _margins(queries, tools)
    products = _NumpyProducts(tools) if device == "cpu" else _TorchProducts(tools, device)
    stage = Stage("search", count, progress, cancelled)
    for start in range(0, count, _QUERIES):
        chunk = slice(start, min(start + _QUERIES, count))
        _search(queries[chunk], tools, margins[chunk], products, rankings, chunk)
        stage.advance(chunk.stop - chunk.start)
    return rankings


def _margins(queries: FloatArray, tools: FloatArray) -> FloatArray:
    """Twice the worst rounding error of a float32 inner product, one figure a query (float32, rounded up)."""
    longest = max(
        float(np.sqrt(np.einsum("ij,ij->i", part, part, dtype=np.float64).max()))
        for start in range(0, len(tools), 1 << 14)
        for part in [tools[start : start + (1 << 14)]]
    )
    lengths = np.sqrt(np.einsum("ij,ij->i", queries, queries, dtype=np.float64))
    bound = 2.02 * (queries.shape[1] + 4) * _ROUNDOFF * lengths * longest
    margins: FloatArray = np.nextafter(bound.astype(np.float32), np.float32(np.inf))
    return margins


class _NumpyProducts:
    """Blocks of queries × tools by BLAS, into one reused buffer."""

    def __init__(self, tools: FloatArray) -> None:
        self._tools = tools
        self._buffer = np.empty(0, dtype=np.float32)

    def block(self, queries: FloatArray, start: int, end: int) -> FloatArray:
        size = len(queries) * (end - start)
        if len(self._buffer) < size:
            self._buffer = np.empty(size, dtype=np.float32)
        out: FloatArray = self._buffer[:size].reshape(len(queries), end - start)
        np.matmul(queries, self._tools[start:end].T, out=out)
        return out


class _TorchProducts:
    """The same on a torch device, tools kept there; products come back to the host."""

    def __init__(self, tools: FloatArray, device: str) -> None:
        import torch

        self._torch = torch
        self._device = device
        self._tools = torch.from_numpy(np.array(tools, dtype=np.float32)).to(device)

    def block(self, queries: FloatArray, start: int, end: int) -> FloatArray:
        torch: Any = self._torch
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")  # the error bound is that of full float32
        try:
            result = torch.from_numpy(queries).to(self._device) @ self._tools[start:end].T
            out: FloatArray = result.cpu().numpy()
            return out
        finally:
            torch.set_float32_matmul_precision(before)


def _search(
    queries: FloatArray,
    tools: FloatArray,
    margins: FloatArray,
    products: _NumpyProducts | _TorchProducts,
    rankings: Rankings,
    chunk: slice,
) -> None:
    width = rankings.tools.shape[1]
    # Room for the k best, what comes in before the next clean-up, and close calls; queries that need more are rare.
    capacity = min(len(tools), 4 * width + 512)
    kept_scores = np.empty((len(queries), capacity), dtype=np.float32)
    kept_tools = np.empty((len(queries), capacity), dtype=np.int32)
    kept = np.zeros(len(queries), dtype=np.int64)
    floor = np.full(len(queries), -np.inf, dtype=np.float32)
    step = max(1, _PRODUCTS // len(queries))
    for start in range(0, len(tools), step):
        block = products.block(queries, start, min(start + step, len(tools)))
        _collect(block, start, width, margins, kept_scores, kept_tools, kept, floor)
    for row in range(len(queries)):
        if kept[row] >= 0:
            chosen = kept_tools[row, : kept[row]]
            exact = exact_products(queries[row], tools, chosen)
        else:  # more close calls than room: score every tool
            chosen = np.arange(len(tools), dtype=np.int32)
            exact = exact_products(queries[row], tools, chosen)
        best = rank_order(exact, chosen)[:width]
        rankings.tools[chunk.start + row] = chosen[best]
        rankings.scores[chunk.start + row] = exact[best]


def rank_order(scores: FloatArray, positions: npt.NDArray[np.int32]) -> npt.NDArray[np.intp]:
    """The order of the ranking rule: scores descending, equal ones by position descending."""
    return np.lexsort((positions, scores))[::-1]


def exact_products(query: FloatArray, tools: FloatArray, chosen: npt.NDArray[np.int32]) -> FloatArray:
    """Inner products of one query with chosen tools, summed in float64 in a fixed order; float32 (chosen,)."""
    out = np.empty(len(chosen), dtype=np.float32)
    _exact(query, tools, chosen, out)
    return out


@numba.njit(cache=True, nogil=True)
def _exact(query, tools, chosen, out):  # type: ignore[no-untyped-def]
    dimension = len(query)
    lanes = np.empty(8, dtype=np.float64)
    for i in range(len(chosen)):
        vector = tools[chosen[i]]
        lanes[:] = 0.0
        whole = dimension - dimension % 8
        # Eight running sums, so that the processor can add them side by side; always the same order.
        for d in range(0, whole, 8):
            for lane in range(8):
                lanes[lane] += np.float64(query[d + lane]) * np.float64(vector[d + lane])
        for d in range(whole, dimension):
            lanes[d - whole] += np.float64(query[d]) * np.float64(vector[d])
        out[i] = np.float32(
            ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]))
        )


@numba.njit(cache=True, nogil=True)
def _collect(block, first, width, margins, kept_scores, kept_tools, kept, floor):  # type: ignore[no-untyped-def]
    """Keep what may be among the ``width`` best of each row; ``kept`` becomes -1 where there is no room for it."""
    capacity = kept_scores.shape[1]
    for row in range(block.shape[0]):
        count = kept[row]
        if count < 0:
            continue
        lowest = floor[row]
        for j in range(block.shape[1]):
            score = block[row, j]
            if score >= lowest:
                if count == capacity:
                    count, lowest = _tidy(kept_scores[row], kept_tools[row], count, width, margins[row])
                    if count == capacity:
                        count = -1
                        break
                    if score < lowest:
                        continue
                kept_scores[row, count] = score
                kept_tools[row, count] = first + j
                count += 1
        if count > width:
            count, lowest = _tidy(kept_scores[row], kept_tools[row], count, width, margins[row])
        kept[row] = count
        floor[row] = lowest


@numba.njit(cache=True, nogil=True)
def _tidy(scores, tools, count, width, margin):  # type: ignore[no-untyped-def]
    """Drop what cannot be among the ``width`` best; return (count, lowest score still of interest)."""
    if count < width:
        return count, np.float32(-np.inf)
    lowest = np.partition(scores[:count], count - width)[count - width] - margin
    left = 0
    for i in range(count):
        if scores[i] >= lowest:
            scores[left] = scores[i]
            tools[left] = tools[i]
            left += 1
    return left, np.float32(lowest)
