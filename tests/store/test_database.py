from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from datetime import datetime
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect, text
from sqlalchemy.exc import DBAPIError, IntegrityError, StatementError
from sqlmodel import select

from store.access import retrievers
from store.database import Database
from store.errors import DatabaseUnavailable, MigrationNeeded
from store.models import BenchmarkVersion, Retriever, Table
from store.settings import Settings

REPOSITORY = Path(__file__).resolve().parents[2]


def _benchmark(**fields):
    return BenchmarkVersion(**{"slug": "b", "version": "1", "title": "B", "kind": "tool"} | fields)


def test_migrations_make_exactly_the_models(database):
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Table.metadata) == []
        inspector = inspect(connection)
        for name, table in Table.metadata.tables.items():
            stored = {check["name"] for check in inspector.get_check_constraints(name)}
            declared = {item.name for item in table.constraints if type(item).__name__ == "CheckConstraint"}
            assert stored == declared, name


def test_status_before_and_after_migration(settings):
    database = Database(settings)
    before = database.status()
    assert before.reachable
    assert before.level is None
    assert not before.ok
    with pytest.raises(MigrationNeeded, match="no EquiRank tables yet"):
        database.require_current()
    with pytest.raises(MigrationNeeded), database.reading() as session:
        session.scalars(select(BenchmarkVersion)).all()
    database.migrate()
    after = database.status()
    assert after.ok
    assert after.level == after.head
    database.require_current()
    database.close()


def test_a_newer_database_is_refused(database):
    with database.session() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    assert "newer EquiRank" in database.status().problem
    with pytest.raises(MigrationNeeded, match="newer EquiRank"):
        database.migrate()


_STARTER = """
import sys
from pathlib import Path
from store.access import retrievers
from store.database import Database
from store.settings import Settings
database = Database(Settings(home=Path(sys.argv[1]), database_url=sys.argv[2]))
print("ready", flush=True)
sys.stdin.readline()
database.migrate()
assert database.status().ok
"""


def test_concurrent_starters_migrate_once(settings):
    arguments = [sys.executable, "-c", _STARTER, str(settings.home), settings.database_url]
    starters = [
        subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY
        )
        for _ in range(4)
    ]
    for starter in starters:
        assert starter.stdout.readline() == "ready\n"
    for starter in starters:
        starter.stdin.write("go\n")
        starter.stdin.flush()
    for starter in starters:
        _, errors = starter.communicate(timeout=60)
        assert starter.returncode == 0, errors
    database = Database(settings)
    assert database.status().ok
    database.close()


def test_a_session_commits_whole_or_not_at_all(database):
    with database.session() as session:
        session.add(_benchmark(slug="kept"))
    with pytest.raises(ZeroDivisionError), database.session() as session:  # noqa: PT012
        session.add(_benchmark(slug="lost"))
        session.flush()
        _ = 1 / 0
    with database.reading() as session:
        assert session.scalars(select(BenchmarkVersion.slug)).all() == ["kept"]


def test_reading_cannot_write_and_sees_one_moment(database):
    with pytest.raises((DBAPIError, DatabaseUnavailable), match=r"(?i)read-?only"), database.reading() as session:  # noqa: PT012
        session.add(_benchmark())
        session.flush()
    with database.reading() as session:
        assert session.scalars(select(Retriever)).all() == []
        with database.session() as other:
            other.add(Retriever(key="a", name="A"))
        assert session.scalars(select(Retriever)).all() == []
    with database.reading() as session:
        assert len(session.scalars(select(Retriever)).all()) == 1


def test_read_then_write_transactions_queue_up(database):
    """Without BEGIN IMMEDIATE the second transaction of SQLite fails at once with 'database is locked'."""
    with database.session() as session:
        session.add(Retriever(key="counter", name="0"))
    errors: list[BaseException] = []

    def count() -> None:
        try:
            for _ in range(10):
                with database.session() as session:
                    row = session.scalars(select(Retriever).with_for_update()).one()
                    row.name = str(int(row.name) + 1)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with database.reading() as session:
        assert session.scalars(select(Retriever)).one().name == "40"


@pytest.mark.parametrize(
    "fields",
    [{"kind": "gadget"}, {"headline": "median"}, {"title": None}],
)
def test_closed_sets_and_required_fields_are_checked(database, fields):
    with pytest.raises(IntegrityError), database.session() as session:
        session.add(_benchmark(**fields))


def test_foreign_keys_are_enforced(database, new_run):
    with pytest.raises(IntegrityError), database.session() as session:
        session.add(new_run(retriever_id=999))


