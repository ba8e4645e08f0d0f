"""A client of the API over a prepared site, with a public and a private run."""

from __future__ import annotations

from collections.abc import Callable, Generator

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dashboard.api.routes import api_routes
from pipeline.jobs.site import Site
from store.access import runs, tokens
from store.token_models import Scope

# The fixtures of the pages' tests; a conftest of a sibling folder is not found by itself.
from tests.dashboard.conftest import prepared_home, site, submitted  # noqa: F401


@pytest.fixture
def client(site: Site) -> Generator[TestClient]:  # noqa: F811
    """The routes of the API; an error that is not answered fails the test."""
    with TestClient(Starlette(routes=api_routes())) as opened:
        yield opened


@pytest.fixture
def private_token(site: Site) -> Callable[[str], str]:  # noqa: F811
    """The token of a private run's link."""

    def read(run_id: str) -> str:
        with site.database.reading() as session:
            return runs.get(session, run_id).private_token or ""

    return read


@pytest.fixture
def bearer(site: Site) -> Callable[..., dict[str, str]]:  # noqa: F811
    """The header of a new token."""

    def make(*scopes: Scope) -> dict[str, str]:
        with site.database.session() as session:
            made = tokens.create(session, "test", scopes=scopes or tuple(Scope))
        return {"Authorization": f"Bearer {made.secret}"}

    return make
