"""What a score should be read with: coverage, judged tools and what ties could change, for a whole run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.scoring.averages import average_of
from pipeline.scoring.scores import RunScores


@dataclass(frozen=True)
class RunFacts:
    """Facts of one run at one cutoff K.

    Attributes:
        k: the cutoff.
        queries: queries of the benchmark.
        answered: queries with at least one result.
        judged: share of the tools in all first-K lists that were judged for their query, in [0, 1] (judged@K);
            None when the run retrieved nothing.
        tied_queries: queries with tied tools among the first K.
        tied_tools: tied tools among the first K, over all queries.
        old_band: lowest and highest NDCG@K that other orders of ties could give, as the benchmark's headline average.
        new_band: the same for the new metric.
        band_is_exact: False when the lower end of ``new_band`` is a bound that may not be reached.
    """

    k: int
    queries: int
    answered: int
    judged: float | None
    tied_queries: int
    tied_tools: int
    old_band: tuple[float, float]
    new_band: tuple[float, float]
    band_is_exact: bool


def run_facts(scores: RunScores, k: int = 10) -> RunFacts:
    """Facts of a scored run at cutoff ``k``.

    Raises:
        ValueError: the run was not scored at ``k``.
    """
    if k not in scores.cutoffs:
        raise ValueError(f"the run was scored at {list(scores.cutoffs)}, not at {k}")
    j = scores.cutoffs.index(k)
    facts, band, compiled = scores.facts, scores.band, scores.compiled

    def headline(values: npt.NDArray[np.float64]) -> float:
        return average_of(values, compiled.domain_of, compiled.headline)

    shown = int(np.minimum(facts.retrieved, k).sum())
    return RunFacts(
        k=k,
        queries=len(facts.retrieved),
        answered=int(np.count_nonzero(facts.retrieved)),
        judged=1 - int(facts.unjudged[j].sum()) / shown if shown else None,
        tied_queries=int(np.count_nonzero(facts.ties[j])),
        tied_tools=int(facts.ties[j].sum()),
        old_band=(headline(band.old_low[j]), headline(band.old_high[j])),
        new_band=(headline(band.new_low[j]), headline(band.new_high[j])),
        band_is_exact=bool(band.exact[j].all()),
    )
