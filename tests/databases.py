"""PostgreSQL databases that a test makes and drops."""

from __future__ import annotations

import secrets
from collections.abc import Generator
from contextlib import contextmanager
from urllib.parse import urlsplit


@contextmanager
def new_database(server: str, template: str = "template1") -> Generator[str]:
    """Address of a new database, a copy of ``template`` that nobody may be connected to."""
    import psycopg

    name = f"equirank_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    try:
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
