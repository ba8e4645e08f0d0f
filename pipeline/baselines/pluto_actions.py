"""Choose the next action of a plan from several drawn ones (PLUTo, Huang et al. 2024).

Actions are told apart by TF-IDF vectors cut into two clusters by 2-means. There are at most seven or so, so the best
cut is found by trying all: no start values, the same on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

#: Distinct actions that can be told apart: used ones and drawn ones together.
MOST = 12


def majority_stops(stops: Sequence[bool]) -> bool:
    """Whether more than half of the votes are to stop; also when nobody voted, since then nothing goes on."""
    return 2 * sum(stops) > len(stops) or not stops


def fresh_actions(used: Sequence[str], drawn: Sequence[str]) -> list[str]:
    """The drawn actions outside every cluster that holds an action used already, in the order drawn, repeats kept.

    Args:
        used: actions of earlier hops.
        drawn: candidates for the next.

    Returns:
        All of them at the first hop; none when all resemble used ones.
    """
    if not used:
        return list(drawn)
    spoken = {_normal(action) for action in used}
    new = [action for action in drawn if _normal(action) not in spoken]
    texts = list(dict.fromkeys([*used, *new]))
    cluster = dict(zip(texts, two_means(tf_idf(texts)).tolist(), strict=True))
    taken = {cluster[action] for action in used}
    return [action for action in new if cluster[action] not in taken]


def pick(actions: Sequence[str], seed: int, hop: int, query: str) -> str:
    """One of the actions at random; a query draws the same whatever other queries are asked beside it."""
    return random.Random(f"{seed}\n{hop}\n{query}").choice(list(actions))


def tf_idf(texts: Sequence[str]) -> npt.NDArray[np.float64]:
    """TF-IDF rows of length 1 (float64, texts × terms); rows of zeros where a text has no term."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        rows: npt.NDArray[np.float64] = TfidfVectorizer(token_pattern=r"(?u)\b\w+\b").fit_transform(texts).toarray()
    except ValueError:  # not one text has a term
        return np.zeros((len(texts), 1))
    return rows


def two_means(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """The cluster (0 or 1) of each row under the cut into two with the least sum of squared distances to the means.

    Row 0 is in cluster 0. Equal rows are never cut apart; of equally good cuts the first in binary order is taken.

    Raises:
        ValueError: there are more than twelve distinct rows, whose cuts are too many to try.
    """
    distinct, place = np.unique(rows, axis=0, return_inverse=True)
    count = len(distinct)
    if count < 2:
        return np.zeros(len(rows), dtype=np.int64)
    if count > MOST:
        raise ValueError(f"{count} distinct rows; {MOST} can be cut")
    weights = np.bincount(place, minlength=count).astype(np.float64)
    best = _tightest(_all_cuts(count), distinct, weights)[place].astype(np.int64)
    return best if best[0] == 0 else 1 - best


def _all_cuts(count: int) -> npt.NDArray[np.bool_]:
    numbers = np.arange(1, 1 << (count - 1))
    return ((numbers[:, None] >> np.arange(count)[None, :]) & 1).astype(np.bool_)


def _tightest(
    masks: npt.NDArray[np.bool_], rows: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    # The least sum of squares within is the greatest sum of |sum of a cluster|² / its size.
    gram = (rows * weights[:, None]) @ (rows * weights[:, None]).T
    gain = np.zeros(len(masks))
    for side in (masks.astype(np.float64), (~masks).astype(np.float64)):
        gain += np.einsum("mi,ij,mj->m", side, gram, side) / (side @ weights)
    best: npt.NDArray[np.bool_] = masks[int(np.argmax(np.round(gain, 12)))]
    return best


def _normal(action: str) -> str:
    return " ".join(action.casefold().split())
