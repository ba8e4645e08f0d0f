"""``GET /api/v1/health``: can this process serve? Load balancers and ``equirank serve`` ask it."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse

from dashboard.current_site import the_site


async def health(request: Request) -> JSONResponse:
    """200 when the database answers with the tables that this program needs, else 503; JSON either way."""
    del request
    status = await run_in_threadpool(lambda: the_site().database.status())
    body = {
        "status": "ok" if status.ok else "unhealthy",
        "database": {
            "kind": status.kind,
            "reachable": status.reachable,
            "level": status.level,
            "needed": status.head,
            "problem": status.problem,
        },
    }
    return JSONResponse(body, 200 if status.ok else 503, headers={"Cache-Control": "no-store"})
