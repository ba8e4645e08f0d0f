"""Verbs that put tools and queries into fields: ``mftr standardize|rewrite|import|texts``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.commands import output
from pipeline.commands.options import BenchmarkName, Quiet, ReportFormat
from pipeline.commands.retrieval import stages

if TYPE_CHECKING:
    from pipeline.jobs.fields.standardizing import Asked, Asking

Llm = Annotated[str, typer.Option("--llm", metavar="MODEL", help="The language model, as provider/model.")]
Budget = Annotated[
    float | None,
    typer.Option("--budget", metavar="USD", min=0, help="The most that it may cost, earlier attempts included."),
]
ExportBatch = Annotated[
    Path | None,
    typer.Option("--export-batch", metavar="F", help="Write the open questions as OpenAI-Batch JSONL; ask nobody."),
]
ImportBatch = Annotated[
    Path | None, typer.Option("--import-batch", metavar="F", help="Take the answers that a provider returned.")
]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Ask questions again that are recorded as failed.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="F", help="Write a file in the published shape and store nothing."),
]
Label = Annotated[str, typer.Option("--label", help="Your words for the stored set.")]


def register(group: typer.Typer) -> None:
    """Add the verbs to the group ``mftr``."""
    group.command("standardize")(standardize)
    group.command("rewrite")(rewrite)
    group.command("import")(import_)
    group.command("texts")(texts)


def standardize(
    benchmark: BenchmarkName,
    llm: Llm = "",
    budget: Budget = None,
    export_batch: ExportBatch = None,
    import_batch: ImportBatch = None,
    retry_failed: RetryFailed = False,
    out: Out = None,
    label: Label = "",
    quiet: Quiet = False,
) -> None:
    """Put every tool into four fields, by rules or with a language model.

    Without --llm by rules, which need no key. Without --out the tools are stored for a stored benchmark.
    """
    from pipeline.jobs.fields.standardizing import Asking, standardize_tools

    asking = Asking(llm, budget, export_batch, import_batch, retry_failed)
    with stages(quiet) as progress:
        made = standardize_tools(benchmark, asking, out=out, label=label, progress=progress)
    _tell(made, asking, "tool", "tools")


def rewrite(
    benchmark: BenchmarkName,
    llm: Llm = "",
    budget: Budget = None,
    standardized: Annotated[
        Path | None,
        typer.Option("--standardized", metavar="F", help="Tools shown with a query; without, rules make them."),
    ] = None,
    export_batch: ExportBatch = None,
    import_batch: ImportBatch = None,
    retry_failed: RetryFailed = False,
    out: Out = None,
    label: Label = "",
    quiet: Quiet = False,
) -> None:
    """Rewrite every query into tool needs and arguments with a language model.

    Without --llm each query is its own need in every field ("original query"). Without --out the queries are stored
    for a stored benchmark.
    """
    from pipeline.jobs.fields.standardizing import Asking, rewrite_queries

    asking = Asking(llm, budget, export_batch, import_batch, retry_failed)
    with stages(quiet) as progress:
        made = rewrite_queries(benchmark, asking, standardized=standardized, out=out, label=label, progress=progress)
    _tell(made, asking, "query", "queries")


def import_(
    benchmark: BenchmarkName,
    standardized: Annotated[
        Path | None, typer.Option("--standardized", metavar="F", help="Standardized documents.")
    ] = None,
    rewritten: Annotated[Path | None, typer.Option("--rewritten", metavar="F", help="Rewritten queries.")] = None,
    weights: Annotated[Path | None, typer.Option("--weights", metavar="F", help="Weights, with --model.")] = None,
    weights_of: Annotated[
        str, typer.Option(metavar="DATASET/MODEL", help="Which weights of the file, where it is not clear.")
    ] = "",
    model: Annotated[str, typer.Option("--model", "-m", metavar="M", help="The model that the weights are of.")] = "",
    preset: Annotated[str, typer.Option("--preset", metavar="card|paper", help="Its encoding.")] = "paper",
    label: Label = "",
    format: Annotated[ReportFormat, typer.Option(help="How to print the ids.")] = ReportFormat.TABLE,
) -> None:
    """Store files of the published shapes for a stored benchmark; prints the ids that `equirank retrieve` takes."""
    from pipeline.jobs.fields.standardizing import import_files

    stored = import_files(
        benchmark, standardized, rewritten, weights, weights_of=weights_of, model=model, preset=preset, label=label
    )
    if format is ReportFormat.JSON:
        output.print_json({"standardizer": stored.tools, "rewriter": stored.queries, "weights": stored.weights})
        return
    for option, name in (("standardizer", stored.tools), ("rewriter", stored.queries), ("weights", stored.weights)):
        if name:
            typer.echo(f"--{option} {name}")
    for note in stored.notes:
        typer.echo(f"note: {note}")


def texts(
    benchmark: BenchmarkName, format: Annotated[ReportFormat, typer.Option(help="How to print.")] = ReportFormat.TABLE
) -> None:
    """List the tools and queries in fields that are stored for a benchmark."""
    from pipeline.formats.tables import TableFormat, write_table
    from pipeline.jobs.benchmark_library import Library
    from pipeline.jobs.fields.reading import field_text_sets

    library = Library()
    rows = field_text_sets(library.site, benchmark)
    if format is ReportFormat.JSON:
        output.print_json([row.as_json() for row in rows])
        return
    import polars as pl

    shown = [
        {"id": row.id[:12], "of": row.kind, "source": row.words, "filled": f"{row.filled:,} of {row.items:,}",
         "failed": f"{row.failures:,}", "label": row.label}
        for row in rows
    ]  # fmt: skip
    columns = ("id", "of", "source", "filled", "failed", "label")
    frame = pl.DataFrame(shown, schema=dict.fromkeys(columns, pl.String))
    typer.echo(write_table(frame, TableFormat.PLAIN), nl=False)


def _tell(made: Asked, asking: Asking, one: str, many: str) -> None:
    from pipeline.formats.messages import plural

    for line in made.lines:
        typer.echo(line)
    if asking.export_batch is not None:
        typer.echo(f"wrote {', '.join(map(str, made.files))}: {plural(made.pending, 'question')} to answer")
        return
    if made.pending:
        typer.echo(f"{plural(made.pending, 'question')} still without an answer: import another answers file")
        return
    if made.failures:
        typer.echo(f"{plural(len(made.failures), f'{one} has', f'{many} have')} fields that could not be filled:")
        for name, reason in list(made.failures.items())[:10]:
            typer.echo(f"  {name}: {reason}")
    for path in made.files:
        typer.echo(f"wrote {path}: {plural(made.count, one, many)}")
    if made.stored:
        typer.echo(f"stored as {made.stored}: {plural(made.count, one, many)}")
