"""One holder of a lock at a time, among threads, processes and, on PostgreSQL, machines; it goes with its holder."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from sqlalchemy import text

from store.database import Database
from store.locks import try_lock
from store.settings import Settings

REPOSITORY = Path(__file__).resolve().parents[2]
_HOLDER = """
import sys, time
from pathlib import Path
from store.database import Database
from store.locks import try_lock
from store.settings import Settings

settings = Settings(home=Path(sys.argv[1]), database_url=sys.argv[2])
with try_lock(Database(settings), settings, "work") as held:
    print(held, flush=True)
    time.sleep(60)
"""


def taken(database: Database, settings: Settings, what: str = "work") -> bool:
    with try_lock(database, settings, what) as held:
        return not held


def test_one_holds_it_and_others_are_told(database: Database, settings: Settings) -> None:
    with try_lock(database, settings, "work") as held:
        assert held and taken(database, settings)
        assert taken(database, settings), "asking does not let go of it"
        assert not taken(database, settings, "other work")
    assert not taken(database, settings)
    with pytest.raises(RuntimeError), try_lock(database, settings, "work"):
        raise RuntimeError
    assert not taken(database, settings)


def test_a_killed_holder_lets_go(database: Database, settings: Settings) -> None:
    arguments = [sys.executable, "-c", _HOLDER, str(settings.home), settings.database_url]
    holder = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        assert taken(database, settings)
    finally:
        holder.kill()
        holder.communicate()
    # The server may notice a moment later.
    for _ in range(100):
        if not taken(database, settings):
            return
        time.sleep(0.1)
    pytest.fail("the lock outlives its holder")


@pytest.mark.postgres
@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_other_machines_are_kept_off_on_a_server(database: Database, settings: Settings, tmp_path: Path) -> None:
    """Another machine has another home and the same server."""
    elsewhere = settings.model_copy(update={"home": tmp_path / "elsewhere"})
    there = Database(elsewhere)
    with try_lock(database, settings, "work") as held:
        assert held and taken(there, elsewhere)
    assert not taken(there, elsewhere)
    there.close()


@pytest.mark.postgres
@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_a_connection_that_breaks_takes_the_lock_along(database: Database, settings: Settings) -> None:
    with try_lock(database, settings, "work"), database.connection() as other:
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        other.execute(text(others + "AND pid <> pg_backend_pid()"))
    assert not taken(database, settings)
