"""Verbs about disputed verdicts and unjudged tools: ``dispute open|list|resolve|export`` and ``growth``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline.commands import output
from pipeline.commands.options import ReportFormat
from pipeline.commands.validation import Format, StoredBenchmark, prepared, stored

OutFile = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write to a file instead of printing.")]


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    group = typer.Typer(help="Dispute verdicts, decide, and list what was upheld.", no_args_is_help=True)
    group.command("open")(open_dispute)
    group.command("list")(list_disputes)
    group.command()(resolve)
    group.command()(export)
    app.add_typer(group, name="dispute")
    app.command()(growth)


def open_dispute(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Id of the query.")],
    benchmark: StoredBenchmark,
    tool: Annotated[list[str], typer.Option("--tool", help="Id of the tool; of a combination one for each tool.")],
    reason: Annotated[str, typer.Option(help="Why the verdict is wrong.")],
    position: Annotated[
        int | None, typer.Option(min=0, help="The sub-query that the tool was judged for, from 0; none: a combination.")
    ] = None,
    name: Annotated[str, typer.Option(help="Who says so; everybody can read it.")] = "",
) -> None:
    """Dispute the verdict on a tool or on a combination; the stored version stays as it is."""
    from pipeline.jobs.benchmark_library import load_benchmark
    from pipeline.jobs.labels.disputes import dispute_verdict, find_verdict

    site, record = stored(benchmark)
    verdict = find_verdict(load_benchmark(site, record.id), query, tool, position)
    made = dispute_verdict(site, record, verdict, reason, name)
    typer.echo(f"disputed {made.id}: {'valid' if made.claimed_valid else 'not valid'} is claimed")


def list_disputes(
    benchmark: Annotated[str | None, typer.Option("--benchmark", "-b", metavar="B", help="Only of this one.")] = None,
    format: Format = ReportFormat.TABLE,
) -> None:
    """List disputes, those that wait for a decision first."""
    import polars as pl

    from pipeline.formats.tables import TableFormat, write_table
    from pipeline.jobs.labels import disputes

    site, record = stored(benchmark) if benchmark else (prepared(), None)
    names = disputes.version_names(site)
    rows = [
        disputes.dispute_json(found, names.get(found.benchmark_version_id, ""))
        for found in disputes.list_disputes(site, record)
    ]
    if format is ReportFormat.JSON:
        output.print_json(rows)
    elif not rows:
        typer.echo("no verdict is disputed")
    else:
        frame = pl.DataFrame(rows, infer_schema_length=None).with_columns(pl.col("tool_ids").list.join(" + "))
        shown = frame.select(
            "id", "state", "benchmark", "query_id", "position", "tool_ids", "claimed_verdict", "reason"
        )
        typer.echo(write_table(shown, TableFormat.PLAIN), nl=False)


def resolve(
    dispute: Annotated[str, typer.Argument(metavar="DISPUTE", help="The id that list prints.")],
    upheld: Annotated[bool, typer.Option("--uphold/--reject", help="Whether the verdict was wrong.")],
    words: Annotated[str, typer.Option(help="Why it is decided so.")],
) -> None:
    """Decide a dispute; what is upheld is input for the next version."""
    from pipeline.jobs.labels.disputes import resolve_dispute

    made = resolve_dispute(prepared(), dispute, upheld=upheld, words=words)
    typer.echo(f"{made.state} {made.id}")


def export(benchmark: StoredBenchmark, out: OutFile = None) -> None:
    """Write the upheld disputes of a version as JSON Lines: what the next version should change."""
    from pipeline.jobs.labels.disputes import upheld_lines

    output.require_place(out)
    site, record = stored(benchmark)
    _write(upheld_lines(site, record), out)


def growth(
    benchmark: StoredBenchmark,
    depth: Annotated[int, typer.Option(min=1, max=1000, help="Results of each public run that are looked at.")] = 10,
    limit: Annotated[int, typer.Option(min=1, help="Pairs of query and tool, the most wanted first.")] = 100,
    out: OutFile = None,
    format: Format = ReportFormat.TABLE,
) -> None:
    """List unjudged tools that public runs rank high, uncertain queries first; --out writes what to ask as JSONL."""
    from pipeline.formats.tables import TableFormat, write_table
    from pipeline.jobs.benchmark_library import load_benchmark
    from pipeline.jobs.labels.growth import has_runs, question_lines, questions, read_growth

    output.require_place(out)
    site, record = stored(benchmark)
    queue = read_growth(site, record, depth=depth)
    if out is not None:
        asked = questions(load_benchmark(site, record.id), queue, limit)
        _write(question_lines(asked), out)
        typer.echo(f"{asked.height:,} questions on {min(limit, queue.height):,} of {queue.height:,} tools", err=True)
    elif format is ReportFormat.JSON:
        output.print_json(queue.head(limit).to_dicts())
    elif queue.is_empty():
        typer.echo(
            f"no public run has an unjudged tool in its top {depth}"
            if has_runs(site, record)
            else "no public run is on this version: `equirank runs rescore` brings those of another version"
        )
    else:
        shown = queue.head(limit).with_columns(
            queue.head(limit)["priority"].round(4), queue.head(limit)["uncertainty"].round(2)
        )
        typer.echo(write_table(shown.drop("rank_score"), TableFormat.PLAIN), nl=False)


def _write(text: str, out: Path | None) -> None:
    if out is None:
        typer.echo(text, nl=False)
        return
    with output.writing(out):
        out.write_text(text, encoding="utf-8")
