"""Verbs about runs: ``validate``, ``score``, ``submit`` and ``runs …``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.commands import exports, output
from pipeline.commands.options import (
    BenchmarkName,
    OrderOption,
    PartOption,
    Quiet,
    ReportFormat,
    RunFile,
    ScoreFormat,
    cutoffs,
    declared_order,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.run import RunReading
    from pipeline.scoring.compiled import CompiledBenchmark

RunId = Annotated[str, typer.Argument(metavar="RUN_ID", help="The id that submit printed.")]


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    app.command()(validate)
    app.command()(score)
    app.command()(submit)
    runs = typer.Typer(help="List, show, cite, publish, withdraw and re-score stored runs.", no_args_is_help=True)
    runs.command("list")(list_runs)
    runs.command("show")(show_run)
    runs.command("card")(exports.card)
    runs.command("cite")(exports.cite_run)
    runs.command("publish")(publish)
    runs.command("withdraw")(withdraw)
    runs.command("rescore")(rescore)
    app.add_typer(runs, name="runs")


def _read(
    run: Path, benchmark: str, order: str | None, part: str | None, quiet: bool
) -> tuple[CompiledBenchmark, RunReading]:
    from pipeline.jobs.benchmark_library import Library
    from pipeline.jobs.submission import read_submitted

    declared = declared_order(order)
    library = Library()
    compiled = library.compiled(benchmark)
    with output.progress(f"reading {run.name}", quiet) as progress:
        reading = read_submitted(library, run, compiled, order=declared, part=part, progress=progress)
    return compiled, reading


def validate(
    run: RunFile,
    benchmark: BenchmarkName,
    order: OrderOption = None,
    part: PartOption = None,
    format: Annotated[ReportFormat, typer.Option(help="How to print the report.")] = ReportFormat.TABLE,
    quiet: Quiet = False,
) -> None:
    """Check a run file: exit 0 when it is accepted or normalised, 1 when it is refused."""
    _, reading = _read(run, benchmark, order, part, quiet)
    if format is ReportFormat.JSON:
        output.print_json(reading.report.as_json())
    else:
        typer.echo(output.describe_report(reading.report))
    if reading.run is None:
        raise typer.Exit(1)


def score(
    run: RunFile,
    benchmark: BenchmarkName,
    k: Annotated[str, typer.Option("--k", help="Cutoffs, separated by commas.")] = "1,5,10,20",
    order: OrderOption = None,
    part: PartOption = None,
    format: Annotated[ScoreFormat, typer.Option(help="How to print the scores.")] = ScoreFormat.TABLE,
    quiet: Quiet = False,
) -> None:
    """Score a run file under one label a query and under every valid combination; stores nothing."""
    from pipeline.formats.tables import TableFormat, write_table
    from pipeline.jobs.submission import tie_band_note
    from pipeline.scoring.averages import scores_json, summarise
    from pipeline.scoring.scores import score_run

    ks = cutoffs(k)
    compiled, reading = _read(run, benchmark, order, part, quiet)
    report = reading.report
    if reading.run is None:
        if format is ScoreFormat.JSON:
            output.print_json(report.as_json())
        else:
            typer.echo(output.describe_report(report))
        raise typer.Exit(1)
    scores = score_run(compiled, reading.run, ks)
    summary = summarise(scores, compiled)
    band = tie_band_note(scores)
    warnings = [*report.notes, *([band] if band else [])]
    if format is ScoreFormat.JSON:
        total = len(compiled.target.queries)
        output.print_json(
            {
                "benchmark": _benchmark_json(compiled),
                "run": {
                    "file": run.name,
                    "format": report.format,
                    "ranking_hash": reading.run.ranking_hash,
                    "flags": list(report.flags),
                    "warnings": warnings,
                },
                "scores": scores_json(summary),
                "queries": {"total": total, "missing": total - reading.run.queries_answered},
            }
        )
        return
    if format is ScoreFormat.CSV:
        typer.echo(write_table(summary, TableFormat.CSV), nl=False)
        return
    typer.echo(write_table(output.score_frame(summary), TableFormat(str(format))), nl=False)
    if format is ScoreFormat.TABLE:
        typer.echo("\n" + write_table(output.domain_frame(summary), TableFormat.PLAIN), nl=False)
        total = len(compiled.target.queries)
        typer.echo(
            f"\n{compiled.name}: points (× 100) over all {total:,} queries, {reading.run.queries_answered:,} answered; "
            f"the headline is the {compiled.headline} average."
        )
        for note in warnings:
            typer.echo(f"note: {note}")


def _benchmark_json(compiled: CompiledBenchmark) -> dict[str, str]:
    slug, _, version = compiled.name.rpartition("@")
    return {"slug": slug, "version": version, "hash": compiled.content_hash}


def submit(
    run: RunFile,
    benchmark: BenchmarkName,
    retriever: Annotated[str, typer.Option("--retriever", "-r", help="Name of the retriever, as it should be shown.")],
    order: OrderOption = None,
    part: PartOption = None,
    private: Annotated[
        bool, typer.Option("--private", help="Keep it off the leaderboard; only its link opens it.")
    ] = False,
    method: Annotated[str, typer.Option("--method", help="How it retrieves, such as full-doc.")] = "full-doc",
    level: Annotated[
        str, typer.Option("--level", help="query, or sub-query when it used the labelled sub-queries.")
    ] = "query",
    trained: Annotated[
        str, typer.Option("--trained-on-benchmark", help="Was it trained on this benchmark: yes, no or unknown.")
    ] = "unknown",
    link: Annotated[str, typer.Option(help="A page about the retriever.")] = "",
    licence: Annotated[str, typer.Option(help="Licence of the retriever.")] = "",
    contact: Annotated[str, typer.Option(help="How to reach you; never shown.")] = "",
    server: Annotated[
        str, typer.Option("--server", metavar="URL", help="Send it to this EquiRank site instead of storing it here.")
    ] = "",
    token_env: Annotated[
        str, typer.Option("--token-env", metavar="VAR", help="With --server: the variable that holds the token.")
    ] = "EQUIRANK_TOKEN",
    format: Annotated[ReportFormat, typer.Option(help="How to print the result.")] = ReportFormat.TABLE,
    quiet: Quiet = False,
) -> None:
    """Store a run and its scores, and publish it unless --private; with --server, on another site."""
    if server:
        declared = declared_order(order)
        fields = {
            "benchmark": benchmark,
            "retriever": retriever,
            "method": method,
            "level": level,
            "link": link,
            "licence": licence,
            "contact": contact,
            "trained_on_benchmark": trained,
            "order": "" if declared is None else declared.value,
            "part": part or "",
            "private": "true" if private else "",
        }
        _submit_to(server, token_env, run, fields, format, quiet)
        return
    from pipeline.jobs.first_start import prepared_site
    from pipeline.jobs.submission import SubmissionMetadata, check_run, permalink, submit_run

    metadata = SubmissionMetadata(
        retriever=retriever,
        method=method,
        level=level,
        link=link,
        licence=licence,
        contact=contact,
        trained_on_benchmark=trained,
    )
    site = prepared_site()
    with output.progress(f"reading {run.name}", quiet) as progress:
        checked = check_run(site, run, benchmark, order=declared_order(order), part=part, progress=progress)
    if checked.reading.run is None:
        report = checked.reading.report
        if format is ReportFormat.JSON:
            output.print_json(report.as_json())
        else:
            typer.echo(output.describe_report(report))
        raise typer.Exit(1)
    run_id = submit_run(site, checked, run, metadata, publish=not private)
    link_to_it = permalink(site, run_id)
    if format is ReportFormat.JSON:
        output.print_json({"run_id": run_id, "permalink": link_to_it, "report": checked.reading.report.as_json()})
        return
    typer.echo(output.describe_report(checked.reading.report))
    typer.echo(f"{'kept private' if private else 'published'} as {run_id}\n{link_to_it}")


def _submit_to(
    server: str, token_env: str, run: Path, fields: dict[str, str], format: ReportFormat, quiet: bool
) -> None:
    from pipeline.commands import remote_submission as remote

    token = remote.token_from(token_env)
    if remote.is_in_clear(server):
        typer.echo(f"note: {server} is not encrypted: whoever is on the way can read the token", err=True)
    with output.progress(f"sending {run.name}", quiet) as progress:
        answer = remote.submit_remotely(server, token, run, fields, progress=progress)
    if format is ReportFormat.JSON:
        report = answer.report.as_json()
        stored = {"run_id": answer.run_id, "permalink": answer.permalink, "report": report}
        output.print_json(report if answer.run_id is None else stored)
    else:
        typer.echo(output.describe_report(answer.report))
        if answer.run_id is not None:
            private = answer.visibility == "private"
            typer.echo(f"{'kept private' if private else 'published'} as {answer.run_id}\n{answer.permalink}")
    if answer.run_id is None:
        raise typer.Exit(1)


def list_runs(
    benchmark: Annotated[str | None, typer.Option("--benchmark", "-b", help="Only this benchmark.")] = None,
    format: Annotated[ReportFormat, typer.Option(help="How to print the list.")] = ReportFormat.TABLE,
) -> None:
    """List stored runs that were uploaded or measured here, newest first."""
    from pipeline.formats.method_labels import method_label
    from pipeline.jobs.first_start import prepared_site
    from pipeline.jobs.run_records import list_records

    records = list_records(prepared_site(), benchmark)
    if format is ReportFormat.JSON:
        output.print_json(records)
        return
    if not records:
        typer.echo("no runs yet: store one with `equirank submit RUN --benchmark B --retriever NAME`")
        return
    rows = [
        record
        | {
            "method": method_label(record["method"], record["contract"]),
            "NDCG old / new": _headline(record["ndcg"]),
        }
        for record in records
    ]
    _print_rows(rows, ["id", "benchmark", "retriever", "method", "NDCG old / new", "state", "visibility", "created"])


def show_run(
    run_id: RunId,
    format: Annotated[ReportFormat, typer.Option(help="How to print the run.")] = ReportFormat.TABLE,
) -> None:
    """Show one run: where it came from, its scores, hashes and versions."""
    from pipeline.formats.tables import TableFormat, write_table
    from pipeline.jobs.first_start import prepared_site
    from pipeline.jobs.run_records import run_record, run_summary
    from pipeline.scoring.averages import scores_json

    site = prepared_site()
    record, summary = run_record(site, run_id), run_summary(site, run_id)
    if format is ReportFormat.JSON:
        output.print_json({"run": record, "scores": scores_json(summary)})
        return
    output.print_fields(record)
    for frame in (output.score_frame(summary), output.domain_frame(summary)):
        typer.echo("\n" + write_table(frame, TableFormat.PLAIN), nl=False)


def publish(run_id: RunId) -> None:
    """Put a stored run on the leaderboard."""
    from pipeline.jobs.first_start import prepared_site
    from pipeline.jobs.submission import permalink, publish_run

    site = prepared_site()
    publish_run(site, run_id)
    typer.echo(f"published {run_id}\n{permalink(site, run_id)}")


def withdraw(run_id: RunId) -> None:
    """Take a run off the leaderboard; it stays stored and can be published again."""
    from pipeline.jobs.first_start import prepared_site
    from pipeline.jobs.submission import withdraw_run

    withdraw_run(prepared_site(), run_id)
    typer.echo(f"withdrew {run_id}")


def rescore(
    benchmark: Annotated[
        str, typer.Option("--benchmark", "-b", metavar="SLUG@VERSION", help="The version to score against.")
    ],
    run: Annotated[
        list[str] | None,
        typer.Option(
            "--run", metavar="RUN_ID", help="Only this run; repeat for several. Default: every one that fits."
        ),
    ] = None,
    format: Annotated[ReportFormat, typer.Option(help="How to print the runs.")] = ReportFormat.TABLE,
    quiet: Quiet = False,
) -> None:
    """Score runs of earlier versions of a benchmark against a new one, from their stored rankings.

    Each becomes a run of its own there; the old one stays. Doing it again makes nothing new.
    """
    from pipeline.jobs.annotations.rescoring import misfits
    from pipeline.jobs.annotations.rescoring import rescore as rescore_runs
    from pipeline.jobs.first_start import prepared_site
    from store.access import benchmarks

    site = prepared_site()
    with site.database.reading() as session:
        version = benchmarks.get(session, benchmark)
    with output.progress("re-scoring", quiet) as progress:
        made = rescore_runs(site, version.id, run or None, everybodys=True, progress=progress)
    if format is ReportFormat.JSON:
        output.print_json(
            {
                "benchmark": version.name,
                "runs": [{"from": pair.old.id, "to": pair.new.id, "new": pair.is_new} for pair in made],
            }
        )
        return
    for pair in made:
        told = "" if pair.is_new else "  (there already)"
        hidden = "  (private)" if pair.new.visibility == "private" else ""
        typer.echo(f"{pair.old.id} → {pair.new.id}{hidden}{told}")
    if not made:
        typer.echo(f"nothing to re-score: every run that fits {version.name} is on it already, or there is none")
    elif any(pair.is_new for pair in made):
        typer.echo("their intervals and tests follow: a worker makes them, or `equirank statistics`")
    for note in [] if run else misfits(site, version.id):
        typer.echo(f"note: {note}")


def _print_rows(records: list[dict[str, Any]], columns: list[str]) -> None:
    import polars as pl

    from pipeline.formats.tables import TableFormat, write_table

    frame = pl.DataFrame(
        [{name: _cell(record[name]) for name in columns} for record in records],
        schema=dict.fromkeys(columns, pl.String),
    )
    typer.echo(write_table(frame, TableFormat.PLAIN), nl=False)


def _headline(figure: dict[str, Any]) -> str:
    """``37.3 / 45.2 (@10)``; empty for a run without figures."""
    if figure["old"] is None:
        return ""
    new = "" if figure["new"] is None else f" / {100 * figure['new']:.1f}"
    return f"{100 * figure['old']:.1f}{new} (@{figure['k']})"


def _cell(value: Any) -> str | None:
    return None if value is None or value == "" else str(value)