def test_naive_times_are_refused_and_zones_come_back(database):
    with pytest.raises(StatementError, match="timezone"), database.session() as session:
        session.add(_benchmark(created_at=datetime(2026, 1, 1)))  # noqa: DTZ001
    with database.session() as session:
        session.add(_benchmark(created_at=datetime.fromisoformat("2026-01-01T12:00:00+02:00")))
    with database.reading() as session:
        stored = session.scalars(select(BenchmarkVersion.created_at)).one()
    assert stored.isoformat() == "2026-01-01T10:00:00+00:00"


def test_sqlite_is_set_up_for_several_processes(tmp_path):
    database = Database(Settings(home=tmp_path))
    with database.engine.connect() as connection:
        read = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert read == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30_000}
    database.close()


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg2"])
def test_postgresql_addresses_use_psycopg_3(tmp_path, scheme):
    database = Database(Settings(home=tmp_path, database_url=f"{scheme}://person:sesame@127.0.0.1:1/none"))
    assert database.engine.dialect.driver == "psycopg"
    status = database.status()
    assert not status.reachable
    assert "EQUIRANK_DATABASE_URL" in status.problem
    assert "sesame" not in repr(status)
    with pytest.raises(DatabaseUnavailable) as caught, database.session() as session:
        session.scalars(select(Retriever)).all()
    assert "sesame" not in str(caught.value)


def test_a_missing_driver_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(DatabaseUnavailable, match=r"pip install 'equirank\[postgres\]'"):
        Database(Settings(home=tmp_path, database_url="postgresql://person:sesame@db.example/equirank"))


@pytest.mark.parametrize(
    "url", ["mysql://person:sesame@db.example/equirank", "sesame", "sqlite://", "sqlite:///:memory:"]
)
def test_other_databases_are_refused(tmp_path, url):
    with pytest.raises(DatabaseUnavailable, match="EQUIRANK_DATABASE_URL") as caught:
        Database(Settings(home=tmp_path, database_url=url))
    assert "sesame" not in str(caught.value)


def test_a_home_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DatabaseUnavailable, match="EQUIRANK_HOME"):
        Database(Settings(home=tmp_path / "file" / "home"))


@pytest.mark.parametrize("harm", ["head", "half"])
def test_a_damaged_file_is_called_damaged(tmp_path, harm):
    settings = Settings(home=tmp_path)
    database = Database(settings)
    database.migrate()
    database.close()
    file = tmp_path / "equirank.sqlite3"
    whole = file.read_bytes()
    file.write_bytes(b"no database" * 10 + whole[110:] if harm == "head" else whole[: len(whole) // 2])
    database = Database(settings)
    status = database.status()
    assert not status.ok and "damaged" in status.problem
    for opened in (database.session, database.reading):
        with pytest.raises(DatabaseUnavailable, match="damaged"), opened() as session:
            session.execute(select(BenchmarkVersion))
    with pytest.raises(DatabaseUnavailable, match="damaged"):
        database.migrate()


def test_bytes_overwritten_within_rows_are_called_damage(tmp_path: Path) -> None:
    """Every answer is whole or says that the file is damaged, wherever some bytes were overwritten."""
    settings = Settings(home=tmp_path)
    database = Database(settings)
    database.migrate()
    with database.session() as session:
        retrievers.upsert(session, Retriever(key="some-retriever", name="Some retriever", family="family"))
    with sqlite3.connect(tmp_path / "equirank.sqlite3") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    whole = (tmp_path / "equirank.sqlite3").read_bytes()
    place = whole.index(b"Some retriever")
    for harm in (b"\xff\xfe\xff", b"\x00\x80"):
        (tmp_path / "equirank.sqlite3").write_bytes(whole[:place] + harm + whole[place + len(harm) :])
        with pytest.raises(DatabaseUnavailable, match="damaged"), database.reading() as session:
            retrievers.get(session, "some-retriever")
        database.close()
    # A table that the file says it has, under another name.
    (tmp_path / "equirank.sqlite3").write_bytes(whole.replace(b"retriever", b"retriewer"))
    with pytest.raises(DatabaseUnavailable, match="damaged"), database.reading() as session:
        retrievers.get(session, "some-retriever")
    database.close()


def test_a_mistake_of_the_caller_is_not_called_damage(tmp_path: Path) -> None:
    database = Database(Settings(home=tmp_path))
    database.migrate()
    with pytest.raises(ValueError, match="of mine"), database.reading():
        raise ValueError("a mistake of mine")
    database.close()
