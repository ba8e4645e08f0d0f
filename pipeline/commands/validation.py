"""Verbs about people's checks of accepted combinations: ``validation sample|list|invite|link|report|close``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.commands import output
from pipeline.commands.options import ReportFormat

if TYPE_CHECKING:
    from pipeline.jobs.labels.reports import SampleReport
    from pipeline.jobs.site import Site
    from store.records import BenchmarkRecord


class Role(StrEnum):
    """What somebody is invited to do."""

    REVIEWER = "reviewer"
    ADJUDICATOR = "adjudicator"


class TableOrFile(StrEnum):
    """How a report prints."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


Sample = Annotated[str, typer.Argument(metavar="SAMPLE", help="The id that sample and list print.")]
StoredBenchmark = Annotated[
    str, typer.Option("--benchmark", "-b", metavar="B", help="A stored benchmark as slug or slug@version.")
]
Format = Annotated[ReportFormat, typer.Option("--format", help="How to print.")]


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    group = typer.Typer(
        help="Have people check accepted combinations: draw a sample, invite, report, close.", no_args_is_help=True
    )
    group.command()(sample)
    group.command("list")(list_samples)
    group.command()(invite)
    group.command()(link)
    group.command()(report)
    group.command()(close)
    app.add_typer(group, name="validation")


def sample(
    benchmark: StoredBenchmark,
    size: Annotated[int, typer.Option(min=1, help="Accepted combinations to draw.")] = 100,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the draw (default: a random one, kept).")] = None,
    note: Annotated[str, typer.Option(help="What it is for.")] = "",
    format: Format = ReportFormat.TABLE,
) -> None:
    """Draw a sample and print its lead's link, which cannot be shown again."""
    from pipeline.jobs.labels.samples import draw_sample, new_seed

    site, record = stored(benchmark)
    made = draw_sample(site, record, size, new_seed() if seed is None else seed, note)
    address = _address(site, made.secret)
    if format is ReportFormat.JSON:
        output.print_json({"sample": made.sample.id, "seed": made.sample.seed, "link": address})
        return
    typer.echo(
        f"sample {made.sample.id}, seed {made.sample.seed}: keep the lead's link, it is not shown again", err=True
    )
    typer.echo(address)


def list_samples(
    benchmark: Annotated[str | None, typer.Option("--benchmark", "-b", metavar="B", help="Only of this one.")] = None,
    format: Format = ReportFormat.TABLE,
) -> None:
    """List samples with how far they are."""
    import polars as pl

    from pipeline.formats.tables import TableFormat, write_table
    from pipeline.jobs.labels.disputes import version_names
    from store.access import validation

    site, record = stored(benchmark) if benchmark else (prepared(), None)
    names = version_names(site)
    rows: list[dict[str, Any]] = []
    with site.database.reading() as session:
        for one in validation.list_samples(session, None if record is None else record.id):
            standing = validation.standing(session, one.id)
            rows.append(
                {
                    "sample": one.id,
                    "benchmark": names.get(one.benchmark_version_id, ""),
                    "items": standing.items,
                    "reviewed": standing.reviewed,
                    "decided": standing.decided,
                    "seed": one.seed,
                    "note": one.note,
                    "drawn": one.created_at.isoformat(timespec="seconds"),
                    "closed": one.closed_at and one.closed_at.isoformat(timespec="seconds"),
                }
            )
    if format is ReportFormat.JSON:
        output.print_json(rows)
    elif not rows:
        typer.echo("no samples yet: draw one with `equirank validation sample --benchmark B`")
    else:
        typer.echo(write_table(pl.DataFrame(rows, infer_schema_length=None), TableFormat.PLAIN), nl=False)


def invite(
    sample: Sample,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whom; for the lead alone, no report has it.")],
    role: Annotated[Role, typer.Option(help="Review items blind, or decide where two reviewers disagree.")] = (
        Role.REVIEWER
    ),
    format: Format = ReportFormat.TABLE,
) -> None:
    """Invite somebody and print their link, which cannot be shown again."""
    from store.access import validation
    from store.validation_models import ReviewerRole

    site = prepared()
    with site.database.session() as session:
        made = validation.invite(session, sample, name, ReviewerRole(role.value))
    _print_link(site, made.person.name, made.secret, format)


def link(
    sample: Sample,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Whose; left out: the lead's.")] = None,
    format: Format = ReportFormat.TABLE,
) -> None:
    """Make a new link for somebody, or for the lead; the old one opens nothing from now on."""
    from store.access import validation

    site = prepared()
    with site.database.session() as session:
        if name is None:
            secret, whose = validation.renew_lead(session, sample), "the lead"
        else:
            made = validation.renew(session, validation.find_person(session, sample, name).id)
            secret, whose = made.secret, made.person.name
    _print_link(site, whose, secret, format)


