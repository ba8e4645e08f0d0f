"""Verbs of rounds of a batch: ``annotate export-batch|import-batch``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.commands import output
from pipeline.commands.annotate_made import command, refuse_taken, say_what, sayer, tell_made
from pipeline.commands.annotate_options import Format, NewVersion, Out, RetryFailed, takes_choices
from pipeline.commands.options import BenchmarkName, Quiet, ReportFormat
from pipeline.commands.retrieval import stages

if TYPE_CHECKING:
    from pipeline.jobs.annotations.choices import Choices
    from pipeline.llm.batch_import import ImportReport

#: Lines of an answers file whose problems are printed; ``--format json`` has all.
_SHOWN = 20


@takes_choices
def export_batch(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the questions go; more files get numbers.")],
    benchmark: BenchmarkName,
    version: NewVersion,
    choices: Choices,
    retry_failed: RetryFailed = False,
    out: Out = None,
    format: Format = ReportFormat.TABLE,
    quiet: Quiet = False,
) -> None:
    """Write every question that is open now as OpenAI-Batch JSONL; nobody is asked.

    One round a stage: decompositions, verifications, audits. Import the answers, then export the next round.
    """
    from pipeline.jobs.annotations.batch import export_round
    from pipeline.jobs.annotations.naming import begin
    from pipeline.jobs.first_start import prepared_site

    refuse_taken(out)
    output.require_place(file, "FILE")
    site = prepared_site()
    begun = begin(site, benchmark, version, choices, live=False)
    say = sayer(quiet)
    say_what(begun, say)
    with stages(quiet) as progress:
        written = export_round(site, begun.record.id, file, retry_failed=retry_failed, progress=progress)
    if written.made is not None:
        tell_made(site, begun.record, begun.parent, written.made, out, format)
        return
    next_command = f"{command('import-batch', begun.parent, version)} ANSWERS"
    if format is ReportFormat.JSON:
        output.print_json(
            {
                "expansion": begun.record.id,
                "pending": written.pending,
                "files": [str(part) for part in written.parts],
                "next": next_command,
            }
        )
        return
    for words in written.words:
        typer.echo(words)
    files = ", ".join(f"{part} (for {_model_of(part)})" for part in written.parts)
    typer.echo(f"wrote {files}: {_questions(written.pending)} to answer")
    typer.echo(f"have {'it' if len(written.parts) == 1 else 'them'} answered, then: {next_command}")


def import_batch(
    answers: Annotated[
        list[Path], typer.Argument(metavar="ANSWERS…", help="The answers files that the provider returned.")
    ],
    benchmark: BenchmarkName,
    version: NewVersion,
    out: Out = None,
    format: Format = ReportFormat.TABLE,
    quiet: Quiet = False,
) -> None:
    """Take the answers of a round; importing a file again changes nothing."""
    from pipeline.jobs.annotations.batch import import_round
    from pipeline.jobs.annotations.naming import found, load_pool
    from pipeline.jobs.first_start import prepared_site
    from pipeline.toolex.settings import settings_from_json
    from store.access import benchmarks

    refuse_taken(out)
    for file in answers:
        _require_readable(file)
    site = prepared_site()
    record = found(site, benchmark, version)
    with site.database.reading() as session:
        parent = benchmarks.get_by_id(session, record.benchmark_version_id)
    load_pool(site, settings_from_json(record.settings))
    told: list[dict[str, Any]] = []
    for file in answers:
        with stages(quiet) as progress:
            imported = import_round(site, record.id, file, progress=progress)
        report = imported.report
        if format is ReportFormat.TABLE:
            _print_import(file, report)
        told.append(
            {
                "file": str(file),
                "lines": report.lines,
                "accepted": report.accepted,
                "known": report.known,
                "missing": report.missing,
                "problems": [{"line": p.line, "kind": p.kind, "message": p.message} for p in report.problems],
            }
        )
    if imported.made is not None:
        tell_made(site, record, parent, imported.made, out, format, imports=told)
        return
    step = command("export-batch", parent, version)
    if format is ReportFormat.JSON:
        output.print_json({"expansion": record.id, "imports": told, "open": imported.next, "next": f"{step} FILE"})
        return
    if imported.report.missing:
        typer.echo(
            f"{_questions(imported.report.missing)} of this round without an answer: import another answers file, or "
            f"write {'it' if imported.report.missing == 1 else 'them'} again with what is open now: {step} FILE"
        )
    else:
        typer.echo(f"this round is complete; write the next one: {step} FILE")


def _require_readable(file: Path) -> None:
    """Refuse a file before any of them is imported.

    Raises:
        JudgeError: it cannot be read.
    """
    from pipeline.errors import JudgeError

    try:
        file.open("rb").close()
    except OSError as error:
        raise JudgeError(
            f"the answers file {file} cannot be read: {error.strerror or error}. No file was imported"
        ) from None


def _print_import(file: Path, report: ImportReport) -> None:
    """What became of an answers file, problems by line."""
    typer.echo(f"{file}: {report.lines:,} lines, {report.accepted:,} new answers, {report.known:,} were known")
    for problem in report.problems[:_SHOWN]:
        typer.echo(f"  line {problem.line}: {problem.kind}: {problem.message}")
    if len(report.problems) > _SHOWN:
        said = ", ".join(f"{count:,} {kind}" for kind, count in sorted(report.counts.items()))
        typer.echo(f"  … in all {said}; --format json lists every line")


def _model_of(part: Path) -> str:
    """The model that a batch file asks; each asks one."""
    with part.open(encoding="utf-8") as file:
        return str(json.loads(file.readline())["body"]["model"])


def _questions(count: int) -> str:
    return "1 question" if count == 1 else f"{count:,} questions"
