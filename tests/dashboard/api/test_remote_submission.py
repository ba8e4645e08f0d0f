"""``equirank submit --server`` against a real server on loopback."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from typer.testing import CliRunner

from dashboard.api.routes import api_routes
from dashboard.current_site import use_site
from pipeline.cli import app
from pipeline.commands.remote_submission import is_in_clear, submissions_address, submit_remotely
from pipeline.errors import EnvironmentProblem, EquiRankError, RunFileError, UsageError
from pipeline.jobs.first_start import demo_run
from pipeline.jobs.site import Site, open_site
from store.access import runs
from store.token_models import Scope

FIELDS = {"benchmark": "demo-tools", "retriever": "From afar", "part": ""}


@pytest.fixture
def server(site: Site) -> Iterator[str]:
    """The API on a free port."""
    use_site(open_site(site.settings.model_copy(update={"limit_upload_mb": 1})))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        config = uvicorn.Config(Starlette(routes=api_routes()), log_level="error", lifespan="off")
        running = uvicorn.Server(config)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [taken]}, daemon=True)
        thread.start()
        deadline = time.monotonic() + 20
        while not running.started and time.monotonic() < deadline:
            time.sleep(0.02)
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
        running.should_exit = True
        thread.join(20)


@pytest.fixture
def secret(bearer: Callable[..., dict[str, str]]) -> str:
    return bearer()["Authorization"].removeprefix("Bearer ")


def command(*arguments: str, token: str = "") -> tuple[int, str, str]:
    """Run the command line in this process."""
    done = CliRunner().invoke(app, ["submit", *arguments], env={"EQUIRANK_TOKEN": token or None})
    if isinstance(done.exception, EquiRankError):
        return done.exception.exit_code, done.stdout, str(done.exception)
    return done.exit_code, done.stdout, done.stderr


def test_a_run_is_stored_on_the_other_site(site: Site, server: str, secret: str) -> None:
    said = ["--benchmark", "demo-tools", "--retriever", "From afar", "--server", server + "/", "--format", "json"]
    code, out, err = command(str(demo_run("tools")), *said, "--private", token=secret)
    assert code == 0, err
    body = json.loads(out)
    with site.database.reading() as session:
        run = runs.get(session, body["run_id"])
    assert run.visibility == "private"
    assert body["permalink"] == f"https://board.example/run?run={run.id}&token={run.private_token}"
    assert run.raw_name == demo_run("tools").name
    assert secret not in out + err


def test_a_refusal_reads_as_it_does_here(server: str, secret: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.trec"
    bad.write_bytes(demo_run("tools").read_bytes() + b"x Q0 y 1 nan tag\n")
    said = [str(bad), "--benchmark", "demo-tools", "--retriever", "x"]
    far = command(*said, "--server", server, token=secret)
    near = command(*said)
    assert far[0] == near[0] == 1
    assert far[1] == near[1]
    assert "line " in far[1]


def test_progress_ends_at_the_end(server: str, secret: str) -> None:
    seen: list[float] = []
    submit_remotely(server, secret, demo_run("tools"), FIELDS, progress=seen.append)
    assert seen[-1] == 1.0
    assert seen == sorted(seen)


@pytest.mark.parametrize("size", [3 << 20, 40 << 20])
def test_over_the_limit_is_said_though_the_file_is_still_on_its_way(
    server: str, secret: str, tmp_path: Path, size: int
) -> None:
    large = tmp_path / "large.trec"
    large.write_bytes(b"#" * size)
    with pytest.raises(RunFileError, match="larger than 1 MiB"):
        submit_remotely(server, secret, large, FIELDS)


def test_a_token_that_does_not_open_is_said_before_the_file_is_sent(server: str, tmp_path: Path) -> None:
    large = tmp_path / "large.trec"
    large.write_bytes(b"#" * (40 << 20))
    with pytest.raises(EnvironmentProblem, match="does not open the API"):
        submit_remotely(server, "equirank_wrong", large, FIELDS)


def test_what_else_can_be_wrong(
    server: str, secret: str, bearer: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    sample = demo_run("tools")
    with pytest.raises(RunFileError, match="no benchmark nothing"):
        submit_remotely(server, secret, sample, FIELDS | {"benchmark": "nothing"})
    with pytest.raises(UsageError, match="level"):
        submit_remotely(server, secret, sample, FIELDS | {"level": "deep"})
    modest = bearer(Scope.SUBMIT)["Authorization"].removeprefix("Bearer ")
    with pytest.raises(EnvironmentProblem, match="private"):
        submit_remotely(server, modest, sample, FIELDS)
    with pytest.raises(RunFileError, match="does not exist"):
        submit_remotely(server, secret, tmp_path / "none", FIELDS)
    with pytest.raises(RunFileError, match="is a folder"):
        submit_remotely(server, secret, tmp_path, FIELDS)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(EnvironmentProblem, match="cannot be reached"):
            submit_remotely(f"http://127.0.0.1:{closed.getsockname()[1]}", secret, sample, FIELDS)
    code, _, err = command(str(sample), "--benchmark", "b", "--retriever", "r", "--server", server)
    assert (code, "EQUIRANK_TOKEN is not set" in err) == (3, True)


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (httpx.Response(200, html="<title>A site</title>"), EnvironmentProblem, "not as an EquiRank site"),
        (httpx.Response(302, headers={"Location": "https://else.example"}), UsageError, "else.example"),
        (httpx.Response(201, json=[]), EnvironmentProblem, "answered 201"),
        (httpx.Response(502, text="Bad gateway"), EnvironmentProblem, "answered 502"),
        (httpx.Response(429, json={"detail": "enough for today"}), EnvironmentProblem, "enough for today"),
    ],
)
def test_other_answers(answer: httpx.Response, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        submit_remotely(
            "https://board.example", "t", demo_run("tools"), FIELDS, transport=httpx.MockTransport(lambda _: answer)
        )


def test_addresses() -> None:
    for given in ("https://a.example", "https://a.example/", "https://a.example/api/v1"):
        assert submissions_address(given) == "https://a.example/api/v1/submissions"
    assert submissions_address("http://a.example/board") == "http://a.example/board/api/v1/submissions"
    for wrong in (
        "a.example",
        "ftp://a.example",
        "https://",
        "https://a:b@c.example",
        "https://a.example?x",
        "http://[",
        "",
    ):
        with pytest.raises(UsageError, match="--server"):
            submissions_address(wrong)
    assert is_in_clear("http://board.example")
    assert not is_in_clear("https://board.example")
    assert not is_in_clear("http://localhost:8501")
