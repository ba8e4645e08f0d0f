"""Being the only one at a piece of work, for as long as it takes; a lock goes with the process that holds it.

On PostgreSQL the server holds the lock, so it reaches every machine (through the connection itself: a pooler in between
has to keep sessions together). On SQLite, which is for one machine, a file of the home does.
"""

from __future__ import annotations

import fcntl
from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from store.database import Database
from store.settings import Settings


@contextmanager
def try_lock(database: Database, settings: Settings, what: str) -> Generator[bool]:
    """Say whether nobody else is at ``what``, and keep others off until the block is left.

    Args:
        database: whose work it is.
        settings: whose home holds the file, on SQLite.
        what: letters, digits and ``-`` alone.

    Raises:
        DatabaseUnavailable: the server cannot be reached.
    """
    way = _on_the_server(database, what) if database.kind == "postgresql" else _in_the_home(settings, what)
    with way as held:
        yield held


@contextmanager
def _in_the_home(settings: Settings, what: str) -> Generator[bool]:
    folder = settings.cache_folder / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{what}.lock").open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True


@contextmanager
def _on_the_server(database: Database, what: str) -> Generator[bool]:
    key = {"what": f"equirank {what}"}
    with database.connection() as connection:
        held = bool(connection.scalar(text("SELECT pg_try_advisory_lock(hashtextextended(:what, 0))"), key))
        try:
            yield held
        finally:
            if held:
                try:
                    connection.execute(text("SELECT pg_advisory_unlock(hashtextextended(:what, 0))"), key)
                except DBAPIError:
                    # The connection is gone, and the lock with it.
                    connection.invalidate()
