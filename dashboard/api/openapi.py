"""``GET /openapi.json``: the OpenAPI 3.1 document, made from what the routes are made of."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from dashboard.api.media import MEDIA_TYPES, Format, row_schema
from dashboard.api.parameters import Formatted, Parameters
from dashboard.api.problems import PROBLEM_SCHEMA, PROBLEM_TYPE
from dashboard.api.resource import ROOT, Document, Found, Read

_STATUSES = {
    304: "Not changed since the ETag in `If-None-Match`.",
    400: "A parameter is wrong; `problems` names each.",
    401: "No bearer token, or one that does not open the API.",
    403: "The token does not allow this.",
    404: "Not there, or not for this reader.",
    406: "No such format here.",
    409: "In conflict with what is stored.",
    411: "The length of the body is not known.",
    413: "Over a limit; nothing is stored.",
    415: "A body of a kind that cannot be read.",
    422: "Refused; nothing is stored. `report` has every problem with its line.",
    429: "The day's limit is reached.",
    503: "The site cannot answer at the moment.",
}


def document(reads: Sequence[Read[Any]], others: Mapping[str, Any]) -> dict[str, Any]:
    """The whole document.

    Args:
        reads: every read.
        others: further path items by path.
    """
    paths = {_path(read.path): {"get": _operation(read)} for read in reads}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "EquiRank",
            "version": version("equirank"),
            "description": "Read access to the leaderboard, and submission of runs. Figures are fractions in full "
            "precision; what is not known is null. Reads are open to other origins, carry a strong ETag, and come as "
            "JSON, CSV or Parquet by the header Accept or by `?format=`.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": ROOT}],
        "paths": {**paths, **others},
        "components": {
            "schemas": {"Problem": PROBLEM_SCHEMA},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "Made by `equirank token create`."}
            },
        },
    }


def problems(*statuses: int) -> dict[str, Any]:
    """Response objects of errors."""
    content = {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {str(status): {"description": _STATUSES[status], "content": content} for status in statuses}


def parameter_objects(model: type[Parameters], path: str) -> list[dict[str, Any]]:
    """Parameter objects of a model; those named in the path are in the path."""
    schema = model.model_json_schema()
    found = []
    for name, described in schema["properties"].items():
        inside = re.search(rf"\{{{name}(:\w+)?\}}", path) is not None
        described = {key: value for key, value in described.items() if key not in {"title"}}
        entry: dict[str, Any] = {"name": name, "in": "path" if inside else "query"}
        if "description" in described:
            entry["description"] = described.pop("description")
        # What may be absent is not null: a query string has no null.
        choices = [item for item in described.pop("anyOf", []) if item != {"type": "null"}]
        if choices and described.get("default", 0) is None:
            described.pop("default")
        entry |= {"required": inside or name in schema.get("required", ()), "schema": {**described, **dict(*choices)}}
        found.append(entry)
    return found


def _operation(read: Read[Any]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for offered in read.formats:
        kind = MEDIA_TYPES[offered][0]
        content[kind] = {"schema": dict(read.schema)} if offered is Format.JSON else {"schema": {"type": "string"}}
    parameters = parameter_objects(read.parameters, read.path)
    for entry in parameters:
        if entry["name"] == "format":
            entry["schema"] = {"enum": [offered.value for offered in read.formats]}
    return {
        "summary": read.summary,
        "operationId": re.sub(r"\W+", "_", f"get{read.path.replace(':path', '')}").strip("_"),
        "parameters": parameters,
        "responses": {
            "200": {"description": read.summary, "content": content},
            "304": {"description": _STATUSES[304]},
            **problems(400, 404, 406, 503),
        },
    }


def _path(path: str) -> str:
    return path.replace(":path}", "}")


def openapi_read(made: Mapping[str, Any]) -> Read[Formatted]:
    """The read that serves a finished document."""
    stamp = hashlib.sha256(repr(made).encode()).hexdigest()

    def find(said: Formatted) -> Found:
        del said
        return Found(stamp, lambda chosen: Document(made), "openapi")

    return Read("/openapi.json", "This document", Formatted, find, row_schema({}), (Format.JSON,))
