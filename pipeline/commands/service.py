"""Verbs about the site itself: ``serve``, ``migrate`` and ``doctor``."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from pipeline.commands import output
from pipeline.commands.options import ReportFormat


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    app.command()(serve)
    app.command()(migrate)
    app.command()(doctor)


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on (default: EQUIRANK_HOST).")] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Port (default: EQUIRANK_PORT).")] = None,
) -> None:
    """Start the site: tables, demo benchmarks and published figures are made at the first start."""
    from pipeline.jobs.first_start import prepared_site
    from pipeline.jobs.serving import server_command

    settings = prepared_site(say=lambda line: typer.echo(line, err=True)).settings
    address, number = host or settings.host, port or settings.port
    command, environment, folder = server_command(settings, address, number)
    typer.echo(f"EquiRank is starting at http://{address}:{number} (stop it with Ctrl-C)", err=True)
    os.chdir(folder)
    sys.stdout.flush()
    # The server takes this process over: one process to signal, and its exit code is ours.
    os.execve(command[0], command, os.environ | environment)


def migrate() -> None:
    """Bring the database's tables up to date and load what ships with the program."""
    from pipeline.jobs.first_start import prepared_site

    site = prepared_site(say=lambda line: typer.echo(line, err=True))
    typer.echo(f"{site.database.url} is up to date")


def doctor(
    deep: Annotated[
        bool, typer.Option("--deep", help="Also read every artifact and compare it with its hash.")
    ] = False,
    format: Annotated[ReportFormat, typer.Option(help="How to print.")] = ReportFormat.TABLE,
) -> None:
    """Say what works here and what is missing: exit 0 when everything needed does, 3 otherwise."""
    from pipeline.jobs.diagnosis import diagnose

    findings = diagnose(deep=deep)
    if format is ReportFormat.JSON:
        output.print_json([finding.as_json() for finding in findings])
    else:
        for finding in findings:
            typer.echo(f"{finding.state:<8} {finding.subject:<16} {finding.detail}")
    if any(finding.state == "broken" for finding in findings):
        raise typer.Exit(3)
