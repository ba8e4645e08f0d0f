"""Errors of the API: one JSON document each (RFC 9457), with words that say what to do."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from pipeline.errors import BenchmarkError, EnvironmentProblem, EquiRankError, UsageError
from store.errors import Conflict, DatabaseUnavailable, InvalidRecord, MigrationNeeded, NotFound, StoreError

PROBLEM_TYPE = "application/problem+json"
#: The shape of every error.
PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "problems": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["parameter", "message"],
                "properties": {"parameter": {"type": "string"}, "message": {"type": "string"}},
            },
        },
        "report": {"type": "object", "description": "How the run file was read, as `equirank validate` says it."},
    },
}
_log = logging.getLogger(__name__)


class ApiProblem(Exception):
    """An answer that is an error.

    Attributes:
        status: HTTP status.
        more: further members of the document.
        headers: of the answer.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        more: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Say what is wrong, in words for whoever wrote the client."""
        super().__init__(detail)
        self.status = status
        self.more = dict(more or {})
        self.headers = dict(headers or {})

    def answer(self) -> Response:
        """The document."""
        body = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": str(self),
            **self.more,
        }
        text = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        return Response(text, self.status, {"Cache-Control": "no-store", **self.headers}, PROBLEM_TYPE)


def problem_of(error: Exception) -> ApiProblem:
    """Any error as an answer; what a client cannot mend is logged, and its details stay here."""
    if isinstance(error, ApiProblem):
        return error
    if isinstance(error, NotFound):
        return ApiProblem(404, str(error))
    if isinstance(error, UsageError):
        return ApiProblem(400, str(error))
    if isinstance(error, Conflict):
        return ApiProblem(409, str(error))
    if isinstance(error, InvalidRecord | BenchmarkError):
        return ApiProblem(422, str(error))
    if isinstance(error, DatabaseUnavailable | MigrationNeeded | EnvironmentProblem):
        _log.error("the API cannot answer: %s", error)
        return ApiProblem(503, "the site cannot answer at the moment; try again later", headers={"Retry-After": "30"})
    if isinstance(error, EquiRankError) and not isinstance(error, StoreError):
        return ApiProblem(422, str(error))
    _log.exception("the API failed", exc_info=error)
    return ApiProblem(500, "the site failed to answer; this is a fault of the program, not of your request")
