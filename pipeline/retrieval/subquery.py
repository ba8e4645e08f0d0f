"""The sub-query method: every sub-query retrieves its own top 20, fused by reciprocal rank.

The sub-queries were written with the labelled tools in view, so this is a ceiling that helps to explain a retriever,
not a usable setting; results carry a dagger.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.benchmark import Benchmark
from pipeline.errors import BenchmarkError
from pipeline.formats.messages import plural
from pipeline.run import RunTarget

#: Results of each sub-query.
DEPTH = 20
NOTE = "Sub-queries were written with the labelled tools in view: a ceiling, not a usable setting."


@dataclass(frozen=True, eq=False)
class SubqueryTexts:
    """The sub-queries of a benchmark in the order of ``RunTarget.queries``.

    Attributes:
        texts: all sub-queries, query after query, by position.
        query_of: int64 (sub-queries,), position of the query each belongs to.
        offsets: int64 (queries + 1): those of query q are ``texts[offsets[q]:offsets[q + 1]]``, at least one.
        whole: queries that have no sub-query and stand for themselves.
    """

    texts: list[str]
    query_of: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    whole: int

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the results must know."""
        if not self.whole:
            return (NOTE,)
        return (NOTE, f"{plural(self.whole, 'query has', 'queries have')} no sub-query and went as a whole.")


def subquery_texts(benchmark: Benchmark, target: RunTarget, queries: list[str]) -> SubqueryTexts:
    """Collect the sub-queries.

    Args:
        benchmark: the benchmark.
        target: its ids.
        queries: the query texts in the order of ``target.queries``; used where a query has no sub-query.

    Raises:
        BenchmarkError: the benchmark has no sub-queries at all.
    """
    if benchmark.subqueries.height == 0:
        raise BenchmarkError(
            f"{target.name} has no sub-queries, so the sub-query method does not apply; use full-doc, or import a "
            "version with the table subqueries."
        )
    rows = benchmark.subqueries.sort("query_id", "position")
    found: list[list[str]] = [[] for _ in queries]
    places = target.queries.find(rows["query_id"].to_list())
    for place, text in zip(places.tolist(), rows["text"].to_list(), strict=True):
        found[place].append(text)
    whole = sum(not texts for texts in found)
    found = [texts or [queries[place]] for place, texts in enumerate(found)]
    offsets = np.zeros(len(found) + 1, dtype=np.int64)
    np.cumsum([len(texts) for texts in found], out=offsets[1:])
    owners = np.repeat(np.arange(len(found), dtype=np.int64), np.diff(offsets))
    return SubqueryTexts([text for texts in found for text in texts], owners, offsets, whole)
