"""Health, headers and configuration of the running application."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from dashboard.api.health import Health
from dashboard.current_site import use_site
from dashboard.headers import SecurityHeaders, content_security_policy, inline_script_hashes
from pipeline.jobs.site import Site, open_site
from store.access import workers
from store.settings import Settings

REPOSITORY = Path(__file__).resolve().parents[2]


def client(frame_ancestors: str = "'self'") -> TestClient:
    """Our routes and headers, without the pages."""

    async def fine(request: object) -> PlainTextResponse:
        return PlainTextResponse("fine")

    app = Starlette(
        routes=[Route("/api/v1/health", Health()), Route("/", fine)],
        middleware=[Middleware(SecurityHeaders, frame_ancestors=frame_ancestors)],
    )
    return TestClient(app)


def test_health_names_the_migration_level(bare_site: Site) -> None:
    answer = client().get("/api/v1/health")
    assert answer.status_code == 200
    body = answer.json()
    assert body["status"] == "ok"
    assert body["database"]["level"] == body["database"]["needed"]


def test_health_counts_workers_and_names_no_machine(bare_site: Site) -> None:
    with bare_site.database.session() as session:
        workers.beat(session, "cellar-7-ab12", host="cellar", pid=7, queues=("cpu",), device="cpu")
    answer = client().get("/api/v1/health")
    (worker,) = answer.json()["workers"]
    assert (worker["queues"], worker["device"], worker["alive"]) == (["cpu"], "cpu", True)
    assert "cellar" not in answer.text


def test_health_is_503_without_tables(tmp_path: Path) -> None:
    use_site(open_site(Settings(home=tmp_path)))
    try:
        answer = client().get("/api/v1/health")
    finally:
        use_site(None)
    assert answer.status_code == 503
    assert answer.json()["database"]["level"] is None
    assert "equirank" in answer.json()["database"]["problem"]


def test_health_is_503_when_the_database_is_away_and_tells_no_password() -> None:
    use_site(open_site(Settings(database_url="postgresql://someone:hidden-word@127.0.0.1:9/none")))
    try:
        answer = client().get("/api/v1/health")
    finally:
        use_site(None)
    assert answer.status_code == 503
    assert answer.json()["database"]["reachable"] is False
    assert "hidden-word" not in answer.text


@pytest.mark.parametrize("path", ["/", "/nothing-here"])
def test_every_answer_carries_the_headers(path: str) -> None:
    headers = client().get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "strict-origin-when-cross-origin"
    assert "frame-ancestors 'self'" in headers["content-security-policy"]
    assert headers["x-frame-options"] == "SAMEORIGIN"


def test_frame_ancestors_are_a_setting() -> None:
    headers = client("https://portal.example").get("/").headers
    assert "frame-ancestors https://portal.example" in headers["content-security-policy"]
    assert "x-frame-options" not in headers


def test_no_inline_script_but_streamlits_own() -> None:
    policy = dict(part.split(" ", 1) for part in content_security_policy("'none'").split("; "))
    assert "'unsafe-inline'" not in policy["script-src"]
    assert "'unsafe-eval'" not in policy["script-src"]
    assert inline_script_hashes()
    assert all(digest in policy["script-src"] for digest in inline_script_hashes())


def test_the_configuration_that_protects_readers() -> None:
    config = tomllib.loads((REPOSITORY / "dashboard" / ".streamlit" / "config.toml").read_text())
    assert config["client"]["showErrorDetails"] == "none"
    assert config["client"]["toolbarMode"] == "viewer"
    assert config["client"]["disableDataExport"] is True
    assert config["server"]["enableXsrfProtection"] is True
    assert config["server"]["fileWatcherType"] == "none"
    assert config["browser"]["gatherUsageStats"] is False


def test_the_application_reads_its_configuration_from_any_folder(tmp_path: Path) -> None:
    script = (
        "import dashboard.asgi; from streamlit import config; "
        "print(config.get_option('client.toolbarMode'), config.get_option('server.maxUploadSize'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=os.environ | {"EQUIRANK_HOME": str(tmp_path / "home"), "EQUIRANK_LIMIT_UPLOAD_MB": "77",
                          "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )  # fmt: skip
    assert done.stdout.split() == ["viewer", "77"]


def test_serve_refuses_a_taken_port_before_it_prepares_anything(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [sys.executable, "-m", "pipeline.cli", "serve", "--port", port],
            env=os.environ | {"EQUIRANK_HOME": str(tmp_path / "home")}, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 3 and f"127.0.0.1:{port}" in done.stderr and "--port" in done.stderr
    assert "starting" not in done.stderr and not (tmp_path / "home").exists()
