"""All routes below ``/api/v1``."""

from __future__ import annotations

from typing import Any

from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from dashboard.api import benchmarks, gains, leaderboard, query_cards, runs, submissions
from dashboard.api.health import Health
from dashboard.api.openapi import document, openapi_read
from dashboard.api.problems import ApiProblem
from dashboard.api.resource import ROOT, Read, Resource

READS: tuple[Read[Any], ...] = (*benchmarks.READS, *leaderboard.READS, *gains.READS, *runs.READS, *query_cards.READS)


def api_routes() -> list[Route]:
    """The routes, the last of them for addresses that are not there: they would get the site's page otherwise."""
    described = document(READS, {submissions.PATH: submissions.path_item()})
    reads = (*READS, openapi_read(described))
    return [
        Route(f"{ROOT}/health", Health()),
        *(Route(ROOT + read.path, Resource(read)) for read in reads),
        Route(ROOT + submissions.PATH, submissions.Submissions()),
        Route("/api/{rest:path}", Nothing()),
    ]


class Nothing:
    """Says that an address is not there; an ASGI application, so that it answers every method itself."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 404."""
        detail = f"there is nothing at this address; {ROOT}/openapi.json describes what there is"
        response = ApiProblem(404, detail).answer()
        if scope["method"] == "HEAD":
            response.body = b""
        await response(scope, receive, send)
