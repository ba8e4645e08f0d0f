"""The kernel of sign-flip tests: how often randomly signed sums reach a bar, for many scores at once.

Signs of eight queries are one byte, and a 256-entry table holds the partial sums of eight queries for every byte, so
a flip costs one look-up for eight queries. All scores share the signs: the sum of a difference of two runs is the
difference of their sums, and n runs give all n (n − 1) / 2 pairs at the price of n sums. The kernel releases the GIL
and starts no threads.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from pipeline.scoring.random_words import STEP, mix, stream

#: Queries behind one table, one bit each.
GROUP = 8

#: Scores that go through a table together: one cache line of float64.
TILE = 8

#: Flips whose sums are held at a time.
BLOCK = 4096


def count_reaching(
    scores: npt.NDArray[np.float64],
    first: npt.NDArray[np.int64],
    second: npt.NDArray[np.int64],
    bars: npt.NDArray[np.float64],
    flips: int,
    seed: int,
) -> npt.NDArray[np.int64]:
    """For each contrast, how many of ``flips`` random sign assignments give a sum of at least its bar in size.

    Args:
        scores: (scores, queries), already weighted; a query has the same sign in every score.
        first: (contrasts,), row of each contrast's first score.
        second: (contrasts,), row of the score that is subtracted; −1 for none.
        bars: (contrasts,).
        flips: sign assignments.
        seed: of the signs.

    Returns:
        int64 (contrasts,).
    """
    rows, queries = scores.shape
    groups, tiles = -(-queries // GROUP), -(-rows // TILE)
    padded = np.zeros((tiles * TILE, groups * GROUP))
    padded[:rows, :queries] = scores
    # (tile, group, query of the group, score of the tile): what one table needs lies together.
    packed = np.ascontiguousarray(padded.reshape(tiles, TILE, groups, GROUP).transpose(0, 2, 3, 1))
    counts = np.zeros(len(first), dtype=np.int64)
    _count(packed, first, second, bars, flips, np.uint64(seed), counts)
    return counts


@numba.njit(cache=True, nogil=True)
def _draw_signs(seed, start, flips, signs):  # type: ignore[no-untyped-def]
    """``signs[g, b]``: eight signs for the queries of group g in flip ``start + b``; bit set means +."""
    groups = len(signs)
    counter = np.empty(flips, dtype=np.uint64)
    for b in range(flips):
        counter[b] = stream(seed, np.uint64(start + b))
    for word in range(0, groups, 8):
        here = min(8, groups - word)
        for b in range(flips):
            counter[b] += STEP
            bits = mix(counter[b])
            for g in range(here):
                signs[word + g, b] = np.uint8((bits >> np.uint64(8 * g)) & np.uint64(0xFF))


@numba.njit(cache=True, nogil=True)
def _add_up(values, signs, flips, total):  # type: ignore[no-untyped-def]
    """``total[b, c]``: sum of the positively signed values of score c; ``values`` is (groups, 8, scores)."""
    table = np.zeros((256, 8))
    total[:flips] = 0.0
    for g in range(len(values)):
        for query in range(8):
            half = 1 << query
            for pattern in range(half):
                for c in range(8):
                    table[half + pattern, c] = table[pattern, c] + values[g, query, c]
        row = signs[g]
        for b in range(flips):
            pattern = row[b]
            for c in range(8):
                total[b, c] += table[pattern, c]


@numba.njit(cache=True, nogil=True)
def _count(packed, first, second, bars, flips, seed, counts):  # type: ignore[no-untyped-def]
    tiles, groups = packed.shape[0], packed.shape[1]
    signs = np.empty((groups, BLOCK), dtype=np.uint8)
    positive = np.empty((BLOCK, TILE))
    sums = np.empty((tiles * TILE, BLOCK))
    # All signs positive; the signed sum is what is positive, twice, minus this.
    whole = np.zeros(tiles * TILE)
    for tile in range(tiles):
        for g in range(groups):
            for query in range(GROUP):
                for c in range(TILE):
                    whole[tile * TILE + c] += packed[tile, g, query, c]
    for start in range(0, flips, BLOCK):
        here = min(BLOCK, flips - start)
        _draw_signs(seed, start, here, signs)
        for tile in range(tiles):
            _add_up(packed[tile], signs, here, positive)
            for c in range(TILE):
                row = sums[tile * TILE + c]
                for b in range(here):
                    row[b] = 2.0 * positive[b, c] - whole[tile * TILE + c]
        for i in range(len(first)):
            one = sums[first[i]]
            bar = bars[i]
            reached = 0
            if second[i] < 0:
                for b in range(here):
                    reached += abs(one[b]) >= bar
            else:
                other = sums[second[i]]
                for b in range(here):
                    reached += abs(one[b] - other[b]) >= bar
            counts[i] += reached
