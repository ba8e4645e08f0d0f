"""The OpenAPI document describes what is served, and no request that it allows, or nearly allows, gives a 5xx."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dashboard.api.routes import READS, api_routes
from pipeline.jobs.site import Site

load_all_checks()
CHOSEN = CHECKS.get_by_names(
    ["not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance"]
)


def test_every_route_is_described(client: TestClient) -> None:
    answer = client.get("/api/v1/openapi.json")
    assert answer.status_code == 200
    described = answer.json()
    assert described["openapi"] == "3.1.0"
    served = {route.path.removeprefix("/api/v1").replace(":path}", "}") for route in api_routes()}
    assert set(described["paths"]) == served - {"/health", "/openapi.json", "/api/{rest}"}
    for path, item in described["paths"].items():
        for operation in item.values():
            inside = {p["name"] for p in operation["parameters"] if p["in"] == "path"}
            assert inside == set(re.findall(r"{(\w+)}", path))
            for parameter in operation["parameters"]:
                Draft202012Validator.check_schema(parameter["schema"])
    tag = {"If-None-Match": answer.headers["etag"]}
    assert client.get("/api/v1/openapi.json", headers=tag).status_code == 304


def test_json_answers_keep_to_their_schemas(client: TestClient, submitted: Callable[..., str]) -> None:
    run_id = submitted()
    query = client.get(f"/api/v1/runs/{run_id}/queries?limit=1").json()["items"][0]["query_id"]
    values = {"benchmark": "demo-tools", "run_id": run_id, "query_id:path": query}
    for read in READS:
        path = re.sub(r"{([\w:]+)}", lambda found: values[found[1]], read.path)
        params = {"benchmark": "demo-tools"} if read.path in {"/leaderboard", "/gains"} else {}
        answer = client.get(f"/api/v1{path}", params=params)
        assert answer.status_code == 200
        Draft202012Validator(dict(read.schema)).validate(answer.json())
        for offered in read.formats:
            assert client.get(f"/api/v1{path}", params={**params, "format": offered.value}).status_code == 200


def test_no_generated_request_gives_a_server_error(
    site: Site, submitted: Callable[..., str], bearer: Callable[..., dict[str, str]]
) -> None:
    run_id = submitted()
    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", Starlette(routes=api_routes()))
    # Generated names of runs and benchmarks would nearly all be unknown: half of the cases get real ones.
    real = {"benchmark": ["demo-tools", "tooleq", "demo-skills@1"], "run_id": [run_id]}
    statuses = [explore(result.ok(), real, bearer()) for result in schema.get_all_operations()]
    assert len(statuses) == len(READS) + 1
    # Else the requests would say nothing about what lies behind the checks of parameters.
    assert sum(200 in found for found in statuses) >= len(READS) - 1
    assert sum(400 in found for found in statuses) >= len(READS) - 1


def explore(operation: Any, real: dict[str, list[str]], header: dict[str, str]) -> set[int]:
    """Send generated requests to one operation; returns the statuses that came back."""
    places = {parameter.name: parameter.location for parameter in operation.iter_parameters()}
    statuses = set()

    modes = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)

    @given(case=st.one_of([operation.as_strategy(generation_mode=mode) for mode in modes]), draw=st.data())
    @settings(
        max_examples=30,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case: schemathesis.Case, draw: Any) -> None:
        if draw.draw(st.booleans()):
            for name, choices in real.items():
                values = {"path": case.path_parameters, "query": case.query}.get(places.get(name, ""))
                if isinstance(values, dict):
                    values[name] = draw.draw(st.sampled_from(choices))
        answer = case.call(headers=header if case.method == "POST" else {})
        statuses.add(answer.status_code)
        case.validate_response(answer, checks=CHOSEN)

    check()
    return statuses
