"""What the verbs of ``annotate`` say on the way and at the end."""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pipeline.commands import output
from pipeline.commands.options import ReportFormat

if TYPE_CHECKING:
    import polars as pl

    from pipeline.jobs.annotations.naming import Begun
    from pipeline.jobs.site import Site
    from store.access.annotations import AnnotationRecord
    from store.records import BenchmarkRecord


def refuse_taken(out: Path | None) -> None:
    """Refuse a folder that could not be written, before the work that it is for.

    Raises:
        UsageError: something is there, or nothing can be made there.
    """
    from pipeline.errors import UsageError

    if out is None:
        return
    try:
        taken = out.is_symlink() or out.exists()
        if taken and not (out.is_dir() and not any(out.iterdir())):
            raise UsageError(f"--out: {out} exists and is not empty; choose another place or remove it first")
        place = next(folder for folder in (out.absolute(), *out.absolute().parents) if folder.exists())
        # Trying is the only way to know: rights, a full disk and a read-only one look alike from outside.
        with tempfile.TemporaryDirectory(prefix=".equirank-", dir=place):
            pass
    except OSError as error:
        raise UsageError(
            f"--out: {out} cannot be written ({error.strerror or error}); choose another place or change its rights"
        ) from None


def sayer(quiet: bool) -> Callable[[str], None]:
    """Says lines on standard error, over a line of progress where one stands."""
    clear = "\r\033[K" if sys.stderr.isatty() else ""

    def say(line: str) -> None:
        if not quiet:
            typer.echo(clear + line, err=True)

    return say


def say_what(begun: Begun, say: Callable[[str], None]) -> None:
    """What is expanded into what, and how."""
    for note in begun.notes:
        say(f"note: {note}")
    say(f"{begun.parent.name} → version {begun.record.version}: {begun.settings.sentence}")


def command(verb: str, parent: BenchmarkRecord, version: str) -> str:
    """The command of a verb for the same expansion."""
    return shlex.join(["equirank", "annotate", verb, "--benchmark", parent.name, "--version", version])


def tell_made(
    site: Site,
    record: AnnotationRecord,
    parent: BenchmarkRecord,
    made: BenchmarkRecord,
    out: Path | None,
    format: ReportFormat,
    *,
    imports: list[dict[str, Any]] | None = None,
) -> None:
    """What was made, its statistics, what failed and how to ask just that again."""
    from pipeline.commands.benchmarks import FileFormat, write_folder
    from pipeline.jobs.annotations import reading
    from pipeline.jobs.annotations.choices import as_options
    from pipeline.jobs.annotations.naming import free_version
    from pipeline.jobs.benchmark_library import load_benchmark, record_json
    from pipeline.toolex.settings import settings_from_json

    if out is not None:
        write_folder(load_benchmark(site, made.id), out, FileFormat.JSONL)
    failed = reading.failures(site, record.id)
    counts = failure_counts(failed)
    retry = ""
    if failed.height:
        words = command("run", parent, free_version(site, parent.slug, record.version))
        retry = shlex.join([*shlex.split(words), *as_options(settings_from_json(record.settings)), "--retry-failed"])
    if format is ReportFormat.JSON:
        spent = spent_json(site, record.id)
        told: dict[str, Any] = {
            "expansion": record.id,
            "benchmark": record_json(made),
            "failures": counts,
            "spent": spent,
        }
        told |= {"retry": retry or None, "folder": None if out is None else str(out)}
        output.print_json(told | ({} if imports is None else {"imports": imports}))
        return
    print_made(site, record, made)
    if out is not None:
        typer.echo(f"wrote {out}")
    if failed.height:
        said = ", ".join(f"{count:,} at {stage}" for stage, count in counts.items() if count)
        typer.echo(f"\nwithout a valid answer, and so not accepted: {said}; `equirank annotate report` lists them")
        typer.echo(f"ask just those again, under a new version:\n  {retry} --budget USD")
        if counts["decompose"]:
            now = settings_from_json(record.settings).decompose_retries
            typer.echo(f"a query whose splits fit its tools in no draw takes more draws: --decompose-retries {now + 3}")
    typer.echo(f"\nscore stored runs against it: equirank runs rescore --benchmark {made.name}")


def print_made(site: Site, record: AnnotationRecord, made: BenchmarkRecord) -> None:
    """The new version, its Table 1 over all queries, and what it took."""
    import polars as pl

    from pipeline.formats.tables import TableFormat, write_table
    from pipeline.jobs.annotations.reading import table1
    from pipeline.jobs.llm_answers import StoredAnswers

    typer.echo(f"{made.name} is stored\nhash {made.content_hash}\n")
    table = table1(site, made.id).filter(pl.col("domain").is_null())
    typer.echo(write_table(statistics_table(table), TableFormat.PLAIN), nl=False)
    spent = StoredAnswers(site.database).spent(record.id)
    cost = dollars(spent.cost)
    if spent.unpriced:
        cost = "unknown price" if spent.unpriced == spent.calls else f"{cost} and {spent.unpriced:,} of unknown price"
    typer.echo(f"\nasked: {spent.calls:,} calls, {cost}")


def statistics_table(table: pl.DataFrame) -> pl.DataFrame:
    """Table 1 as people read it: a line a figure, a column for all queries and one a domain."""
    figures = {row.pop("domain"): row for row in table.to_dicts()}
    return output.statistics_frame({"all": figures.pop(None), "domains": figures})


def failure_counts(failed: pl.DataFrame) -> dict[str, int]:
    """Failures by stage, stages without any at 0."""
    from pipeline.toolex.settings import Stage

    counts = dict(failed.group_by("stage").len().iter_rows())
    return {stage.value: int(counts.get(stage.value, 0)) for stage in Stage}


def spent_json(site: Site, annotation_id: str) -> dict[str, Any]:
    """What an expansion used, in all and by stage and judge."""
    from pipeline.jobs.llm_answers import StoredAnswers

    answers = StoredAnswers(site.database)
    spent = answers.spent(annotation_id)
    return {
        "calls": spent.calls,
        "cost": spent.cost,
        "unpriced_calls": spent.unpriced,
        "meter": [
            {
                "stage": line.purpose,
                "judge": line.model,
                "calls": line.usage.calls,
                "prompt_tokens": line.usage.prompt_tokens,
                "completion_tokens": line.usage.completion_tokens,
                "cost": line.usage.cost,
                "seconds": line.usage.seconds,
                "refused": line.refused,
                "broken_off": line.lost,
                "unfinished": line.unfinished,
            }
            for line in answers.meter(annotation_id)
        ],
    }


def dollars(cost: float | None) -> str:
    """``$1.20``; below a cent four digits behind the point; ``unknown price`` where nobody states it."""
    if cost is None:
        return "unknown price"
    return f"${cost:,.4f}" if 0 < cost < 0.01 else f"${cost:,.2f}"
