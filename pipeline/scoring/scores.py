"""Score one run: every metric, old and new, at every cutoff, with the facts of each query."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from pipeline.run import Run
from pipeline.scoring.compiled import CompiledBenchmark, EquivalentsBasis
from pipeline.scoring.discounts import check_cutoffs
from pipeline.scoring.facts import QueryFacts, query_facts
from pipeline.scoring.kernel import METRICS, Evaluation, evaluate
from pipeline.scoring.tie_band import TieBand, tie_band

#: The cutoffs of every stored score; 10 is the headline.
DEFAULT_CUTOFFS = (1, 5, 10, 20)


@dataclass(frozen=True, eq=False)
class RunScores:
    """All that was computed of one run.

    Attributes:
        compiled: the labels it was scored against.
        cutoffs: ascending.
        evaluation: scores as arrays.
        facts: facts as arrays.
        band: NDCG under the worst and best order of ties.
    """

    compiled: CompiledBenchmark
    cutoffs: tuple[int, ...]
    evaluation: Evaluation
    facts: QueryFacts
    band: TieBand

    @cached_property
    def per_query(self) -> pl.DataFrame:
        """One row a query of the benchmark, in the order of its ids' bytes; unanswered queries score 0.

        Columns: ``query_id``, ``domain``, ``source``, ``retrieved``, ``first_truth_rank``, ``best_equivalent_rank``
        (null when not retrieved); for each K and each of NDCG, Recall, Comp: ``old_NDCG@K``, ``new_NDCG@K`` and
        ``winner_NDCG@K`` (0-based combination, 0 is C*; the first one on equal scores); for each K:
        ``equivalents_found@K``, ``subquery_equivalents_found@K`` (a list, null when the benchmark has no
        stage-2 verdicts), ``unjudged@K``, ``ties@K``, ``old_NDCG@K_low``, ``old_NDCG@K_high``, ``new_NDCG@K_low``,
        ``new_NDCG@K_high`` and ``new_NDCG@K_low_exact``.
        """
        compiled, facts = self.compiled, self.facts
        columns: dict[str, pl.Series] = {
            "query_id": pl.Series(compiled.queries.ids, dtype=pl.String),
            "domain": pl.Series(compiled.domain_names, dtype=pl.String).gather(compiled.domain_of),
            "source": pl.Series(compiled.source_names, dtype=pl.String).gather(compiled.source_of),
            "retrieved": pl.Series(facts.retrieved),
            "first_truth_rank": pl.Series(facts.first_truth_rank),
            "best_equivalent_rank": pl.Series(facts.best_equivalent_rank),
        }
        for j, k in enumerate(self.cutoffs):
            for m, metric in enumerate(METRICS):
                columns[f"old_{metric}@{k}"] = pl.Series(self.evaluation.old[m, j])
                columns[f"new_{metric}@{k}"] = pl.Series(self.evaluation.new[m, j])
                columns[f"winner_{metric}@{k}"] = pl.Series(self.evaluation.winner[m, j])
            columns[f"equivalents_found@{k}"] = pl.Series(facts.equivalents_found[j])
            columns[f"subquery_equivalents_found@{k}"] = self._by_subquery(j)
            columns[f"unjudged@{k}"] = pl.Series(facts.unjudged[j])
            columns[f"ties@{k}"] = pl.Series(facts.ties[j])
            columns[f"old_NDCG@{k}_low"] = pl.Series(self.band.old_low[j])
            columns[f"old_NDCG@{k}_high"] = pl.Series(self.band.old_high[j])
            columns[f"new_NDCG@{k}_low"] = pl.Series(self.band.new_low[j])
            columns[f"new_NDCG@{k}_high"] = pl.Series(self.band.new_high[j])
            columns[f"new_NDCG@{k}_low_exact"] = pl.Series(self.band.exact[j])
        ranks = pl.col("first_truth_rank", "best_equivalent_rank")
        return pl.DataFrame(columns).with_columns(pl.when(ranks > 0).then(ranks).name.keep())

    def _by_subquery(self, cutoff: int) -> pl.Series:
        queries = len(self.compiled.queries)
        if self.compiled.equivalents_basis is not EquivalentsBasis.VERIFIED:
            return pl.Series([None] * queries, dtype=pl.List(pl.Int32))
        counts = np.diff(self.compiled.subquery_offsets)
        frame = pl.DataFrame(
            {
                "query": np.repeat(np.arange(queries), counts),
                "found": self.facts.subquery_equivalents_found[cutoff],
            }
        )
        # Every query has at least one sub-query, so every query comes out of the grouping.
        return frame.group_by("query", maintain_order=True).agg("found")["found"]


def score_run(compiled: CompiledBenchmark, run: Run, cutoffs: tuple[int, ...] = DEFAULT_CUTOFFS) -> RunScores:
    """Score a ranked run against compiled labels.

    Args:
        compiled: the labels.
        run: over the same queries and tools (read against ``compiled.target``).
        cutoffs: any set of 1 ≤ K ≤ 1,000.

    Raises:
        ValueError: a cutoff is out of range, or the run is over another number of queries.
    """
    depths = check_cutoffs(cutoffs)
    if len(run.offsets) != len(compiled.queries) + 1:
        raise ValueError(
            f"the run is over {len(run.offsets) - 1} queries, {compiled.name} has {len(compiled.queries)}: "
            "read it against this benchmark"
        )
    evaluation = evaluate(compiled, run, depths)
    facts = query_facts(compiled, run, depths)
    return RunScores(compiled, depths, evaluation, facts, tie_band(compiled, run, depths, evaluation, facts.ties))
