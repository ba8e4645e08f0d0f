"""Verbs that expand a benchmark: ``annotate estimate|run|export-batch|import-batch|report|list``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.commands import annotate_batch, annotate_made, annotate_report, output
from pipeline.commands.annotate_made import command, refuse_taken, say_what, sayer, tell_made
from pipeline.commands.annotate_options import Format, NewVersion, Out, RetryFailed, takes_choices
from pipeline.commands.options import BenchmarkName, Quiet, ReportFormat
from pipeline.commands.retrieval import stages

if TYPE_CHECKING:
    from pipeline.jobs.annotations.choices import Choices
    from pipeline.jobs.annotations.following import AnnotationProgress
    from pipeline.jobs.site import Site
    from pipeline.toolex.estimate import StageEstimate


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    group = typer.Typer(
        help="Expand one label a query into every valid one: estimate, run, batch rounds, report.",
        no_args_is_help=True,
    )
    group.command("estimate")(estimate)
    group.command("run")(run)
    group.command("export-batch")(annotate_batch.export_batch)
    group.command("import-batch")(annotate_batch.import_batch)
    group.command("report")(annotate_report.report)
    group.command("list")(list_expansions)
    app.add_typer(group, name="annotate")


@takes_choices
def estimate(
    benchmark: BenchmarkName,
    choices: Choices,
    format: Format = ReportFormat.TABLE,
) -> None:
    """Say how many questions an expansion asks and what they cost, before any is asked."""
    from pipeline.jobs.annotations.choices import pool_notes
    from pipeline.jobs.annotations.estimating import estimate as estimated
    from pipeline.jobs.first_start import prepared_site
    from pipeline.toolex.settings import ToolexSettings

    site, settings = prepared_site(), choices.over(ToolexSettings())
    found = estimated(site, benchmark, settings)
    notes = pool_notes(site, settings)
    if format is ReportFormat.JSON:
        output.print_json({"stages": [_estimate_json(stage) for stage in found], "notes": notes})
        return
    _print_estimate(found)
    for note in notes:
        typer.echo(f"note: {note}")


@takes_choices
def run(
    benchmark: BenchmarkName,
    version: NewVersion,
    choices: Choices,
    budget: Annotated[
        float | None,
        typer.Option("--budget", metavar="USD", min=0, help="The most that it may cost, earlier attempts included."),
    ] = None,
    max_calls: Annotated[
        int | None, typer.Option("--max-calls", metavar="N", min=0, help="The most calls, earlier attempts included.")
    ] = None,
    retry_failed: RetryFailed = False,
    out: Out = None,
    format: Format = ReportFormat.TABLE,
    quiet: Quiet = False,
) -> None:
    """Expand a benchmark into a new version, here and now.

    After a stop, a crash or the end of its budget the same command goes on where it was; a greater --budget raises it.
    A benchmark folder is stored first.
    """
    from pipeline.errors import BudgetExceeded
    from pipeline.jobs.annotations.here import run_here
    from pipeline.jobs.annotations.naming import begin
    from pipeline.jobs.first_start import prepared_site

    refuse_taken(out)
    site = prepared_site()
    begun = begin(site, benchmark, version, choices, max_cost=budget, max_calls=max_calls)
    say = sayer(quiet)
    say_what(begun, say)
    try:
        with stages(quiet) as progress:
            made = run_here(site, begun.record.id, retry_failed=retry_failed, progress=progress, say=say)
    except BudgetExceeded as error:
        more = "--budget MORE" if begun.record.max_cost is not None else "--max-calls MORE"
        raise BudgetExceeded(f"{error}: {command('run', begun.parent, version)} {more}") from None
    tell_made(site, begun.record, begun.parent, made, out, format)


def list_expansions(format: Format = ReportFormat.TABLE) -> None:
    """List expansions, the newest first: how far they are, what they used, what failed."""
    import polars as pl

    from pipeline.formats.tables import TableFormat, write_table
    from pipeline.jobs.annotations.following import list_annotations
    from pipeline.jobs.first_start import prepared_site

    site = prepared_site()
    found = list_annotations(site)
    if format is ReportFormat.JSON:
        output.print_json(
            [
                {
                    "id": one.record.id,
                    "parent": one.parent,
                    "version": one.record.version,
                    "state": None if one.state is None else one.state.value,
                    "queries_done": one.queries_done,
                    "queries": one.queries,
                    "calls": one.spent.calls,
                    "cost": one.spent.cost,
                    "unpriced_calls": one.spent.unpriced,
                    "budget": {"cost": one.budget.max_cost, "calls": one.budget.max_calls},
                    "failures": one.failures,
                    "pending": one.pending,
                    "error": one.error,
                    "settings": dict(one.record.settings),
                }
                for one in found
            ]
        )
        return
    if not found:
        typer.echo("no expansions yet: `equirank annotate run --benchmark B --version V --budget USD` begins one")
        return
    rows = [
        {
            "id": one.record.id[:12],
            "benchmark": one.parent,
            "makes": one.record.version,
            "state": _state(site, one),
            "queries": f"{one.queries_done:,} of {one.queries:,}",
            "calls": f"{one.spent.calls:,}",
            "cost": annotate_made.dollars(one.spent.cost) + (" + unknown" if one.spent.unpriced else ""),
            "failed": f"{sum(one.failures.values()):,}",
            "open": f"{one.pending:,}" if one.pending else None,
        }
        for one in found
    ]
    typer.echo(write_table(pl.DataFrame(rows, infer_schema_length=None), TableFormat.PLAIN), nl=False)


def _state(site: Site, one: AnnotationProgress) -> str:
    """The state of its job; what is known without one."""
    from pipeline.jobs.annotations.stopping import stopped_by_budget

    if one.state is not None and not one.over_budget:
        return one.state.value
    return "stopped by its budget" if one.over_budget or stopped_by_budget(site, one) else "not running"


def _estimate_json(stage: StageEstimate) -> dict[str, Any]:
    line = stage.line
    return {
        "stage": stage.stage.value,
        "judge": line.model,
        "questions": line.questions,
        "calls": line.calls,
        "most_questions": stage.most_questions,
        "most_calls": stage.most_calls,
        "prompt_tokens": line.prompt_tokens,
        "completion_tokens": line.completion_tokens,
        "expected_cost": line.expected_cost,
        "worst_cost": line.worst_cost,
        "sampled": line.sampled,
    }


def _print_estimate(found: list[StageEstimate]) -> None:
    import polars as pl

    from pipeline.formats.tables import TableFormat, write_table

    def row(stage: str, judge: str, numbers: tuple[int, int, int, int, int], cost: float | None) -> dict[str, str]:
        questions, calls, prompt, completion, most = (f"{number:,}" for number in numbers)
        price = "unknown price" if cost is None else annotate_made.dollars(cost)
        return {
            "stage": stage, "judge": judge, "questions": questions, "calls": calls, "tokens in": prompt,
            "tokens out": completion, "price": price, "most calls": most,
        }  # fmt: skip

    rows, sums = [], [0, 0, 0, 0, 0]
    costs = [stage.line.expected_cost for stage in found]
    for stage in found:
        line = stage.line
        numbers = (line.questions, line.calls, line.prompt_tokens, line.completion_tokens, stage.most_calls)
        sums = [a + b for a, b in zip(sums, numbers, strict=True)]
        rows.append(row(stage.stage.value, line.model, numbers, line.expected_cost))
    known = [cost for cost in costs if cost is not None]
    total = sum(known) if len(known) == len(costs) else None
    rows.append(row("total", "", (sums[0], sums[1], sums[2], sums[3], sums[4]), total))
    typer.echo(write_table(pl.DataFrame(rows), TableFormat.PLAIN), nl=False)
    typer.echo(
        "\ncalls: questions without a stored answer, each asked once; verifications and audits follow from earlier "
        "answers, so their numbers and texts are expected ones"
    )
    attempts = max((stage.attempts for stage in found), default=1)
    typer.echo(
        "most calls: every question that there can be (each draw of a decomposition, each audit up to the cap), "
        f"answered up to {attempts} times (EQUIRANK_LLM_ATTEMPTS) because an invalid answer is asked for again; calls "
        "that break off or are turned away (EQUIRANK_LLM_RETRIES) and those of --retry-failed come on top"
    )
    unknown = sorted({stage.line.model for stage in found if stage.line.expected_cost is None})
    if unknown:
        typer.echo(
            f"nobody states a price for {', '.join(unknown)}: give it in EQUIRANK_LLM_PRICES, such as "
            f"{unknown[0]}=0.1/0.4 (dollars a million tokens in/out, 0/0 for a model that costs nothing)"
        )
