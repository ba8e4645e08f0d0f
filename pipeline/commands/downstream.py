"""Verbs about downstream studies: ``downstream export|import|list|report``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.commands import output
from pipeline.commands.options import BenchmarkName, ReportFormat

if TYPE_CHECKING:
    from pipeline.downstream.report import DownstreamReport
    from store.access.downstream import DownstreamStudyRecord

Format = Annotated[ReportFormat, typer.Option("--format", help="How to print.")]


class SettingName(StrEnum):
    """Where the tools of a task come from."""

    ORACLE = "oracle"
    RETRIEVER = "retriever"
    EXPANDED = "expanded"


class ChoiceName(StrEnum):
    """Which valid combination stands for a task."""

    SCORE = "score"
    RUN = "run"


class CategoryName(StrEnum):
    """What the category of a task is."""

    DOMAIN = "domain"
    SOURCE = "source"


class StudyFormat(StrEnum):
    """How ``report`` prints."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    group = typer.Typer(help="Give agents tasks with different tools, and compare pass rates.", no_args_is_help=True)
    group.command("export")(export)
    group.command("import")(import_)
    group.command("list")(list_)
    group.command("report")(report)
    app.add_typer(group, name="downstream")


def export(
    benchmark: BenchmarkName,
    setting: Annotated[
        SettingName,
        typer.Option(help="oracle: the annotated set; retriever: a run's first K; expanded: a valid combination."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="F", help="The task file to write.")],
    run: Annotated[str, typer.Option("--run", metavar="RUN", help="Id of a stored run, or a run file.")] = "",
    k: Annotated[
        int | None,
        typer.Option("--k", min=1, max=1000, help="Tools a task of a run (5), or cutoff where a run chooses (10)."),
    ] = None,
    choose: Annotated[
        ChoiceName,
        typer.Option(help="expanded: the highest RRF score, or what --run ranks best (NDCG@K)."),
    ] = ChoiceName.SCORE,
    keep_label: Annotated[
        bool, typer.Option("--keep-label", help="expanded: let the annotated set compete; else it is replaced.")
    ] = False,
    tasks: Annotated[
        Path | None, typer.Option("--tasks", metavar="F", help="Only the query ids of this file, one a line.")
    ] = None,
    category: Annotated[CategoryName, typer.Option(help="What the category of a task is.")] = CategoryName.DOMAIN,
    name: Annotated[str, typer.Option("--name", help="Name of the setting in the file.")] = "",
    format: Format = ReportFormat.TABLE,
) -> None:
    """Write a task file in ToolBench's shape, one setting a file; an agent is run on it elsewhere."""
    from pipeline.downstream.task_file import CategoryFrom, write_tasks
    from pipeline.downstream.tool_sets import Choice, Setting
    from pipeline.formats.messages import plural
    from pipeline.jobs.benchmark_library import Library
    from pipeline.jobs.downstream import TaskRequest, make_tasks

    output.require_place(out)
    request = TaskRequest(
        benchmark,
        Setting(setting.value),
        run=run,
        k=k,
        choose=Choice(choose.value),
        keep_label=keep_label,
        category=CategoryFrom(category.value),
        tasks=tasks,
        name=name,
    )
    made = make_tasks(Library(), request)
    with output.writing(out), out.open("w", encoding="utf-8", newline="\n") as file:
        count = write_tasks(made.records, file)
    if format is ReportFormat.JSON:
        output.print_json({"setting": made.setting, "tasks": count, "file": str(out), "notes": list(made.notes)})
        return
    typer.echo(f"wrote {out}: {plural(count, 'task')} under {made.setting}")
    for note in made.notes:
        typer.echo(f"note: {note}")


