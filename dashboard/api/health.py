"""``GET /api/v1/health``: can this process serve? Load balancers and ``equirank serve`` ask it."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from dashboard.api.problems import ApiProblem
from dashboard.current_site import the_site
from store.access import workers


class Health:
    """The endpoint; an ASGI application, so that it answers every method itself."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer GET and HEAD."""
        response: Response
        if scope["method"] in {"GET", "HEAD"}:
            response = await health()
            if scope["method"] == "HEAD":
                response.body = b""
        else:
            said = f"{scope['method']} is not for this address; GET is"
            response = ApiProblem(405, said, headers={"Allow": "GET, HEAD"}).answer()
        await response(scope, receive, send)


async def health() -> JSONResponse:
    """200 when the database answers with the tables that this program needs, else 503; JSON either way."""
    status = await run_in_threadpool(lambda: the_site().database.status())
    heard = await run_in_threadpool(_workers) if status.ok else []
    body = {
        "status": "ok" if status.ok else "unhealthy",
        "database": {
            "kind": status.kind,
            "reachable": status.reachable,
            "level": status.level,
            "needed": status.head,
            "problem": status.problem,
        },
        "workers": heard,
    }
    return JSONResponse(body, 200 if status.ok else 503, headers={"Cache-Control": "no-store"})


def _workers() -> list[dict[str, object]]:
    """The workers that gave a heartbeat; none is no reason to be unhealthy, since pages do not need one.

    Without their ids: those name machines, and everybody may ask here.
    """
    site = the_site()
    with site.database.reading() as session:
        known = workers.list_workers(session)
    return [
        {
            "queues": list(worker.queues),
            "device": worker.device,
            "alive": worker.silent_s <= site.settings.worker_lost_seconds,
            "silent_seconds": round(worker.silent_s, 1),
        }
        for worker in known
    ]
