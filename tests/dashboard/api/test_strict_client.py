"""A client that takes HTTP at its word: every read, every format, packed and plain; and addresses without reads."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

from dashboard.api.routes import READS

BASE = "/api/v1"


def test_every_read_is_validated_by_a_strong_etag(client: TestClient, submitted: Callable[..., str]) -> None:
    run_id = submitted()
    query = client.get(f"{BASE}/runs/{run_id}/queries?limit=1").json()["items"][0]["query_id"]
    seen: dict[str, str] = {}
    for read in READS:
        path = BASE + read.path.replace("{run_id}", run_id).replace("{benchmark}", "demo-tools")
        path = path.replace("{query_id:path}", query)
        needs = "benchmark" in read.parameters.model_fields and "{benchmark}" not in read.path
        for offered in read.formats:
            params = {"format": offered.value} | ({"benchmark": "demo-tools"} if needs else {})
            plain = client.get(path, params=params, headers={"Accept-Encoding": "identity"})
            packed = client.get(path, params=params, headers={"Accept-Encoding": "gzip"})
            assert plain.status_code == packed.status_code == 200, path
            assert packed.content == plain.content and packed.headers["content-encoding"] == "gzip"
            for answer, encoding in ((plain, "identity"), (packed, "gzip")):
                tag = answer.headers["etag"]
                assert tag.startswith('"') and tag.endswith('"')
                # One tag, one sequence of bytes.
                where = f"{path} {offered} {encoding}"
                assert seen.setdefault(tag, where) == where
                assert {"Accept", "Accept-Encoding"} <= {part.strip() for part in answer.headers["vary"].split(",")}
                for said in (tag, f"W/{tag}", f'"other", {tag}', "*"):
                    again = client.get(
                        path, params=params, headers={"Accept-Encoding": encoding, "If-None-Match": said}
                    )
                    assert again.status_code == 304 and again.content == b"" and again.headers["etag"] == tag
                    assert "content-length" not in again.headers or again.headers["content-length"] == "0"
                head = client.head(path, params=params, headers={"Accept-Encoding": encoding})
                assert head.status_code == 200 and head.content == b"" and head.headers["etag"] == tag
                assert head.headers["content-length"] == answer.headers["content-length"]
                assert client.get(
                    path, params=params, headers={"Accept-Encoding": encoding, "If-None-Match": '"old"'}
                ).content == answer.content  # fmt: skip


def test_a_change_of_the_board_changes_its_tag(client: TestClient, submitted: Callable[..., str]) -> None:
    addresses = [f"{BASE}/leaderboard?benchmark=demo-tools", f"{BASE}/benchmarks"]
    before = {address: client.get(address).headers["etag"] for address in addresses}
    submitted("Another")
    for address, tag in before.items():
        answer = client.get(address, headers={"If-None-Match": tag})
        assert answer.status_code == 200 and answer.headers["etag"] != tag


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"])
@pytest.mark.parametrize("path", ["/health", "/benchmarks", "/gains", "/nothing", "/submissions"])
def test_every_method_on_every_address_gets_a_problem_document(client: TestClient, method: str, path: str) -> None:
    answer = client.request(method, BASE + path)
    expected = {404} if path == "/nothing" else {401} if (path, method) == ("/submissions", "POST") else {405}
    assert answer.status_code in expected
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == answer.status_code
    if answer.status_code == 405:
        assert answer.headers["allow"]


def test_health_answers_get_and_head(client: TestClient) -> None:
    whole, head = client.get(f"{BASE}/health"), client.head(f"{BASE}/health")
    assert whole.json()["status"] == "ok"
    assert head.status_code == 200 and head.content == b""
    assert head.headers["content-length"] == whole.headers["content-length"]


def test_a_packed_answer_is_the_plain_one(client: TestClient) -> None:
    with client.stream("GET", f"{BASE}/benchmarks", headers={"Accept-Encoding": "gzip"}) as packed:
        raw = b"".join(packed.iter_raw())
    assert gzip.decompress(raw) == client.get(f"{BASE}/benchmarks", headers={"Accept-Encoding": "identity"}).content
