"""An expansion as frames: what a chunk of a job keeps, and what a new version is put together from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import polars as pl

from pipeline.benchmark import EQUIVALENTS, SUBQUERIES, TABLES, Benchmark, Judgement
from pipeline.toolex.expand import Expansion, QueryExpansion
from pipeline.toolex.provenance import candidate_ranks_frame, provenance_frame, query_states_frame
from pipeline.toolex.records import AuditedCombination, Verdict


@dataclass(frozen=True, eq=False)
class ExpansionFrames:
    """Some queries of an expansion.

    Attributes:
        subqueries, equivalents, combinations: rows of the benchmark tables of these names; they hold no time, cost or
            attempt.
        states: one row a query, see ``QUERY_STATES``.
        provenance: one row a question, see ``PROVENANCE``.
        ranks: one row a candidate and member of the pool, see ``CANDIDATE_RANKS``.
    """

    subqueries: pl.DataFrame
    equivalents: pl.DataFrame
    combinations: pl.DataFrame
    states: pl.DataFrame
    provenance: pl.DataFrame
    ranks: pl.DataFrame

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """Every frame by name, to be stored."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def pending(self) -> list[str]:
        """Queries with a stage that waits for answers."""
        waiting = pl.any_horizontal(pl.col("decompose", "verify", "audit") == "pending")
        return self.states.filter(waiting)["query_id"].to_list()


def frames_of(expansion: Expansion) -> ExpansionFrames:
    """The frames of an expansion; a pending query has a state and what is known of it, but no combinations."""
    queries = expansion.queries
    return ExpansionFrames(
        subqueries_frame(queries),
        equivalents_frame(queries),
        combinations_frame(queries),
        query_states_frame(expansion),
        provenance_frame(expansion),
        candidate_ranks_frame(expansion),
    )


def together(chunks: Sequence[ExpansionFrames], parent: Benchmark) -> ExpansionFrames:
    """The chunks of one run as one, in the order of the benchmark's queries, whatever order they were made in.

    Raises:
        ValueError: there is no chunk, or a query is in two.
    """
    if not chunks:
        raise ValueError("there is no chunk to put together")
    order = parent.queries.select("query_id", pl.int_range(pl.len()).alias("place"))

    def whole(name: str) -> pl.DataFrame:
        rows = pl.concat([chunk.tables[name] for chunk in chunks])
        placed = rows.join(order, on="query_id", how="left", maintain_order="left")
        return placed.sort("place", maintain_order=True).drop("place")

    made = ExpansionFrames(**{field.name: whole(field.name) for field in fields(ExpansionFrames)})
    if made.states["query_id"].is_duplicated().any():
        raise ValueError("two chunks hold the same query")
    return made


def _judgement(made: Verdict | AuditedCombination) -> str:
    """No valid answer is ``unsure``: it counts as no, and can be told from a judge's no."""
    if made.accepted:
        return Judgement.VALID.value
    unanswered = made.provenance is not None and bool(made.provenance.failure)
    return Judgement.UNSURE.value if unanswered else Judgement.INVALID.value


def _judge(made: Verdict | AuditedCombination) -> str:
    return "" if made.provenance is None else made.provenance.judge


def subqueries_frame(queries: Iterable[QueryExpansion]) -> pl.DataFrame:
    """Rows of the table ``subqueries``; none for a query whose decomposition failed."""
    rows = [
        (subquery.query_id, subquery.position, subquery.text, subquery.tool_id)
        for query in queries
        for subquery in query.decomposition.subqueries
    ]
    return pl.DataFrame(rows, schema=SUBQUERIES, orient="row")


def equivalents_frame(queries: Iterable[QueryExpansion]) -> pl.DataFrame:
    """Rows of the table ``equivalents``, every verdict, in rank order."""
    rows = [
        (
            verdict.subquery.query_id,
            verdict.subquery.position,
            verdict.candidate.tool_id,
            _judgement(verdict),
            verdict.reason,
            _judge(verdict),
            verdict.candidate.rank,
            verdict.origin.value,
            verdict.same_operation,
            verdict.inputs_available,
        )
        for query in queries
        for row in query.verdicts or ()
        for verdict in row
    ]
    return pl.DataFrame(rows, schema=EQUIVALENTS, orient="row")


def combinations_frame(queries: Iterable[QueryExpansion]) -> pl.DataFrame:
    """Rows of the table ``combinations``, C* first, then by score."""
    rows = [
        (
            made.query_id,
            list(made.combination.tool_ids),
            made.is_truth,
            made.combination.score,
            _judgement(made),
            made.reason,
            _judge(made),
            made.coverage,
            made.dependency_consistent,
        )
        for query in queries
        for made in query.combinations or ()
    ]
    return pl.DataFrame(rows, schema=TABLES["combinations"], orient="row")
