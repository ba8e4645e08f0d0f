"""How the site is started: the web server, and on an embedded store one worker beside it."""

from __future__ import annotations

import os
import socket
import sys
from importlib.util import find_spec
from pathlib import Path

from pipeline.errors import EnvironmentProblem
from store.settings import Settings


def require_free(host: str, port: int) -> None:
    """Refuse an address that cannot be listened on, before the work of a start.

    Raises:
        EnvironmentProblem: the port is taken, or the address is none of this machine's.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            if os.name == "posix":
                # A port whose last connections are only closing is free, as it is to the server.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise EnvironmentProblem(
            f"the site cannot listen on {host}:{port} ({error.strerror or error}): stop what uses the port, or choose "
            "another with --port or EQUIRANK_PORT, and the address with --host or EQUIRANK_HOST"
        ) from None


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
