"""Verbs about the site itself: ``serve``, ``worker``, ``migrate`` and ``doctor``."""

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
    app.command()(worker)
    app.command()(migrate)
    app.command()(doctor)


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on (default: EQUIRANK_HOST).")] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Port (default: EQUIRANK_PORT).")] = None,
) -> None:
    """Start the site, with a worker for its jobs; a new home gets its tables, demo benchmarks and published figures."""
    from pipeline.jobs.durable import is_embedded
    from pipeline.jobs.first_start import prepared_site
    from pipeline.jobs.public_address import note_address
    from pipeline.jobs.serving import require_free, server_command, worker_command
    from pipeline.jobs.supervisor import supervisor_command
    from pipeline.jobs.warm_up import warm_up
    from store.settings import get_settings

    settings = get_settings()
    address, number = host or settings.host, port or settings.port
    require_free(address, number)
    site = prepared_site(say=_say)
    warm_up(site, _say)
    command, environment, folder = server_command(site.settings, address, number)
    environment = os.environ | environment
    note_address(site.settings, address, number)
    _say(f"EquiRank is starting at http://{address}:{number} (stop it with Ctrl-C)")
    if is_embedded(site):
        command = supervisor_command(command, worker_command(), folder)
    else:
        _say("jobs wait until a worker does them: start `equirank worker`, here or on other machines")
    os.chdir(folder)
    sys.stdout.flush()
    # The server takes this process over: one process to signal, and its exit code is ours.
    os.execve(command[0], command, environment)


def _say(line: str) -> None:
    typer.echo(line, err=True)


def worker(
    queues: Annotated[
        str | None,
        typer.Option(metavar="cpu,gpu,llm", help="Queues to serve (default: all; gpu only where there is a GPU)."),
    ] = None,
) -> None:
    """Do the jobs of a site on PostgreSQL; start as many as wanted, on any machine that reaches its artifacts."""
    from pipeline.jobs.first_start import prepared_site
    from pipeline.jobs.queues import parse_queues
    from pipeline.jobs.site import open_site
    from pipeline.jobs.worker import default_queues, require_shared_store, run_worker

    chosen = parse_queues(queues) if queues is not None else default_queues()
    require_shared_store(open_site())
    site = prepared_site(say=_say)
    if site.artifacts.is_local:
        _say(f"artifacts lie in {site.artifacts.url}: web server and workers on other machines must share this folder")
    run_worker(site, chosen, say=_say)
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads that are amid a batch would hold the exit up; another worker does what they leave.
    os._exit(0)


def migrate() -> None:
    """Bring the database's tables up to date and load what ships with the program."""
    from pipeline.jobs.first_start import prepared_site

    site = prepared_site(say=_say)
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
