"""DBOS Transact as EquiRank uses it: where jobs are kept, and how this program is called there.

Jobs live in ``jobs.sqlite3`` in the home folder, or in the schema ``dbos`` of the PostgreSQL database. The list of
jobs is DBOS's own; there is no second table. Values are kept as JSON, so that they outlive this program's classes.

Importing DBOS takes half a second, so this module imports it inside functions.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

from sqlalchemy import text
from sqlalchemy.engine import make_url

from pipeline.jobs.site import Site
from store.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from dbos import DBOSClient, DBOSConfig

APPLICATION = "equirank"
#: A job is only ever continued by a program with the same version; change it when a workflow's steps change.
VERSION = "1"
#: Executor id of the one worker on an embedded store; its jobs are taken up again at its next start.
EMBEDDED = "embedded"

_clients: dict[str, Any] = {}
_lock = threading.Lock()


def is_embedded(site: Site) -> bool:
    """Whether everything is on this machine, with one worker beside the web server."""
    return site.database.kind == "sqlite"


def job_database(site: Site) -> str:
    """Address of the database that jobs are kept in."""
    if is_embedded(site):
        return f"sqlite:///{site.settings.home / 'jobs.sqlite3'}"
    url = make_url(site.settings.database_url).set(drivername="postgresql+psycopg")
    return url.render_as_string(hide_password=False)


def has_jobs(site: Site) -> bool:
    """Whether the tables of jobs were made; looks only, and makes nothing.

    Raises:
        DatabaseUnavailable: the database cannot be reached.
    """
    if is_embedded(site):
        return (site.settings.home / "jobs.sqlite3").is_file()
    with site.database.reading() as session:
        return session.scalar(text("SELECT to_regclass('dbos.workflow_status')")) is not None


def prepare_jobs(site: Site) -> None:
    """Make or upgrade the tables of jobs; safe when several processes do so at once.

    Raises:
        DatabaseUnavailable: the database cannot be reached.
    """
    _quiet()
    from dbos import DBOS

    if is_embedded(site):
        site.settings.home.mkdir(parents=True, exist_ok=True)
        # With a write-ahead log the web server's reads never wait for the worker; the file remembers it.
        with closing(sqlite3.connect(site.settings.home / "jobs.sqlite3", timeout=30)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
    try:
        DBOS.migrate(job_database(site))
    except Exception as error:  # of the driver, whichever it is
        raise DatabaseUnavailable(
            f"the jobs cannot be kept in {site.database.url} ({type(error).__name__}): check that the database is "
            "running and that its user may create the schema dbos"
        ) from error


def job_client(site: Site) -> DBOSClient:
    """The way into the jobs from outside a worker; one for each database and process.

    Raises:
        DatabaseUnavailable: the database cannot be reached.
    """
    url = job_database(site)
    with _lock:
        if url not in _clients:
            prepare_jobs(site)
            from dbos import DBOSClient, DBOSPortableJSONSerializer

            _clients[url] = DBOSClient(
                system_database_url=url,
                serializer=DBOSPortableJSONSerializer(),
                application_name=APPLICATION,
                retry_connection_errors=False,
            )
        client: DBOSClient = _clients[url]
        return client


def close_job_client(site: Site) -> None:
    """Close the connections of ``job_client``."""
    with _lock:
        client = _clients.pop(job_database(site), None)
    if client is not None:
        client.destroy()


def worker_config(site: Site, executor_id: str) -> DBOSConfig:
    """How a worker launches DBOS."""
    _quiet()
    from dbos import DBOSPortableJSONSerializer

    return {
        "name": APPLICATION,
        "system_database_url": job_database(site),
        "executor_id": executor_id,
        "application_version": VERSION,
        "serializer": DBOSPortableJSONSerializer(),
        "log_level": "CRITICAL",
        "scheduler_polling_interval_sec": 3600.0,
    }


def _quiet() -> None:
    """DBOS prints a traceback for every failed job; the job's own record has its error in words."""
    logging.getLogger("dbos").setLevel(logging.CRITICAL)
