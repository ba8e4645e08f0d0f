"""``GET /api/v1/health``: can this process serve? Load balancers and ``equirank serve`` ask it."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse

from dashboard.current_site import the_site
from store.access import workers


async def health(request: Request) -> JSONResponse:
    """200 when the database answers with the tables that this program needs, else 503; JSON either way."""
    del request
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
    """The workers that gave a heartbeat; none is no reason to be unhealthy, since pages do not need one."""
    site = the_site()
    with site.database.reading() as session:
        known = workers.list_workers(session)
    return [
        {
            "id": worker.id,
            "queues": list(worker.queues),
            "device": worker.device,
            "alive": worker.silent_s <= site.settings.worker_lost_seconds,
            "silent_seconds": round(worker.silent_s, 1),
        }
        for worker in known
    ]
