"""``POST /submissions``: a run file with a bearer token; checked, scored and stored as on the page, or refused."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, Literal

from anyio import CapacityLimiter, to_thread
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dashboard.api.media import write_json
from dashboard.api.openapi import parameter_objects, problems
from dashboard.api.parameters import Line, Parameters, Word, read_parameters
from dashboard.api.problems import ApiProblem, problem_of
from dashboard.api.resource import ROOT
from dashboard.api.uploads import Upload, received
from dashboard.current_site import the_site
from pipeline.jobs.submission import SubmissionMetadata, check_run, permalink, submit_run
from pipeline.run import Order
from pipeline.scoring.averages import scores_json
from store.access import runs, submissions, tokens
from store.errors import Conflict, InvalidRecord
from store.models import utc_now
from store.records import TokenRecord
from store.token_models import Scope as TokenScope

PATH = "/submissions"
#: Files are read and scored two at a time; others wait, so that pages are not starved.
_scoring = CapacityLimiter(2)


class Submitted(Parameters):
    """What is said of a run: in the query string, or in fields of the form (which keeps it out of logs)."""

    benchmark: Word = Field(description="`slug@version`; `slug` alone means the newest version.")
    retriever: Word = Field(description="Its name, as it should be shown.", max_length=200)
    method: Word = "full-doc"
    level: Literal["query", "sub-query"] = "query"
    contract: Line = Field("", description="Encoding or setting, where one retriever has several.")
    link: Line = ""
    licence: Line = ""
    contact: Line = Field("", description="How to reach you; never shown.")
    trained_on_benchmark: Literal["yes", "no", "unknown"] = "unknown"
    order: Literal["score", "rank", "distance"] | None = Field(
        None, description="What orders the lists, when scores and ranks disagree."
    )
    part: Word | None = Field(None, description="Subset and split of an MTEB predictions file.")
    private: bool = Field(False, description="Keep it off the leaderboard; only its link opens it.")
    file_name: Line = Field("", description="A label of the file, when the body is the file itself.")


class Submissions:
    """The endpoint; an ASGI application, so that it answers every method itself."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer POST. There are no cross-origin headers: a page elsewhere cannot submit in its reader's name."""
        request = Request(scope, receive)
        try:
            if request.method != "POST":
                raise ApiProblem(405, f"{request.method} is not for this address; POST is", headers={"Allow": "POST"})
            response = await _answer(request)
        except Exception as error:
            response = problem_of(error).answer()
        await response(scope, receive, send)


async def _answer(request: Request) -> Response:
    # Who asks is settled before a byte of the file is read.
    token = await run_in_threadpool(_token, request.headers.get("authorization", ""))
    query = request.query_params.multi_items()
    async with received(request, the_site().limits.upload_bytes) as upload:
        said = read_parameters(Submitted, {}, [*query, *upload.fields])
        if not said.private and TokenScope.PUBLISH.value not in token.scopes:
            raise ApiProblem(403, "this token may only store private runs: say private=true, or use another")
        return await to_thread.run_sync(_store, token, said, upload, limiter=_scoring)


def _token(header: str) -> TokenRecord:
    kind, _, secret = header.strip().partition(" ")
    if kind.lower() != "bearer" or not secret.strip():
        raise ApiProblem(
            401,
            "submitting needs a token: send the header `Authorization: Bearer …` "
            "(the operator makes one with `equirank token create`)",
            headers={"WWW-Authenticate": 'Bearer realm="equirank"'},
        )
    site = the_site()
    with site.database.reading() as session:
        found = tokens.find(session, secret.strip())
    if found is None:
        raise ApiProblem(
            401,
            "this token does not open the API: it is unknown, expired or revoked",
            headers={"WWW-Authenticate": 'Bearer realm="equirank", error="invalid_token"'},
        )
    if TokenScope.SUBMIT.value not in found.scopes and TokenScope.PUBLISH.value not in found.scopes:
        raise ApiProblem(403, "this token may not submit runs")
    with site.database.session() as session:
        tokens.note_use(session, found, utc_now())
        try:
            submissions.check_daily_limit(session, found.person, site.settings.limit_submissions_per_day)
        except Conflict as error:
            raise ApiProblem(429, str(error), headers={"Retry-After": "3600"}) from None
    return found


def _store(token: TokenRecord, said: Submitted, upload: Upload) -> Response:
    site = the_site()
    order = None if said.order is None else Order(said.order)
    checked = check_run(site, upload.file, said.benchmark, order=order, part=said.part)
    report = checked.reading.report.as_json()
    if checked.reading.run is None or checked.summary is None:
        count = checked.reading.report.problem_count
        detail = f"the run file is refused with {count} {'problem' if count == 1 else 'problems'}; nothing is stored"
        raise ApiProblem(422, detail, more={"report": report})
    metadata = SubmissionMetadata(
        retriever=said.retriever,
        method=said.method,
        level=said.level,
        contract=said.contract,
        link=said.link,
        licence=said.licence,
        contact=said.contact,
        trained_on_benchmark=said.trained_on_benchmark,
        person=token.person,
    )
    name = said.file_name or PurePath(upload.name).name
    try:
        run_id = submit_run(site, checked, upload.file, metadata, publish=not said.private, file_name=name)
    except Conflict as error:
        # The limit was reached while the file was on its way.
        raise ApiProblem(429, str(error), headers={"Retry-After": "3600"}) from None
    except InvalidRecord as error:
        raise ApiProblem(400, str(error)) from None
    with site.database.reading() as session:
        run = runs.get(session, run_id)
    secret = f"?token={run.private_token}" if run.visibility == "private" else ""
    body = {
        "run_id": run_id,
        "permalink": permalink(site, run_id),
        "state": run.state,
        "visibility": run.visibility,
        "benchmark": {
            "slug": checked.version.slug,
            "version": checked.version.version,
            "hash": checked.version.content_hash,
        },
        "report": report,
        "scores": scores_json(checked.summary),
    }
    headers = {"Location": f"{ROOT}/runs/{run_id}{secret}", "Cache-Control": "no-store"}
    return Response(write_json(body), 201, headers, "application/json")


def path_item() -> dict[str, Any]:
    """The route as the OpenAPI document describes it."""
    fields = Submitted.model_json_schema()
    form = {
        "type": "object",
        "required": ["file"],
        "properties": {"file": {"type": "string", "format": "binary"}, **fields["properties"]},
        "description": "Fields may also be in the query string, each in one of the two places.",
    }
    parameters = [{**entry, "required": False} for entry in parameter_objects(Submitted, PATH)]
    return {
        "post": {
            "summary": "Submit a run file: checked and scored as on the page, then published or kept private",
            "operationId": "submit_run",
            "security": [{"token": []}],
            "parameters": parameters,
            "requestBody": {
                "required": True,
                "content": {
                    "multipart/form-data": {"schema": form},
                    "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
                },
            },
            "responses": {
                "201": {
                    "description": "Stored",
                    "headers": {"Location": {"schema": {"type": "string"}, "description": "The run in the API."}},
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "required": ["run_id", "permalink", "state", "visibility", "report", "scores"],
                                "properties": {"run_id": {"type": "string"}, "permalink": {"type": "string"}},
                            }
                        }
                    },
                },
                **problems(400, 401, 403, 404, 413, 415, 422, 429, 503),
            },
        }
    }
