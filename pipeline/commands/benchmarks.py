"""Verbs about benchmarks: ``benchmark list|show|import|export|verify|cite``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.commands import exports, output
from pipeline.commands.options import ReportFormat

if TYPE_CHECKING:
    from pipeline.benchmark import Benchmark

Name = Annotated[str, typer.Argument(metavar="B", help="A stored benchmark as slug or slug@version, or a folder.")]
Format = Annotated[ReportFormat, typer.Option("--format", help="How to print.")]


class FileFormat(StrEnum):
    """How an exported folder keeps its tables."""

    JSONL = "jsonl"
    PARQUET = "parquet"


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    group = typer.Typer(help="List, show, import, export, verify and cite benchmarks.", no_args_is_help=True)
    group.command("list")(list_benchmarks)
    group.command("show")(show)
    group.command("import")(import_)
    group.command("export")(export)
    group.command("verify")(verify)
    group.command("cite")(exports.cite_benchmark)
    app.add_typer(group, name="benchmark")


def list_benchmarks(format: Format = ReportFormat.TABLE) -> None:
    """List the stored benchmark versions."""
    import polars as pl

    from pipeline.formats.tables import TableFormat, write_table
    from pipeline.jobs.benchmark_library import list_records
    from pipeline.jobs.first_start import prepared_site

    records = list_records(prepared_site())
    if format is ReportFormat.JSON:
        output.print_json(records)
        return
    rows = [
        {
            "benchmark": f"{record['slug']}@{record['version']}",
            "kind": record["kind"],
            "queries": _count(record["queries"]),
            "tools": _count(record["tools"]),
            "combinations": _count(record["combinations"]),
            "headline": record["headline"],
            "content": (record["hash"] or "figures only")[:12],
        }
        for record in records
    ]
    typer.echo(write_table(pl.DataFrame(rows), TableFormat.PLAIN), nl=False)


def _count(value: int | None) -> str | None:
    return None if value is None else f"{value:,}"


def show(benchmark: Name, format: Format = ReportFormat.TABLE) -> None:
    """Show counts, licence, hash and the statistics of one benchmark."""
    from pipeline.jobs.benchmark_library import Library

    record = Library().record(benchmark)
    if format is ReportFormat.JSON:
        output.print_json(record)
        return
    from pipeline.formats.tables import TableFormat, write_table

    statistics = output.statistics_frame(record.pop("statistics"))
    output.print_fields(record)
    if statistics.height:
        typer.echo("\n" + write_table(statistics, TableFormat.PLAIN), nl=False)


def import_(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH|HF_ID",
            help="A benchmark folder, ToolRet- or SkillRet-shaped files, a combinations file, or a hub id.",
        ),
    ],
    slug: Annotated[str | None, typer.Option(help="Short name to store it under.")] = None,
    version: Annotated[str | None, typer.Option("--set-version", help="Version to store it as.")] = None,
    title: Annotated[str | None, typer.Option(help="Title to show.")] = None,
    source: Annotated[list[str] | None, typer.Option("--source", help="Only these tasks; repeat for several.")] = None,
    corpus: Annotated[
        str | None,
        typer.Option(help="What is searched: test or all skills (SkillRet); source, category or all (ToolRet)."),
    ] = None,
    licence: Annotated[str | None, typer.Option(help="Licence to show.")] = None,
    tools: Annotated[Path | None, typer.Option(help="ToolRet rows only: the tools, when they lie elsewhere.")] = None,
    equivalents: Annotated[
        Path | None, typer.Option(help="With a combinations file: the verified equivalents of its sub-queries.")
    ] = None,
    revision: Annotated[str | None, typer.Option(help="Hub ids only: the commit to take.")] = None,
    parent: Annotated[
        str | None,
        typer.Option(metavar="B", help="For a combinations file: the benchmark that it belongs to."),
    ] = None,
    format: Format = ReportFormat.TABLE,
) -> None:
    """Read a benchmark, check every row and store it as an immutable version."""
    from pipeline.formats.import_benchmark import import_benchmark
    from pipeline.jobs.benchmark_library import Library, import_into_store
    from pipeline.jobs.first_start import prepared_site

    site = prepared_site()
    benchmark = import_benchmark(
        path,
        slug=slug,
        version=version,
        title=title,
        sources=tuple(source or ()),
        corpus=corpus,
        licence=licence,
        tools=tools,
        equivalents=equivalents,
        revision=revision,
        parent=Library(site).benchmark(parent) if parent else None,
    )
    stored = import_into_store(site, benchmark)
    record = Library(site).record(f"{stored.slug}@{stored.version}")
    if format is ReportFormat.JSON:
        output.print_json(record)
        return
    typer.echo(
        f"stored {stored.slug}@{stored.version}: {stored.queries:,} queries, {stored.tools:,} {stored.kind}s, "
        f"{stored.combinations:,} valid combinations\nhash {stored.content_hash}"
    )
    for note in benchmark.notes:
        typer.echo(f"note: {note}")


def export(
    benchmark: Name,
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder that does not exist yet.")],
    tables: Annotated[FileFormat, typer.Option("--tables", help="How to keep the tables.")] = FileFormat.JSONL,
) -> None:
    """Write a benchmark as a folder that ``benchmark import`` reads back to the same hash.

    One that has combinations gets them as query_combo_verified.jsonl too.
    """
    from pipeline.jobs.benchmark_library import Library

    content = Library().benchmark(benchmark)
    write_folder(content, out, tables)
    typer.echo(f"wrote {out}\nhash {content.content_hash}")


def write_folder(content: Benchmark, out: Path, tables: FileFormat) -> None:
    """Write a benchmark folder, with the accepted combinations as a file of their own where there are any.

    Raises:
        UsageError: the folder exists and is not empty.
        EnvironmentProblem: it cannot be written.
    """
    from pipeline.formats.benchmark_folder import ACCEPTED, write_benchmark_folder
    from pipeline.toolex.verified_file import write_verified_combinations

    def beside(folder: Path) -> None:
        if content.combinations.height:
            write_verified_combinations(content, folder / ACCEPTED)

    write_benchmark_folder(content, out, tables.value, beside=beside)


def verify(benchmark: Name, format: Format = ReportFormat.TABLE) -> None:
    """Read a benchmark again, check every row, and compare its hash with the stored one."""
    from pipeline.jobs.benchmark_library import Library

    checked = Library().verify(benchmark)
    if format is ReportFormat.JSON:
        output.print_json(
            {"benchmark": checked.name, "hash": checked.benchmark.content_hash, "notes": list(checked.benchmark.notes)}
        )
        return
    typer.echo(f"{checked.name} is sound\nhash {checked.benchmark.content_hash}")
    for note in checked.benchmark.notes:
        typer.echo(f"note: {note}")
