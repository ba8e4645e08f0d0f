"""All routes below ``/api/v1``."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dashboard.api import benchmarks, leaderboard, query_cards, runs, submissions
from dashboard.api.health import health
from dashboard.api.openapi import document, openapi_read
from dashboard.api.problems import ApiProblem
from dashboard.api.resource import ROOT, Read, Resource

READS: tuple[Read[Any], ...] = (*benchmarks.READS, *leaderboard.READS, *runs.READS, *query_cards.READS)


def api_routes() -> list[Route]:
    """The routes, the last of them for addresses that are not there: they would get the site's page otherwise."""
    described = document(READS, {submissions.PATH: submissions.path_item()})
    reads = (*READS, openapi_read(described))
    return [
        Route(f"{ROOT}/health", health, methods=["GET"]),
        *(Route(ROOT + read.path, Resource(read)) for read in reads),
        Route(ROOT + submissions.PATH, submissions.Submissions()),
        Route("/api/{rest:path}", _nothing, methods=["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]),
    ]


async def _nothing(request: Request) -> Response:
    del request
    return ApiProblem(404, f"there is nothing at this address; {ROOT}/openapi.json describes what there is").answer()
