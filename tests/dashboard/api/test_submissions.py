"""Submission with a token: the same checks and limits as on the page, and nothing stored when it is refused."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator

import pytest
from sqlmodel import select
from starlette.testclient import TestClient

from dashboard.current_site import use_site
from pipeline.jobs.first_start import demo_run
from pipeline.jobs.site import Site, open_site
from store.access import runs, submissions, tokens
from store.models import Run, Submission
from store.token_models import Scope

ADDRESS = "/api/v1/submissions"
SAID = {"benchmark": "demo-tools", "retriever": "Sent by a program"}


def sample() -> bytes:
    return demo_run("tools").read_bytes()


def uploaded_runs(site: Site) -> int:
    with site.database.reading() as session:
        return len(session.scalars(select(Run).where(Run.provenance == "uploaded")).all())


def test_a_body_becomes_a_public_run(client: TestClient, site: Site, bearer: Callable[..., dict[str, str]]) -> None:
    answer = client.post(ADDRESS, params={**SAID, "file_name": "../run.trec"}, content=sample(), headers=bearer())
    assert answer.status_code == 201, answer.text
    body = answer.json()
    assert body["permalink"] == f"https://board.example/run?run={body['run_id']}"
    assert (body["state"], body["visibility"]) == ("published", "public")
    assert body["report"]["verdict"] == "accept"
    stored = client.get(answer.headers["location"]).json()
    assert stored["run"]["retriever"] == "Sent by a program"
    assert stored["scores"]["new"]["NDCG@10"]["macro"] == body["scores"]["new"]["NDCG@10"]["macro"]
    with site.database.reading() as session:
        run = runs.get(session, body["run_id"])
        submission = submissions.of_run(session, run.id)
    assert run.raw_name == "run.trec"
    assert site.artifacts.get_bytes(run.raw_artifact or "") == sample()
    assert submission is not None
    assert submission.person == "local"


def test_a_form_becomes_a_private_run(
    client: TestClient, site: Site, bearer: Callable[..., dict[str, str]], private_token: Callable[[str], str]
) -> None:
    fields = {**SAID, "private": "true", "contact": "me@example.org", "link": "https://example.org"}
    files = {"file": ("run.trec.gz", gzip.compress(sample()))}
    answer = client.post(ADDRESS, data=fields, files=files, headers=bearer(Scope.SUBMIT))
    assert answer.status_code == 201, answer.text
    body = answer.json()
    assert body["visibility"] == "private"
    assert body["permalink"].endswith(f"&token={private_token(body['run_id'])}")
    assert client.get(f"/api/v1/runs/{body['run_id']}").status_code == 404
    shown = client.get(answer.headers["location"])
    assert shown.status_code == 200
    assert "me@example.org" not in shown.text + answer.text
    with site.database.reading() as session:
        submission = submissions.of_run(session, body["run_id"])
    assert submission is not None
    assert submission.contact == "me@example.org"


def test_a_refused_file_gives_its_report_and_stores_nothing(
    client: TestClient, site: Site, bearer: Callable[..., dict[str, str]]
) -> None:
    answer = client.post(ADDRESS, params=SAID, content=sample() + b"q Q0 t one 0.5 tag\n", headers=bearer())
    assert answer.status_code == 422
    body = answer.json()
    assert body["report"]["verdict"] == "refuse"
    assert body["report"]["problems"][0]["line"] == sample().count(b"\n") + 1
    assert "nothing is stored" in body["detail"]
    assert uploaded_runs(site) == 0
    with site.database.reading() as session:
        assert session.scalars(select(Submission)).all() == []


def test_who_asks_is_settled_before_the_file_is_read(
    client: TestClient, site: Site, bearer: Callable[..., dict[str, str]]
) -> None:
    read = []

    def body() -> Iterator[bytes]:
        read.append(True)
        yield sample()

    secret = bearer()["Authorization"]
    for header in ("", "Bearer", "Bearer ", "Basic abc", "Bearer equirank_wrong", secret + "x", secret.upper()):
        read.clear()
        answer = client.post(ADDRESS, params=SAID, content=body(), headers={"Authorization": header} if header else {})
        assert answer.status_code == 401
        assert read == []
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert secret.removeprefix("Bearer ") not in answer.text
    with site.database.session() as session:
        tokens.revoke(session, tokens.list_tokens(session)[0].id)
    revoked = client.post(ADDRESS, params=SAID, content=sample(), headers={"Authorization": secret})
    assert revoked.status_code == 401
    assert uploaded_runs(site) == 0


def test_a_token_that_may_not_publish(client: TestClient, site: Site, bearer: Callable[..., dict[str, str]]) -> None:
    header = bearer(Scope.SUBMIT)
    answer = client.post(ADDRESS, params=SAID, content=sample(), headers=header)
    assert answer.status_code == 403
    assert "private=true" in answer.json()["detail"]
    assert uploaded_runs(site) == 0
    assert client.post(ADDRESS, params={**SAID, "private": "true"}, content=sample(), headers=header).status_code == 201


@pytest.fixture
def small_site(site: Site) -> Iterator[Site]:
    """The same site with an upload limit of 1 MiB and two submissions a day."""
    settings = site.settings.model_copy(update={"limit_upload_mb": 1, "limit_submissions_per_day": 2})
    opened = open_site(settings)
    use_site(opened)
    yield opened
    use_site(site)
    opened.database.close()


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("form", [False, True])
def test_over_the_limit_is_413_and_stores_nothing(
    client: TestClient, small_site: Site, bearer: Callable[..., dict[str, str]], streamed: bool, form: bool
) -> None:
    large = b"# " + b"x" * ((1 << 20) + (300 << 10)) + b"\n" + sample()
    header = bearer()
    if form:
        boundary = b'--b\r\nContent-Disposition: form-data; name="file"; filename="r"\r\n\r\n'
        large = boundary + large + b"\r\n--b--\r\n"
        header["Content-Type"] = "multipart/form-data; boundary=b"
    content = iter([large[i : i + 65536] for i in range(0, len(large), 65536)]) if streamed else large
    answer = client.post(ADDRESS, params=SAID, content=content, headers=header)
    assert answer.status_code == 413
    assert "1 MiB" in answer.json()["detail"]
    assert uploaded_runs(small_site) == 0


def test_a_decompression_bomb_is_refused(
    client: TestClient, small_site: Site, bearer: Callable[..., dict[str, str]]
) -> None:
    bomb = gzip.compress(b"q1 Q0 t1 1 0.5 tag\n" * 4_000_000)
    assert len(bomb) < 1 << 20
    answer = client.post(ADDRESS, params=SAID, content=bomb, headers=bearer())
    assert answer.status_code == 422
    assert answer.json()["report"]["verdict"] == "refuse"


def test_the_daily_limit_is_429(client: TestClient, small_site: Site, bearer: Callable[..., dict[str, str]]) -> None:
    header = bearer()
    for _ in range(2):
        assert client.post(ADDRESS, params=SAID, content=sample(), headers=header).status_code == 201
    answer = client.post(ADDRESS, params=SAID, content=sample(), headers=header)
    assert answer.status_code == 429
    assert "limit is 2" in answer.json()["detail"]
    assert uploaded_runs(small_site) == 2


@pytest.mark.parametrize(
    ("params", "status", "words"),
    [
        ({"retriever": "x"}, 400, "benchmark"),
        ({"benchmark": "demo-tools"}, 400, "retriever"),
        (SAID | {"retreiver": "y"}, 400, "retreiver"),
        (SAID | {"retriever": "a" * 201}, 400, "retriever"),
        (SAID | {"retriever": "a\u200bb"}, 400, "invisible"),
        (SAID | {"retriever": "a\x00b"}, 400, "retriever"),
        (SAID | {"level": "deep"}, 400, "level"),
        (SAID | {"order": "best"}, 400, "order"),
        (SAID | {"private": "perhaps"}, 400, "private"),
        (SAID | {"benchmark": "nothing"}, 404, "demo-tools@1"),
        (SAID | {"benchmark": "tooleq"}, 422, "figures"),
        (SAID | {"benchmark": "/etc"}, 404, "not the name"),
    ],
)
def test_wrong_words_are_named(
    client: TestClient,
    site: Site,
    bearer: Callable[..., dict[str, str]],
    params: dict[str, str],
    status: int,
    words: str,
) -> None:
    answer = client.post(ADDRESS, params=params, content=sample(), headers=bearer())
    assert answer.status_code == status, answer.text
    assert words in answer.text
    assert uploaded_runs(site) == 0


@pytest.mark.parametrize(
    ("headers", "content", "status"),
    [
        ({}, b"", 422),
        ({"Content-Type": "application/x-www-form-urlencoded"}, b"file=x", 415),
        ({"Content-Type": "multipart/form-data"}, b"x", 400),
        ({"Content-Type": "multipart/form-data; boundary=b"}, b"--c\r\n", 400),
        ({"Content-Type": "multipart/form-data; boundary=b"}, b"--b--\r\n", 422),
        (
            {"Content-Type": "multipart/form-data; boundary=b"},
            b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nx\r\n--b--\r\n',
            422,
        ),
        (
            {"Content-Type": "multipart/form-data; boundary=b"},
            b'--b\r\nContent-Disposition: form-data; name="file"; filename="r"\r\n\r\n\r\n--b--\r\n',
            422,
        ),
        (
            {"Content-Type": "multipart/form-data; boundary=b"},
            b'--b\r\nContent-Disposition: form-data; name="link"\r\n\r\n' + b"x" * 9000 + b"\r\n--b--\r\n",
            400,
        ),
        ({"Content-Type": "multipart/form-data; boundary=b", "Content-Length": "-1"}, b"--b--\r\n", 422),
    ],
)
def test_bodies_that_hold_no_file(
    client: TestClient,
    site: Site,
    bearer: Callable[..., dict[str, str]],
    headers: dict[str, str],
    content: bytes,
    status: int,
) -> None:
    answer = client.post(ADDRESS, params=SAID, content=content, headers={**bearer(), **headers})
    assert answer.status_code == status, answer.text
    assert uploaded_runs(site) == 0


def test_only_post(client: TestClient) -> None:
    for method in ("GET", "PUT", "DELETE", "OPTIONS", "HEAD"):
        answer = client.request(method, ADDRESS)
        assert answer.status_code == 405
        assert answer.headers["allow"] == "POST"


def test_every_submission_notes_the_tokens_use(
    client: TestClient, site: Site, bearer: Callable[..., dict[str, str]]
) -> None:
    client.post(ADDRESS, params=SAID, content=sample(), headers=bearer())
    with site.database.reading() as session:
        assert tokens.list_tokens(session)[0].last_used_at is not None
