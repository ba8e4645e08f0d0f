"""The database: engine, transactions and the level of its tables.

SQLite is set up for several processes on one machine: write-ahead log (readers never wait for the writer),
``synchronous=FULL`` (a commit survives a power cut, not only a killed process: a published run must not
disappear after its permalink was handed out; commits are few, so the fsync does not matter), 30 s of patience
for the one write lock. ``session()`` takes that lock at its start (``BEGIN IMMEDIATE``): a transaction that
reads first and writes later would otherwise fail at once when another process wrote in between.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlmodel import Session, create_engine

from store.errors import DatabaseUnavailable, MigrationNeeded
from store.settings import Settings, redacted

#: Held on PostgreSQL while the tables are brought up to date; any fixed number of our own.
_MIGRATION_LOCK = 0x45_51_52_4B

_BUSY_SECONDS = 30


@dataclass(frozen=True)
class DatabaseStatus:
    """What ``equirank doctor`` and the health route say of the database.

    Attributes:
        kind: ``sqlite`` or ``postgresql``.
        url: without its password.
        level: revision of the tables, None when there are none.
        head: revision that this program needs.
        problem: what is wrong and what to do, "" when nothing is.
    """

    kind: str
    url: str
    reachable: bool
    level: str | None
    head: str
    problem: str = ""

    @property
    def ok(self) -> bool:
        """Reachable, with the tables that this program needs."""
        return self.reachable and self.level == self.head


class Database:
    """Connections to one database.

    Args:
        settings: where it is; only ``database_url`` is read.

    Raises:
        DatabaseUnavailable: the URL cannot be used or its driver is not installed.
    """

    def __init__(self, settings: Settings) -> None:
        """Prepare the engine; nothing is opened yet."""
        self._url = _database_url(settings.database_url)
        self.url = redacted(settings.database_url)
        self.kind = self._url.get_backend_name()
        self.engine = self._engine()

    def _engine(self) -> Engine:
        if self.kind == "sqlite":
            if self._url.database:
                try:
                    Path(self._url.database).parent.mkdir(parents=True, exist_ok=True)
                except OSError as error:
                    raise DatabaseUnavailable(
                        f"the folder of the database {self.url} cannot be made ({error.strerror}): "
                        "set EQUIRANK_HOME to a folder that can be written"
                    ) from None
            engine = create_engine(self._url, connect_args={"timeout": _BUSY_SECONDS})
            event.listen(engine, "connect", _prepare_sqlite)
            event.listen(engine, "begin", _begin_sqlite)
            return engine
        try:
            return create_engine(self._url, pool_pre_ping=True, connect_args={"connect_timeout": 10})
        except ModuleNotFoundError:
            raise DatabaseUnavailable(
                f"the driver for {self.url} is not installed: pip install 'equirank[postgres]'"
            ) from None

    @contextmanager
    def session(self) -> Generator[Session]:
        """A transaction that may write: committed at the end, rolled back on any exception.

        Raises:
            DatabaseUnavailable: the database cannot be reached, or stayed locked.
            MigrationNeeded: its tables are missing.
        """
        with self._speaking_plainly(), Session(self.engine, expire_on_commit=False) as session, session.begin():
            yield session

    @contextmanager
    def reading(self) -> Generator[Session]:
        """A read-only transaction over one moment of the database; it never waits for writers.

        Raises:
            DatabaseUnavailable: the database cannot be reached.
            MigrationNeeded: its tables are missing.
        """
        options: dict[str, Any] = {"equirank_read_only": True}
        if self.kind == "postgresql":
            options |= {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        engine = self.engine.execution_options(**options)
        with self._speaking_plainly(), Session(engine, autoflush=False) as session:
            yield session

    @contextmanager
    def connection(self) -> Generator[Connection]:
        """A connection outside any transaction, for what has to last longer than one.

        Raises:
            DatabaseUnavailable: the database cannot be reached.
        """
        with self._speaking_plainly():
            connection = self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        with connection:
            yield connection

    def migrate(self) -> None:
        """Bring the tables up to date; safe when several processes start at once.

        The whole upgrade is one transaction under a lock, so a killed starter leaves nothing half done.

        Raises:
            DatabaseUnavailable: the database cannot be reached.
            MigrationNeeded: the tables are newer than this program.
        """
        with self._speaking_plainly(), self.engine.connect() as connection, connection.begin():
            if self.kind == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
            level, head = _level(connection), _head()
            if level == head:
                return
            _refuse_newer(level)
            config = _alembic_config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")

    def status(self) -> DatabaseStatus:
        """How the database is; never raises for a database that is away or out of date."""
        head = _head()
        try:
            with self._speaking_plainly(), self.engine.connect() as connection:
                level = _level(connection)
        except DatabaseUnavailable as error:
            return DatabaseStatus(self.kind, self.url, False, None, head, str(error))
        problem = "" if level == head else _level_problem(level)
        return DatabaseStatus(self.kind, self.url, True, level, head, problem)

    def require_current(self) -> None:
        """Check before serving or working.

        Raises:
            DatabaseUnavailable: the database cannot be reached.
            MigrationNeeded: the tables are older or newer than this program.
        """
        status = self.status()
        if not status.reachable:
            raise DatabaseUnavailable(status.problem)
        if not status.ok:
            raise MigrationNeeded(status.problem)

    def close(self) -> None:
        """Close all pooled connections."""
        self.engine.dispose()

    @contextmanager
    def _speaking_plainly(self) -> Generator[None]:
        """Turn driver errors about the connection or missing tables into ours, without credentials."""
        try:
            yield
        except OperationalError as error:
            reason = str(error.orig).strip().splitlines()[0]
            if "no such table" in reason or "no such column" in reason:
                if self._claims_to_be_current():
                    raise self._damaged(reason) from None
                raise MigrationNeeded(_level_problem(None)) from None
            if "locked" in reason or "busy" in reason:
                raise DatabaseUnavailable(
                    f"the database {self.url} stayed locked for {_BUSY_SECONDS} s: another process holds a long "
                    "transaction; try again, or use PostgreSQL (EQUIRANK_DATABASE_URL) for many writers"
                ) from None
            if self.kind == "sqlite" and "Could not decode to UTF-8" in reason:
                raise self._damaged(reason.partition(" with text ")[0]) from None
            raise DatabaseUnavailable(
                f"the database {self.url} cannot be used ({self._without_password(reason)}): "
                "check EQUIRANK_DATABASE_URL and that the server is running"
            ) from None
        except PoolTimeout:
            raise DatabaseUnavailable(
                f"all connections to the database {self.url} are busy: try again in a moment"
            ) from None
        except DBAPIError as error:
            if type(error.orig).__name__ in {"UndefinedTable", "UndefinedColumn"}:
                raise MigrationNeeded(_level_problem(None)) from None
            if type(error.orig) is sqlite3.DatabaseError:
                # Not one of its subclasses: the file itself cannot be read as a database.
                raise self._damaged(error.orig) from None
            raise
        except UnicodeEncodeError:
            # Of what was asked for, not of what is stored.
            raise
        except (TypeError, ValueError) as error:
            # Bytes that were overwritten within a row: text that is no UTF-8, JSON or time any more.
            if self.kind == "sqlite" and _came_with_rows(error):
                raise self._damaged(error) from None
            raise

    def _damaged(self, reason: object) -> DatabaseUnavailable:
        return DatabaseUnavailable(
            f"the database {self.url} is damaged ({reason}): restore the file from a backup, or move it away and start "
            "anew"
        )

    def _claims_to_be_current(self) -> bool:
        """Whether a SQLite file says that it has all tables, though one was just not found."""
        if self.kind != "sqlite":
            return False
        try:
            with contextlib.closing(sqlite3.connect(f"file:{self._url.database}?mode=ro", uri=True)) as connection:
                row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        except (sqlite3.Error, UnicodeDecodeError):
            return False
        return row is not None and row[0] == _head()

    def _without_password(self, reason: str) -> str:
        password = self._url.password
        return reason.replace(str(password), "***") if password else reason


def _came_with_rows(error: BaseException) -> bool:
    """Whether an error arose where SQLAlchemy or the driver turns stored values into Python's."""
    last = ""
    step = error.__traceback__
    while step is not None:
        name = str(step.tb_frame.f_globals.get("__name__", ""))
        # The decoder of JSON says nothing about who asked it.
        last = last if name.startswith("json") else name
        step = step.tb_next
    return last.startswith("sqlalchemy.") or last == __name__


