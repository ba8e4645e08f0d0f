"""The three stages over some queries, as far as their answers are known.

The same call serves every way of asking. A live asker answers everything, so one call goes from query to audited
combinations. A batch's writer answers nothing new: the first call writes the decompositions; once their answers are
imported, the next writes the verdicts, and a third the audits. After a stop or a crash the same call goes on where it
was, because whatever was answered comes from the asker's cache and the rest of the work is deterministic.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pipeline.benchmark import Benchmark
from pipeline.llm.records import Asker
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.toolex.audit import audit, truth_combination
from pipeline.toolex.candidates import CandidatePool, absent_rank
from pipeline.toolex.combine import Combinations, RankedTool, combine
from pipeline.toolex.decompose import decompose
from pipeline.toolex.records import (
    AuditedCombination,
    Combination,
    Decomposition,
    State,
    Subquery,
    Task,
    Verdict,
)
from pipeline.toolex.settings import Stage, ToolexSettings
from pipeline.toolex.verify import verify


@dataclass(frozen=True, slots=True)
class QueryExpansion:
    """How far one query is.

    Attributes:
        decomposition: stage 1.
        verdicts: by position, None while stage 2 is pending; empty where the decomposition failed.
        combinations: C* first, None while stage 3 is pending.
        truncated: whether combinations were cut off at the cap; None while unknown.
        product: choices before the cap; None while unknown.
    """

    task: Task
    decomposition: Decomposition
    verdicts: tuple[tuple[Verdict, ...], ...] | None = None
    combinations: tuple[AuditedCombination, ...] | None = None
    truncated: bool | None = None
    product: int | None = None

    @property
    def states(self) -> Mapping[Stage, State]:
        """The state of each stage. A stage counts as failed when a question of it got no valid answer."""
        first = self.decomposition.state
        if first is not State.DONE:
            # Without sub-queries there is nothing more to ask: the query keeps C*.
            later = State.DONE if first is State.FAILED else State.PENDING
            return {Stage.DECOMPOSE: first, Stage.VERIFY: later, Stage.AUDIT: later}
        return {Stage.DECOMPOSE: first, Stage.VERIFY: self._verify_state, Stage.AUDIT: self._audit_state}

    @property
    def _verify_state(self) -> State:
        if self.verdicts is None:
            return State.PENDING
        failed = any(
            verdict.provenance is not None and verdict.provenance.failure
            for verdicts in self.verdicts
            for verdict in verdicts
        )
        return State.FAILED if failed else State.DONE

    @property
    def _audit_state(self) -> State:
        if self.combinations is None:
            return State.PENDING
        failed = any(made.provenance is not None and made.provenance.failure for made in self.combinations)
        return State.FAILED if failed else State.DONE

    @property
    def complete(self) -> bool:
        """Whether nothing is pending; failed questions count as no."""
        return self.combinations is not None

    @property
    def decomposition_failed(self) -> bool:
        """Whether the query keeps C* because no draw of stage 1 was a bijection."""
        return self.decomposition.state is State.FAILED


@dataclass(frozen=True, eq=False)
class Expansion:
    """Some queries, as far as they are.

    Attributes:
        settings: how they were expanded.
        pool: names of the retrievers, in the order of ``Candidate.ranks``.
        queries: in the benchmark's order.
    """

    settings: ToolexSettings
    pool: tuple[str, ...]
    queries: tuple[QueryExpansion, ...]

    @property
    def complete(self) -> bool:
        """Whether nothing is pending."""
        return all(query.complete for query in self.queries)

    def counts(self) -> dict[Stage, dict[State, int]]:
        """Queries by stage and state."""
        counts = {stage: dict.fromkeys(State, 0) for stage in Stage}
        for query in self.queries:
            for stage, state in query.states.items():
                counts[stage][state] += 1
        return counts


def tasks_of(benchmark: Benchmark, query_ids: Collection[str] | None = None) -> list[Task]:
    """The queries of a benchmark in its order, all or some.

    Only what comes before ``subqueries`` is read: a benchmark that was expanded before is expanded anew.
    """
    truth = dict(benchmark.ground_truth.select("query_id", "tool_ids").iter_rows())
    rows = benchmark.queries.select("query_id", "text", "instruction", "domain").iter_rows()
    wanted = None if query_ids is None else set(query_ids)
    return [
        Task(query_id, text, instruction or "", domain or "", tuple(truth[query_id]))
        for query_id, text, instruction, domain in rows
        if wanted is None or query_id in wanted
    ]


def documents_of(benchmark: Benchmark) -> dict[str, str]:
    """Documentation by tool id, verbatim."""
    return dict(benchmark.tools.select("tool_id", "documentation").iter_rows())


def expand(
    benchmark: Benchmark,
    settings: ToolexSettings,
    asker: Asker,
    pool: CandidatePool,
    *,
    query_ids: Collection[str] | None = None,
    stages: Collection[Stage] = tuple(Stage),
    documents: Mapping[str, str] | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Expansion:
    """Take queries as far through the stages as their answers are known or can be had.

    Args:
        benchmark: its queries, tools and ground truth.
        settings: judges and rules; the pool is given apart, so that a job builds it once.
        asker: who answers.
        pool: where candidates come from, see ``library_pool``.
        query_ids: the queries of a chunk; None takes all.
        stages: stages that are entered; a later one is left out where an earlier one is not among them.
        documents: ``documents_of(benchmark)``, where it is known already.
        progress: stages ``decompose``, ``documents``, ``queries``, ``search``, ``verify``, ``audit``.
        cancelled: asked between parts.

    Raises:
        BudgetExceeded: before a call that could exceed the budget; what was answered is in the asker's cache.
        Cancelled: on request.
        JudgeError: a judge cannot be asked at all.
        ModelError: a retriever cannot be used.
        ValueError: the pool is not the one of the settings.
    """
    named = tuple(member.model for member in settings.pool)
    if pool.names != named or pool.depth != settings.depth:
        raise ValueError(
            f"the pool is the top {pool.depth} of {pool.names}, the settings say {settings.depth} of {named}"
        )
    tasks = tasks_of(benchmark, query_ids)
    known = documents_of(benchmark) if documents is None else documents
    first = decompose(tasks, known, settings, asker, progress=progress, cancelled=cancelled)
    queries = [_begun(task, decomposition) for task, decomposition in zip(tasks, first, strict=True)]
    if Stage.VERIFY in stages:
        queries = _verified(queries, known, settings, asker, pool, progress, cancelled)
        if Stage.AUDIT in stages:
            queries = _audited(queries, known, settings, asker, pool, progress, cancelled)
    return Expansion(settings, pool.names, tuple(queries))


def _begun(task: Task, decomposition: Decomposition) -> QueryExpansion:
    """A query after stage 1; one whose decomposition failed is complete with C*."""
    if decomposition.state is not State.FAILED:
        return QueryExpansion(task, decomposition)
    truth = truth_combination(task, Combination(task.truth, None))
    return QueryExpansion(task, decomposition, (), (truth,), False, 1)


def _verified(
    queries: Sequence[QueryExpansion],
    documents: Mapping[str, str],
    settings: ToolexSettings,
    asker: Asker,
    pool: CandidatePool,
    progress: ProgressCallback | None,
    cancelled: CancelledCallback | None,
) -> list[QueryExpansion]:
    subqueries = [subquery for query in queries for subquery in query.decomposition.subqueries]
    candidates = pool.candidates(subqueries, progress=progress, cancelled=cancelled)
    found: dict[str, list[tuple[Verdict, ...] | None]] = {}
    for subquery, verdicts in verify(
        subqueries, candidates, documents, settings, asker, progress=progress, cancelled=cancelled
    ):
        found.setdefault(subquery.query_id, []).append(verdicts)
    out: list[QueryExpansion] = []
    for query in queries:
        by_position = found.get(query.task.query_id)
        if by_position is None or any(verdicts is None for verdicts in by_position):
            out.append(query)
        else:
            whole = tuple(verdicts for verdicts in by_position if verdicts is not None)
            out.append(QueryExpansion(query.task, query.decomposition, whole))
    return out


def _audited(
    queries: Sequence[QueryExpansion],
    documents: Mapping[str, str],
    settings: ToolexSettings,
    asker: Asker,
    pool: CandidatePool,
    progress: ProgressCallback | None,
    cancelled: CancelledCallback | None,
) -> list[QueryExpansion]:
    ready = [query for query in queries if query.verdicts and query.combinations is None]
    combined = [combinations_of(query.verdicts or (), settings, pool.depth) for query in ready]
    subqueries: list[tuple[Subquery, ...]] = [query.decomposition.subqueries for query in ready]
    audited: dict[str, tuple[Combinations, tuple[AuditedCombination, ...] | None]] = {}
    results = audit(
        [query.task for query in ready],
        subqueries,
        combined,
        documents,
        settings,
        asker,
        progress=progress,
        cancelled=cancelled,
    )
    for made, (task, rows) in zip(combined, results, strict=True):
        audited[task.query_id] = made, rows
    out: list[QueryExpansion] = []
    for query in queries:
        if query.task.query_id not in audited:
            out.append(query)
            continue
        made, rows = audited[query.task.query_id]
        out.append(QueryExpansion(query.task, query.decomposition, query.verdicts, rows, made.truncated, made.product))
    return out


def combinations_of(verdicts: Sequence[Sequence[Verdict]], settings: ToolexSettings, depth: int) -> Combinations:
    """What is to be audited once every verdict of a query is known.

    Args:
        verdicts: of each sub-query.
        settings: cap and repeated tools.
        depth: results of each retriever of the pool.
    """
    lists: list[list[RankedTool]] = []
    truth: list[RankedTool] = []
    for row in verdicts:
        absent = absent_rank([verdict.candidate for verdict in row], depth)
        accepted = [
            (verdict, RankedTool(verdict.candidate.tool_id, verdict.candidate.rank or absent))
            for verdict in row
            if verdict.accepted
        ]
        lists.append([tool for _, tool in accepted])
        truth += [tool for verdict, tool in accepted if verdict.candidate.tool_id == verdict.subquery.tool_id]
    return combine(lists, truth, cap=settings.cap, repeated_tool=settings.repeated_tool)
