"""What stands beside a new version: who gave each verdict, what it took, and who found each candidate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from pipeline.toolex.expand import Expansion
from pipeline.toolex.records import Provenance, State

#: The largest product that is written; a true one can have any number of digits.
_MOST = (1 << 63) - 1
#: One row a question. ``tool_ids`` is what was judged (of a decomposition, C*), ``accepted`` null where the stage
#: accepts nothing; ``cost`` is null where the price is unknown.
PROVENANCE = {
    "stage": pl.String,
    "query_id": pl.String,
    "position": pl.Int32,
    "tool_ids": pl.List(pl.String),
    "accepted": pl.Boolean,
    "rationale": pl.String,
    "judge": pl.String,
    "prompt": pl.String,
    "key": pl.String,
    "draw": pl.Int32,
    "attempts": pl.Int32,
    "prompt_tokens": pl.Int64,
    "completion_tokens": pl.Int64,
    "cost": pl.Float64,
    "seconds": pl.Float64,
    "cached": pl.Boolean,
    "failure": pl.String,
}
#: One row a candidate and member of the pool; ``rank`` is null where the member did not retrieve it.
CANDIDATE_RANKS = {
    "query_id": pl.String,
    "position": pl.Int32,
    "tool_id": pl.String,
    "member": pl.String,
    "rank": pl.Int32,
}
#: One row a query.
QUERY_STATES = {
    "query_id": pl.String,
    "decompose": pl.String,
    "verify": pl.String,
    "audit": pl.String,
    "decomposition_failed": pl.Boolean,
    "reason": pl.String,
    "truncated": pl.Boolean,
    "product": pl.Int64,
    "audited": pl.Int32,
}


def provenance_frame(expansion: Expansion) -> pl.DataFrame:
    """The provenance of every answer and failure; columns of ``PROVENANCE``, by stage within each query."""
    return pl.DataFrame(list(_rows(expansion)), schema=PROVENANCE, orient="row")  # type: ignore[arg-type]


def _rows(expansion: Expansion) -> Iterator[tuple[Any, ...]]:
    for query in expansion.queries:
        task, first = query.task, query.decomposition
        for number, draw in enumerate(first.draws, start=1):
            last = number == len(first.draws)
            said = first.reason if last and first.state is State.FAILED else ""
            yield _row(draw, task.query_id, None, task.truth, first.state is State.DONE and last, said)
        for verdicts in query.verdicts or ():
            for verdict in verdicts:
                if verdict.provenance is not None:
                    place, tools = verdict.subquery.position, (verdict.candidate.tool_id,)
                    yield _row(verdict.provenance, task.query_id, place, tools, verdict.accepted, verdict.reason)
        for made in query.combinations or ():
            if made.provenance is not None:
                members = made.combination.tool_ids
                yield _row(made.provenance, task.query_id, None, members, made.accepted, made.reason)


def _row(
    provenance: Provenance,
    query_id: str,
    position: int | None,
    tool_ids: tuple[str, ...],
    accepted: bool,
    rationale: str,
) -> tuple[Any, ...]:
    usage = provenance.usage
    return (
        provenance.stage.value,
        query_id,
        position,
        list(tool_ids),
        accepted,
        "" if provenance.failure else rationale,
        provenance.judge,
        provenance.prompt,
        provenance.key,
        provenance.draw,
        provenance.attempts,
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.cost,
        usage.seconds,
        provenance.cached,
        provenance.failure,
    )


def candidate_ranks_frame(expansion: Expansion) -> pl.DataFrame:
    """Which member of the pool retrieved each candidate at which rank; columns of ``CANDIDATE_RANKS``."""
    rows = [
        (verdict.subquery.query_id, verdict.subquery.position, verdict.candidate.tool_id, member, rank)
        for query in expansion.queries
        for verdicts in query.verdicts or ()
        for verdict in verdicts
        for member, rank in zip(expansion.pool, verdict.candidate.ranks, strict=True)
    ]
    return pl.DataFrame(rows, schema=CANDIDATE_RANKS, orient="row")


def query_states_frame(expansion: Expansion) -> pl.DataFrame:
    """How far each query is and what became of it; columns of ``QUERY_STATES``."""
    rows = []
    for query in expansion.queries:
        states = [state.value for state in query.states.values()]
        audited = sum(made.provenance is not None for made in query.combinations or ())
        product = None if query.product is None else min(query.product, _MOST)
        failed, reason = query.decomposition_failed, query.decomposition.reason
        rows.append((query.task.query_id, *states, failed, reason, query.truncated, product, audited))
    return pl.DataFrame(rows, schema=QUERY_STATES, orient="row")