def import_(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV, TSV or JSON lines: task, category, setting, passed.")
    ],
    label: Annotated[str, typer.Option("--label", help="Your words for the study; no other has them.")],
    benchmark: Annotated[
        str | None,
        typer.Option("--benchmark", "-b", metavar="B", help="A stored benchmark whose queries the tasks must be."),
    ] = None,
    settings: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="Order of the settings; differences are to those before. Else: oracle "
                     "first, expanded last."),
    ] = None,
    note: Annotated[str, typer.Option("--note", help="Agent, judge and date, in words.")] = "",
    format: Format = ReportFormat.TABLE,
) -> None:  # fmt: skip
    """Read pass or fail per task and setting, and store it as a study; a bad line refuses the file."""
    from pipeline.formats.messages import plural
    from pipeline.jobs.downstream import import_study, study_json
    from pipeline.jobs.first_start import prepared_site

    site = prepared_site()
    order = [part.strip() for part in settings.split(",")] if settings else []
    made = import_study(site, path, label, benchmark=benchmark, settings=order, note=note)
    if format is ReportFormat.JSON:
        output.print_json({**study_json(site, made.record), "notes": list(made.outcomes.notes)})
        return
    study = made.record
    typer.echo(f"stored {study.label} ({study.id}): {plural(study.tasks, 'task')} under {', '.join(study.settings)}")
    for line in made.outcomes.notes:
        typer.echo(f"note: {line}")


def list_(format: Format = ReportFormat.TABLE) -> None:
    """List the stored studies, the newest first."""
    import polars as pl

    from pipeline.formats.tables import TableFormat, write_table
    from pipeline.jobs.downstream import list_studies
    from pipeline.jobs.first_start import prepared_site

    studies = list_studies(prepared_site())
    if format is ReportFormat.JSON:
        output.print_json(studies)
        return
    rows = [
        {
            "label": study["label"],
            "id": study["id"],
            "benchmark": study["benchmark"],
            "settings": ", ".join(study["settings"]),
            "tasks": f"{study['tasks']:,}",
            "created": study["created"][:10],
        }
        for study in studies
    ]
    names = ("label", "id", "benchmark", "settings", "tasks", "created")
    typer.echo(write_table(pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String)), TableFormat.PLAIN), nl=False)


def report(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="Label or id of a stored study.")],
    format: Annotated[StudyFormat, typer.Option("--format", help="How to print.")] = StudyFormat.TABLE,
) -> None:
    """Print pass rates by setting and category, paired differences, and what the ToolEX paper reports."""
    from pipeline.downstream.report import report_json
    from pipeline.jobs.downstream import get_study, study_json, study_report
    from pipeline.jobs.first_start import prepared_site

    site = prepared_site()
    found = get_study(site, study)
    made = study_report(site, found)
    if format is StudyFormat.JSON:
        output.print_json({"study": study_json(site, found), **report_json(made)})
        return
    _print(found, made, markdown=format is StudyFormat.MARKDOWN)


def _print(study: DownstreamStudyRecord, made: DownstreamReport, *, markdown: bool) -> None:
    from pipeline.downstream.report import (
        CAVEAT,
        NO_INTERVAL,
        difference_table,
        rate_table,
        reported_figures,
        reported_table,
    )
    from pipeline.formats.messages import plural
    from pipeline.formats.tables import TableFormat, escape_markdown, write_table

    layout = TableFormat.MARKDOWN if markdown else TableFormat.PLAIN

    def said(text: str) -> str:
        return escape_markdown(text) if markdown else text

    def heading(text: str) -> None:
        typer.echo(f"\n{'## ' if markdown else ''}{text}\n")

    typer.echo(f"{'# ' if markdown else ''}{said(study.label)}")
    typer.echo(f"\n{plural(study.tasks, 'task')}" + (f"; {said(study.note)}" if study.note else ""))
    heading("Pass rates, % [95 % interval]")
    typer.echo(write_table(rate_table(made), layout), nl=False)
    heading("Paired differences, points")
    typer.echo(write_table(difference_table(made), layout), nl=False)
    typer.echo("\ngained, lost: tasks that pass only under the first or only under the second of the two")
    typer.echo("p: sign-flip test over the tasks that both have; Holm: adjusted over the rows")
    if made.differences["low"].null_count():
        typer.echo(NO_INTERVAL)
    for note in made.notes:
        typer.echo(f"note: {said(note)}")
    heading("As reported in the ToolEX paper, on its own tasks")
    typer.echo(write_table(reported_table(reported_figures()), layout), nl=False)
    typer.echo(f"\n{CAVEAT}")
