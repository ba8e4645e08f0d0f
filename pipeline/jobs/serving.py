"""How the site is started: the web server, and on an embedded store one worker beside it."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from pipeline.errors import EnvironmentProblem
from store.settings import Settings


def server_command(settings: Settings, host: str, port: int) -> tuple[list[str], dict[str, str], Path]:
    """The command, its extra environment and the folder to start it in.

    The dashboard is found by name and started as a program of its own: this floor does not import it.

    Raises:
        EnvironmentProblem: the dashboard is not installed.
    """
    found = find_spec("dashboard")
    if found is None or found.origin is None:
        raise EnvironmentProblem("the dashboard is not installed: pip install equirank, or run from a checkout")
    folder = Path(found.origin).parent
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        str(folder / "asgi.py"),
        f"--server.address={host}",
        f"--server.port={port}",
        "--server.headless=true",
        f"--server.maxUploadSize={settings.limit_upload_mb}",
    ]
    # Streamlit reads .streamlit/config.toml (theme, security) from the folder that it starts in.
    environment = {"EQUIRANK_HOST": host, "EQUIRANK_PORT": str(port), "EQUIRANK_HOME": str(settings.home)}
    return command, environment, folder.parent


def worker_command() -> list[str]:
    """The embedded worker, which ends with this process (and with the program that this process becomes)."""
    return [sys.executable, "-m", "pipeline.jobs.worker", str(os.getpid())]