def report(
    sample: Sample,
    k: Annotated[int | None, typer.Option("--k", min=1, help="Cutoff of the corrected metrics.")] = None,
    items: Annotated[
        Path | None, typer.Option("--items", metavar="FILE", help="Also write every verdict as CSV; of closed samples.")
    ] = None,
    format: Annotated[TableOrFile, typer.Option("--format", help="How to print.")] = TableOrFile.TABLE,
) -> None:
    """Print precision, agreement, kappa and faults, and the board's new metrics corrected by the precision."""
    import polars as pl

    from pipeline.formats.tables import TableFormat, write_table
    from pipeline.jobs.labels.reports import (
        corrected_frame,
        csv_text,
        items_frame,
        read_report,
        report_frame,
        report_json,
    )

    output.require_place(items, "--items")
    site = prepared()
    found = read_report(site, sample)
    corrected = corrected_frame(site, found.benchmark, found.overall, k or found.cutoff)
    if items is not None:
        text = csv_text(items_frame(site, sample))
        with output.writing(items):
            items.write_text(text, encoding="utf-8")
    if format is TableOrFile.JSON:
        output.print_json(report_json(found, corrected))
        return
    frame = report_frame(found)
    if format is TableOrFile.CSV:
        typer.echo(csv_text(frame), nl=False)
        return
    _print_words(found)
    rows = [
        {
            "": "all" if row["scope"] == "all" else row["domain"] or "(no domain)",
            "items": row["items"],
            "decided": row["decided"],
            "valid": row["valid"],
            "open": row["to_adjudicate"],
            "precision": _between(row["precision_least"], row["precision_most"]),
            "low": output.points(row["bounds_low"]),
            "high": output.points(row["bounds_high"]),
            "agreement": output.points(row["agreement"]),
            "kappa": None if row["kappa"] is None else f"{row['kappa']:.2f}".replace("-", "−"),
        }
        for row in frame.iter_rows(named=True)
    ]
    typer.echo(write_table(pl.DataFrame(rows, infer_schema_length=None), TableFormat.PLAIN), nl=False)
    if corrected.height:
        typer.echo("\nnew metrics if only the valid share of accepted combinations counted")
        if found.overall.to_adjudicate:
            typer.echo(
                f"open disagreements: {found.overall.to_adjudicate:,}; corrected counts decided items alone; "
                "low to high reaches from all of the open ones invalid to all valid"
            )
        texts = [
            {"run": row["run"], "metric": f"{row['metric']}@{row['k']}"}
            | {name: output.points(row[name]) for name in ("old", "new", "corrected")}
            | {"low": output.points(row["corrected_low"]), "high": output.points(row["corrected_high"])}
            for row in corrected.iter_rows(named=True)
        ]
        typer.echo(write_table(pl.DataFrame(texts, infer_schema_length=None), TableFormat.PLAIN), nl=False)


def close(sample: Sample) -> None:
    """Take no more reviews and make the report public; a sample cannot be opened again."""
    from store.access import validation

    with prepared().database.session() as session:
        validation.close(session, sample)
        standing = validation.standing(session, sample)
    undecided = standing.disputed - standing.adjudicated
    disputed = f"{undecided:,} disagreement{'s are' if undecided > 1 else ' is'} open, which the report says"
    without = f", {disputed}" if undecided else ""
    typer.echo(
        f"closed {sample}: {standing.decided:,} of {standing.items:,} items are decided{without}; the report is public "
        "now"
    )


def prepared() -> Site:
    """The site, with its tables and shipped data in place."""
    from pipeline.jobs.first_start import prepared_site

    return prepared_site()


def stored(name: str) -> tuple[Site, BenchmarkRecord]:
    """The site and a stored benchmark version."""
    from store.access import benchmarks

    site = prepared()
    with site.database.reading() as session:
        return site, benchmarks.get(session, name)


def _address(site: Site, secret: str) -> str:
    from pipeline.jobs.labels.samples import review_address
    from pipeline.jobs.public_address import public_address

    return public_address(site.settings) + review_address(secret)


def _print_link(site: Site, whose: str, secret: str, format: ReportFormat) -> None:
    address = _address(site, secret)
    if format is ReportFormat.JSON:
        output.print_json({"name": whose, "link": address})
        return
    typer.echo(f"link for {whose}: keep it now, it is not shown again", err=True)
    typer.echo(address)


def _between(least: float | None, most: float | None) -> str | None:
    """``50.0 to 100.0``; one figure where nothing is open."""
    return output.points(least) if least == most else f"{output.points(least)} to {output.points(most)}"


def _print_words(report: SampleReport) -> None:
    from pipeline.jobs.labels.reports import headline, nobody_decides

    found = report.overall
    if found.to_adjudicate:
        typer.echo(" ".join(filter(None, (f"{headline(report)}.", nobody_decides(report)))))
    typer.echo(f"{found.decided:,} of {found.items:,} items decided, {found.reviewed:,} with both reviews")
    faults = [f"{bucket.value} {n:g}" for bucket, n in found.taxonomy.items() if n]
    if faults:
        typer.echo("faults: " + ", ".join(faults))