def exclusive(session: Session, what: str) -> None:
    """Wait until no other transaction is at ``what``, and keep others waiting until this one ends.

    For writes that first look at what is stored. On SQLite a writing session is alone from its start.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("SELECT pg_advisory_xact_lock(hashtext(:what))"), {"what": f"equirank {what}"})


def _database_url(given: str) -> URL:
    try:
        url = make_url(given)
    except ArgumentError:
        raise DatabaseUnavailable(
            "EQUIRANK_DATABASE_URL is not a database address: use postgresql://user:password@host:5432/name, "
            "or leave it empty for a SQLite file"
        ) from None
    backend = url.get_backend_name()
    if backend in {"postgresql", "postgres"}:
        # Platforms hand out postgres:// and postgresql://; SQLAlchemy's default driver for it is psycopg 2.
        return url.set(drivername="postgresql+psycopg")
    if backend == "sqlite":
        if url.database in {None, "", ":memory:"}:
            raise DatabaseUnavailable(
                "EQUIRANK_DATABASE_URL names a SQLite database in memory, which would be empty for every connection: "
                "name a file (sqlite:////path/to/file.sqlite3), or leave it empty"
            )
        return url.set(drivername="sqlite+pysqlite")
    raise DatabaseUnavailable(
        f"EQUIRANK_DATABASE_URL names a {backend} database; SQLite and PostgreSQL are supported: "
        "use postgresql://user:password@host:5432/name, or leave it empty for a SQLite file"
    )


def _prepare_sqlite(connection: Any, record: Any) -> None:
    """Set up a new SQLite connection; transactions are begun by us, not by the driver."""
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {_BUSY_SECONDS * 1000}")
    _switch_to_wal(cursor)
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _switch_to_wal(cursor: Any) -> None:
    """Turn the write-ahead log on; a property of the file, so this writes only once in its life.

    SQLite does not wait for the lock of this one switch whatever the busy timeout says, so when several processes
    open a new file at once we wait ourselves.
    """
    deadline = time.monotonic() + _BUSY_SECONDS
    while cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            return  # a file system that cannot have a write-ahead log keeps its mode, and works with one process
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _begin_sqlite(connection: Connection) -> None:
    read_only = bool(connection.get_execution_options().get("equirank_read_only"))
    connection.exec_driver_sql(f"PRAGMA query_only = {int(read_only)}")
    connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")


def _alembic_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


def _head() -> str:
    head = ScriptDirectory.from_config(_alembic_config()).get_current_head()
    assert head is not None
    return head


def _level(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _refuse_newer(level: str | None) -> None:
    known = {script.revision for script in ScriptDirectory.from_config(_alembic_config()).walk_revisions()}
    if level is not None and level not in known:
        raise MigrationNeeded(_level_problem(level))


def _level_problem(level: str | None) -> str:
    known = {script.revision for script in ScriptDirectory.from_config(_alembic_config()).walk_revisions()}
    if level is None:
        return "the database has no EquiRank tables yet: run `equirank serve`, which makes them, or set EQUIRANK_HOME"
    if level not in known:
        return f"the tables are of a newer EquiRank (level {level}, this one knows {_head()}): upgrade the program"
    return f"the tables are at level {level}, this program needs {_head()}: run `equirank serve` once to upgrade them"
