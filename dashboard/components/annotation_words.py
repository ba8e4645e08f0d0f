"""What the pages on expansions say: stages, states, money and rules in words. Pure functions, no widgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from dashboard.components.job_view import STATE_WORDS, left_words
from dashboard.components.kind_words import counted
from dashboard.components.numbers import NONE, points, whole
from pipeline.jobs.job_client import JobState
from pipeline.llm.stores import NANO
from pipeline.toolex.settings import AuditRule, RepeatedTool, Stage, ToolexSettings, VerifyRule

if TYPE_CHECKING:
    from pipeline.jobs.annotations.following import AnnotationProgress
    from pipeline.jobs.progress import JobProgress
    from pipeline.llm.stores import Budget, MeterLine, Spent
    from pipeline.toolex.estimate import StageEstimate

#: The address's words for an open expansion, for a part of the work, and for the version that the part is about.
EXPANSION, VIEW, OF = "expansion", "an_view", "an_of"
#: What an expansion is.
INTRODUCTION = (
    "An expansion turns a benchmark with one label a query into one with every valid answer: each query is split into "
    "its sub-queries, the tools that retrievers find for them are judged one by one, and what is valid is combined and "
    "judged as a whole. The result is a new version; the one it was made from stays as it is."
)
#: Stage → title, and what its judge does, with a place for the benchmark's kind, as in the words below.
STAGES = {
    Stage.DECOMPOSE: ("Decompose", "splits each query into one sub-query a ground-truth {kind}"),
    Stage.VERIFY: ("Verify", "says of each retrieved {kind} whether it serves a sub-query as the ground truth does"),
    Stage.AUDIT: ("Audit", "says of each combination of valid {kind}s whether it answers the whole query"),
}
VERIFY_RULES = {
    VerifyRule.BOTH: "A {kind} is valid when it does the same and the sub-query gives the inputs it needs.",
    VerifyRule.FUNCTION_ONLY: "A {kind} is valid when it does the same, whatever inputs it needs.",
}
AUDIT_RULES = {
    AuditRule.BOTH: "A combination is valid when it covers every sub-query and its {kind}s can pass on what they need.",
    AuditRule.COVERAGE: "A combination is valid when it covers every sub-query.",
}
REPEATED_RULES = {
    RepeatedTool.DROP: "One {kind} for two sub-queries makes no combination: a smaller set is easier to retrieve, "
    "which would inflate scores.",
    RepeatedTool.COLLAPSE: "One {kind} for two sub-queries counts as the smaller set that it is.",
}
#: Figure of ``table_one`` → words, with a place for the benchmark's kind.
LABEL_FIGURES = {
    "queries": "Queries",
    "tools_per_query": "Ground-truth {kind}s a query",
    "subqueries": "Sub-queries",
    "verified_items": "Verified items",
    "items_per_subquery": "Verified items a sub-query",
    "subqueries_with_equivalent": "Sub-queries with an extra {kind}",
    "combinations": "Valid combinations",
    "combinations_per_query": "Valid combinations a query",
    "queries_with_alternative": "Queries with an extra combination",
    "audited": "Combinations judged",
    "truncated": "Queries cut off at the cap",
    "decomposition_failed": "Queries without a decomposition",
}
#: Those of the sentence above the table.
_HEADLINE = (
    "combinations_per_query", "queries_with_alternative", "subqueries_with_equivalent", "items_per_subquery",
)  # fmt: skip
_SHARES = {"subqueries_with_equivalent", "queries_with_alternative"}
#: Steps of a chunk in a progress line.
_STEPS = {
    "decompose": "Splitting queries",
    "documents": "Encoding documents",
    "queries": "Encoding sub-queries",
    "search": "Retrieving candidates",
    "verify": "Judging candidates",
    "audit": "Judging combinations",
    "waiting": "Waiting for something else on this machine that works on it",
}


def stage_title(stage: str) -> str:
    """``Verify``; a purpose that is no stage stays as it is."""
    return STAGES[Stage(stage)][0] if stage in set(Stage) else stage


def dollars(cost: float | None) -> str:
    """An amount of money: ``$1.20``; below a cent as many digits as it takes; ``unknown`` where it is."""
    if cost is None:
        return "unknown"
    if 0 < cost < 0.01:
        return f"${cost:.2g}" if cost >= 0.0001 else "under $0.0001"
    return f"${cost:,.2f}".replace(",", chr(0x202F))


def money(cost: float | None) -> str:
    """An amount in a table, ``—`` where it is not known."""
    return NONE if cost is None else dollars(cost)


def without_rounding(cost: float | None, calls: int) -> float | None:
    """A sum in US dollars; 0 where it is only the billionth a call that is set aside for rounding, as for free models.

    Args:
        cost: of all calls; None where it is not known.
        calls: how many those are.
    """
    return 0.0 if cost is not None and cost * NANO <= calls + 0.5 else cost


def state_word(progress: AnnotationProgress) -> str:
    """``running``; an expansion that was never started is ``not started``."""
    if progress.over_budget:
        return "stopped by its budget"
    return "not started" if progress.state is None else STATE_WORDS[progress.state]


def title(progress: AnnotationProgress) -> str:
    """``demo-tools@1 → 2``."""
    return f"{progress.parent} → {progress.record.version}"


def estimate_table(found: Sequence[StageEstimate]) -> pl.DataFrame:
    """A line a stage and their sum: questions, calls, tokens and price, as texts."""
    rows: list[tuple[str, ...]] = [
        (
            STAGES[one.stage][0],
            one.line.model,
            whole(one.line.questions),
            whole(one.line.calls),
            whole(one.line.prompt_tokens),
            whole(one.line.completion_tokens),
            money(one.line.expected_cost),
        )
        for one in found
    ]
    if len(found) > 1:
        sums = [
            whole(sum(getattr(one.line, name) for one in found))
            for name in ("questions", "calls", "prompt_tokens", "completion_tokens")
        ]
        rows.append(("All", NONE, *sums, money(total_cost(found))))
    return pl.DataFrame(
        rows, schema=["Stage", "Judge", "Questions", "Calls", "Tokens in", "Tokens out", "Price"], orient="row"
    )


def total_cost(found: Sequence[StageEstimate]) -> float | None:
    """The expected price of all stages; None where one is unknown."""
    costs = [one.line.expected_cost for one in found]
    return None if None in costs else sum(cost for cost in costs if cost is not None)


def estimate_sentence(found: Sequence[StageEstimate]) -> str:
    """Price and calls of the whole, in a line."""
    calls, cost = sum(one.line.calls for one in found), total_cost(found)
    price = "**A price that is not known here**" if cost is None else f"**About {dollars(cost)}**"
    kept = sum(one.line.questions for one in found) - calls
    here = "1 answer is" if kept == 1 else f"{whole(kept)} answers are"
    rest = f"; {here} here already" if kept > 0 else ""
    return f"{price} for about {counted(calls, 'call')} in three stages{rest}."


def unpriced(found: Sequence[StageEstimate]) -> list[str]:
    """Judges whose price is not known here."""
    return list(dict.fromkeys(one.line.model for one in found if one.line.expected_cost is None))


def meter_table(meter: Sequence[MeterLine]) -> pl.DataFrame:
    """A line a stage and judge: what was asked so far, and what became of it, as texts."""
    order = [stage.value for stage in Stage]
    ordered = sorted(meter, key=lambda line: (order.index(line.purpose) if line.purpose in order else 9, line.model))
    rows = [
        (
            stage_title(line.purpose),
            line.model,
            whole(line.usage.calls),
            whole(line.usage.prompt_tokens),
            whole(line.usage.completion_tokens),
            money(without_rounding(line.usage.cost, line.usage.calls)),
            whole(line.refused),
            whole(line.lost),
            whole(line.unfinished),
        )
        for line in ordered
    ]
    columns = ["Stage", "Judge", "Calls", "Tokens in", "Tokens out", "Cost", "Turned away", "Lost", "Open"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def spent_sentence(spent: Spent, budget: Budget) -> str:
    """What was used of the budget."""
    cost = f"**{dollars(without_rounding(spent.cost, spent.calls))}**" + (
        "" if budget.max_cost is None else f" of {dollars(budget.max_cost)}"
    )
    of = "" if budget.max_calls is None else f" of {whole(budget.max_calls)}"
    calls = f"{whole(spent.calls)}{of} {'call' if spent.calls == 1 and not of else 'calls'}"
    words = f"Used: {cost} and {calls}."
    if spent.unpriced:
        words += f" The price of {whole(spent.unpriced)} of them is not known, so they count as calls only."
    return words


def over_budget_sentence(progress: AnnotationProgress) -> str:
    """Why one that its budget stopped goes no further."""
    return (
        "**Its budget stopped it: the next call could exceed it.** "
        f"{spent_sentence(progress.spent, progress.budget)} Every answer it got is kept; with a greater budget it goes "
        "on."
    )


def step_line(progress: AnnotationProgress) -> tuple[float, str]:
    """Share of the queries that are through, and the line above the bar."""
    share = progress.queries_done / progress.queries if progress.queries else 0.0
    line = (
        f"{whole(progress.queries_done)} of {whole(progress.queries)} {_queries(progress.queries)} through all stages"
    )
    step = "Starting" if progress.state is JobState.RUNNING and progress.job is None else job_step(progress.job)
    return share, f"{line} · {step}" if step else line


def _queries(number: int) -> str:
    return "query is" if number == 1 else "queries are"


def job_step(job: JobProgress | None) -> str:
    """What a running job is at: ``Judging candidates: 120 of 340, about 2 min left``."""
    if job is None:
        return ""
    words = _STEPS.get(job.stage, job.words[:1].upper() + job.words[1:])
    if job.total > 1:
        words += f": {whole(job.done)} of {whole(job.total)}"
    if job.remaining_s is not None and job.done < job.total:
        words += f", {left_words(job.remaining_s)}"
    return words


def failures_sentence(failures: dict[str, int]) -> str:
    """How many questions got no valid answer, by stage; empty where none did."""
    parts = [f"{whole(n)} in {stage_title(stage)}" for stage, n in failures.items() if n]
    total = sum(failures.values())
    if not total:
        return ""
    asked = "1 question has" if total == 1 else f"{whole(total)} questions have"
    return f"{asked} no valid answer ({', '.join(parts)}). Each counts as no."


def brief_settings(settings: ToolexSettings) -> str:
    """Judges and candidates in a line; a judge of several stages is named once."""
    judges = list(dict.fromkeys(settings.judge(stage) for stage in Stage))
    pool = " + ".join(member.model for member in settings.pool)
    return f"{'judged by' if len(judges) == 1 else 'judges'} {', '.join(judges)} · top {settings.depth} of {pool}"


def settings_facts(settings: ToolexSettings) -> list[tuple[str, str]]:
    """Every choice of an expansion, in words."""
    judges = [(f"{STAGES[stage][0]} judge", settings.judge(stage)) for stage in Stage]
    presets = {str(member.preset) for member in settings.pool}
    pool = ", ".join(member.model for member in settings.pool)
    return [
        *judges,
        ("Candidates", f"top {settings.depth} of {pool} (preset {', '.join(sorted(presets))})"),
        ("Verify", str(settings.verify)),
        ("Audit", str(settings.audit)),
        ("Chosen twice", str(settings.repeated_tool)),
        ("Combinations audited a query", f"at most {settings.cap}"),
    ]


def label_figure(name: str, value: float | None) -> str:
    """A figure of ``table_one`` as text: counts whole, means with two decimals, shares in per cent."""
    if value is None:
        return NONE
    if name in _SHARES:
        return f"{points(value)} %"
    return whole(value) if isinstance(value, int) else f"{value:.2f}"


def result_sentence(before: pl.DataFrame, after: pl.DataFrame, kind: str) -> str:
    """What an expansion found, in plain words, old → new as the table below says it; empty without figures.

    Args:
        before: ``table_one`` of what was expanded.
        after: that of the new version.
        kind: what the benchmark retrieves.
    """
    old, new = over_all(before), over_all(after)
    if any(new.get(name) is None for name in _HEADLINE):
        return ""

    def change(name: str) -> str:
        was, now = label_figure(name, old.get(name)), label_figure(name, new[name])
        return now if was == NONE else f"{was} → {now}"

    labelled = " instead of the labelled one" if old.get(_HEADLINE[0]) is None else ""
    combinations, queries, tools, items = map(change, _HEADLINE)
    return (
        f"**{combinations} valid combinations a query**{labelled}. Queries with an extra combination: {queries}; "
        f"sub-queries with an extra {kind}: {tools}; verified items a sub-query: {items}."
    )


def over_all(table: pl.DataFrame) -> Mapping[str, Any]:
    """The line of ``table_one`` over all queries; empty where there is none."""
    rows = table.filter(pl.col("domain").is_null())
    return rows.row(0, named=True) if rows.height else {}
