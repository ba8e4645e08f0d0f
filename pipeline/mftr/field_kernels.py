"""The loops of field scoring: best text of a tool, scaling, penalty and total, one query after another.

Sums run in float64 in the order of the tools, so that a score does not depend on the chunk a query is in.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def best_of_texts(block, bounds, first, out):  # type: ignore[no-untyped-def]
    """The maximum over a query's rows, into columns from ``first`` on; 0 for a query without rows.

    Args:
        block: float32 (texts, columns).
        bounds: int64 (queries + 1): rows of each query.
        first: first column of ``out``.
        out: float32 (queries, all columns).
    """
    for query in range(len(bounds) - 1):
        start, end = bounds[query], bounds[query + 1]
        target = out[query, first : first + block.shape[1]]
        if start == end:
            target[:] = 0
            continue
        target[:] = block[start]
        for row in range(start + 1, end):
            for column in range(block.shape[1]):
                target[column] = max(target[column], block[row, column])


@numba.njit(cache=True, nogil=True)
def tool_maximum(best, places, offsets, out):  # type: ignore[no-untyped-def]
    """The best of a tool's texts; 0 for a tool without any. ``best`` (queries, texts) → ``out`` (queries, tools)."""
    for query in range(best.shape[0]):
        for tool in range(len(offsets) - 1):
            start, end = offsets[tool], offsets[tool + 1]
            highest = np.float32(0)
            if end > start:
                highest = best[query, places[start]]
                for i in range(start + 1, end):
                    highest = max(highest, best[query, places[i]])
            out[query, tool] = highest


@numba.njit(cache=True, nogil=True)
def tool_mean(best, places, offsets, out):  # type: ignore[no-untyped-def]
    """The mean over a tool's texts; 0 for a tool without any."""
    for query in range(best.shape[0]):
        for tool in range(len(offsets) - 1):
            start, end = offsets[tool], offsets[tool + 1]
            total = 0.0
            for i in range(start, end):
                total += best[query, places[i]]
            out[query, tool] = total / (end - start) if end > start else 0.0


@numba.njit(cache=True, nogil=True)
def standardise_texts(best, counts):  # type: ignore[no-untyped-def]
    """Mean 0 and deviation 1 of every row over the occurrences of its texts, in place; 0 where all are equal.

    Args:
        best: float32 (queries, texts).
        counts: int64 (texts,), occurrences of each.
    """
    total = counts.sum()
    if total == 0:
        return
    for query in range(best.shape[0]):
        mean = 0.0
        for text in range(best.shape[1]):
            mean += counts[text] * best[query, text]
        mean /= total
        spread = 0.0
        for text in range(best.shape[1]):
            spread += counts[text] * (best[query, text] - mean) ** 2
        factor = _inverse_deviation(spread / total, mean)
        for text in range(best.shape[1]):
            best[query, text] = (best[query, text] - mean) * factor


@numba.njit(cache=True, nogil=True)
def scale_tools(scores, filled, impute, standardise):  # type: ignore[no-untyped-def]
    """Impute the mean over filled tools, and give filled tools mean 0 and deviation 1; in place.

    Args:
        scores: float32 (queries, tools).
        filled: bool (tools,), which have the field.
        impute: whether the others get the mean.
        standardise: whether scores are scaled.
    """
    count = filled.sum()
    if count == 0:
        return
    for query in range(scores.shape[0]):
        mean = 0.0
        for tool in range(scores.shape[1]):
            if filled[tool]:
                mean += scores[query, tool]
        mean /= count
        absent = mean if impute else 0.0
        factor = 1.0
        if standardise:
            spread = 0.0
            for tool in range(scores.shape[1]):
                if filled[tool]:
                    spread += (scores[query, tool] - mean) ** 2
            factor = _inverse_deviation(spread / count, mean)
        for tool in range(scores.shape[1]):
            score = np.float64(scores[query, tool]) if filled[tool] else absent
            scores[query, tool] = (score - mean) * factor if standardise else score


@numba.njit(cache=True, nogil=True)
def _inverse_deviation(variance, mean):  # type: ignore[no-untyped-def]
    """1 / deviation; 0 where equal scores differ by rounding only."""
    if np.sqrt(variance) <= 1e-6 * max(abs(mean), 1e-6):
        return 0.0
    return 1.0 / np.sqrt(variance)


@numba.njit(cache=True, nogil=True)
def missing_share(score, tau, alpha, sign):  # type: ignore[no-untyped-def]
    """σ(sign · α(τ − s)): how far a parameter counts as missing; 0 to 1."""
    return 1.0 / (1.0 + np.exp(min(max(-sign * alpha * (tau - score), -700.0), 700.0)))


@numba.njit(cache=True, nogil=True)
def total_scores(  # type: ignore[no-untyped-def]
    fields, best, charged, places, offsets, required, fold_of, weights, biases, penalties, sign, out
):
    """Σ w_f S_f + b − P for every tool.

    Args:
        fields: float32 (queries, 4, tools).
        best: float32 (queries, parameter texts), s_p.
        charged: bool (queries,), whether the query has a penalty.
        places, offsets: the parameters of each tool.
        required: bool (parameters,).
        fold_of: int64 (queries,), rows of the next three.
        weights: float64 (folds, 4).
        biases: float64 (folds,).
        penalties: float64 (folds, 4): τ, α, charge of a required and of an optional parameter.
        sign: 1, or −1 for the sign as printed.
        out: float32 (queries, tools).
    """
    shares = np.empty(best.shape[1], dtype=np.float64)
    for query in range(fields.shape[0]):
        fold = fold_of[query]
        tau, alpha = penalties[fold, 0], penalties[fold, 1]
        if charged[query]:
            at_zero = missing_share(0.0, tau, alpha, sign)
            for text in range(best.shape[1]):
                score = best[query, text]
                shares[text] = at_zero if score == 0 else missing_share(score, tau, alpha, sign)
        for tool in range(fields.shape[2]):
            total = biases[fold]
            for field in range(4):
                total += weights[fold, field] * fields[query, field, tool]
            if charged[query]:
                for i in range(offsets[tool], offsets[tool + 1]):
                    total -= shares[places[i]] * (penalties[fold, 2] if required[i] else penalties[fold, 3])
            out[query, tool] = total


@numba.njit(cache=True, nogil=True)
def best_tools(scores, tools, kept, counts):  # type: ignore[no-untyped-def]
    """The best tools of every row: scores descending, equal ones by position descending, also at the cut.

    Args:
        scores: float32 (queries, tools), finite.
        tools: int32 (queries, depth), receives positions.
        kept: float32 (queries, depth), receives scores.
        counts: int64 (queries,), receives ``depth``.
    """
    size, width = scores.shape[1], tools.shape[1]
    keys = np.empty(size, dtype=np.int64)
    for query in range(scores.shape[0]):
        lowest = np.partition(scores[query], size - width)[size - width]
        count = 0
        for tool in range(size):
            if scores[query, tool] >= lowest:
                # Adding 0 makes −0 equal to 0. Bits of floats order like the floats once those of negative ones turn.
                bits = np.int64(np.float32(scores[query, tool] + np.float32(0)).view(np.int32))
                if bits < 0:
                    bits ^= np.int64(0x7FFFFFFF)
                keys[count] = (bits << 32) | np.int64(tool)
                count += 1
        ordered = np.sort(keys[:count])
        for rank in range(width):
            place = np.int64(ordered[count - 1 - rank] & 0xFFFFFFFF)
            tools[query, rank] = place
            kept[query, rank] = scores[query, place] + np.float32(0)
        counts[query] = width
