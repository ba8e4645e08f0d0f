"""Every read: formats, paging, ETags, privacy and hostile requests."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable
from urllib.parse import urljoin

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from starlette.testclient import TestClient

from pipeline.jobs import statistics
from pipeline.jobs.site import Site
from store.access import benchmarks, leaderboard, runs

BASE = "/api/v1"
PARQUET = "application/vnd.apache.parquet"


def strict(text: str) -> object:
    """JSON without the numbers that JSON does not have."""

    def refuse(name: str) -> object:
        raise AssertionError(f"{name} in JSON")

    return json.loads(text, parse_constant=refuse)


def parquet(content: bytes) -> pl.DataFrame:
    return pl.read_parquet(io.BytesIO(content))


def test_benchmarks_are_listed_with_their_counts(client: TestClient) -> None:
    answer = client.get(f"{BASE}/benchmarks")
    assert answer.status_code == 200
    body = answer.json()
    assert body["total"] == len(body["items"]) == int(answer.headers["x-total-count"])
    named = {item["name"]: item for item in body["items"]}
    assert named["demo-tools@1"]["queries"] > 0
    tooleq = next(item for item in body["items"] if item["slug"] == "tooleq")
    assert tooleq["content_hash"] is None
    assert tooleq["reported_runs"] == tooleq["runs"] > 0


def test_one_benchmark_by_name_and_as_bibtex(client: TestClient) -> None:
    body = client.get(f"{BASE}/benchmarks/demo-tools").json()
    assert body == client.get(f"{BASE}/benchmarks/demo-tools@1").json()
    assert (body["slug"], body["version"]) == ("demo-tools", "1")
    assert re.fullmatch("[0-9a-f]{64}", body["hash"])
    cited = client.get(f"{BASE}/benchmarks/demo-tools", headers={"Accept": "application/x-bibtex"})
    assert cited.headers["content-type"].startswith("application/x-bibtex")
    assert body["hash"] in cited.text
    assert cited.text.count("{") == cited.text.count("}")
    paper = client.get(f"{BASE}/benchmarks/tooleq?format=bibtex").text
    assert paper.count("@misc{") == 2
    missing = client.get(f"{BASE}/benchmarks/nothing")
    assert missing.status_code == 404
    assert missing.headers["content-type"] == "application/problem+json"
    assert "demo-tools@1" in missing.json()["detail"]


def test_the_leaderboard_is_that_of_the_store(client: TestClient, site: Site, submitted: Callable[..., str]) -> None:
    run_id = submitted("Sample", publish=True)
    with site.database.reading() as session:
        version = benchmarks.get(session, "demo-tools")
        board = leaderboard.leaderboard(session, version.id, metric="Recall", k=5)
    body = client.get(f"{BASE}/leaderboard?benchmark=demo-tools&metric=Recall&k=5").json()
    assert body["benchmark"] == {"slug": "demo-tools", "version": "1", "hash": version.content_hash}
    assert body["figure"] == {"metric": "Recall", "k": 5, "average": version.headline, "domain": None}
    assert [item["run_id"] for item in body["items"]] == board["run_id"].to_list() == [run_id]
    assert body["items"][0]["new"] == board["new"][0]
    whole = client.get(f"{BASE}/leaderboard?benchmark=demo-tools&metric=Recall&k=5", headers={"Accept": PARQUET})
    assert_frame_equal(parquet(whole.content).select("run_id", "old", "new"), board.select("run_id", "old", "new"))
    domain = version.domains[0].name
    one = client.get(f"{BASE}/leaderboard", params={"benchmark": "demo-tools", "domain": domain}).json()
    assert one["figure"]["average"] == "domain"
    assert one["items"][0]["n"] == version.domains[0].n


def test_filters_narrow_and_never_move_a_rank(client: TestClient) -> None:
    every = client.get(f"{BASE}/leaderboard?benchmark=tooleq").json()
    ranks = {item["run_id"]: item["rank"] for item in every["items"]}
    some = client.get(f"{BASE}/leaderboard?benchmark=tooleq&training=fine-tuned&sort=lift").json()
    assert 0 < some["total"] < every["total"]
    assert all(item["fine_tuned"] for item in some["items"])
    assert all(ranks[item["run_id"]] == item["rank"] for item in some["items"])
    lifts = [item["lift"] for item in some["items"] if item["lift"] is not None]
    assert lifts == sorted(lifts, reverse=True)


def test_pages_lead_to_each_other_and_hold_every_row_once(client: TestClient) -> None:
    whole = client.get(f"{BASE}/leaderboard?benchmark=tooleq&limit=10000").json()["items"]
    address: str | None = f"{BASE}/leaderboard?benchmark=tooleq&limit=4&view=old&family=&search=".replace(
        "&family=", ""
    )
    seen = []
    while address:
        answer = client.get(address)
        assert answer.status_code == 200
        seen += [item["run_id"] for item in answer.json()["items"]]
        links = dict(re.findall(r'<([^>]*)>; rel="(\w+)"', answer.headers["link"]))
        following = [target for target, name in links.items() if name == "next"]
        address = urljoin(address, following[0]) if following else None
    assert len(seen) == len(set(seen)) == len(whole)
    beyond = client.get(f"{BASE}/leaderboard?benchmark=tooleq&offset=1000000").json()
    assert beyond["items"] == []
    assert beyond["total"] == len(whole)


def test_a_strict_client_reads_the_board_with_304s(client: TestClient, submitted: Callable[..., str]) -> None:
    submitted("First")
    address = f"{BASE}/leaderboard?benchmark=demo-tools"
    first = client.get(address)
    tag = first.headers["etag"]
    assert re.fullmatch(r'"[!#-~]+"', tag), "a strong validator"
    again = client.get(address, headers={"If-None-Match": f'"other", {tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert client.get(address, headers={"If-None-Match": "*"}).status_code == 304
    assert client.get(address, headers={"If-None-Match": '"other"'}).content == first.content
    tags = {client.get(address, headers={"Accept": kind}).headers["etag"] for kind in ("text/csv", PARQUET, "*/*")}
    assert len(tags) == 3
    plain = client.get(address, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.headers["etag"] != tag, "other bytes, another ETag"
    assert plain.json() == first.json()
    submitted("Second")
    changed = client.get(address, headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag
    assert changed.json()["total"] == 2
    head = client.head(address)
    assert head.status_code == 200
    assert head.content == b""
    assert head.headers["etag"] == changed.headers["etag"]


def test_csv_is_neutralised_and_unknown_is_null(client: TestClient, submitted: Callable[..., str]) -> None:
    submitted('=HYPERLINK("https://evil.example")')
    answer = client.get(f"{BASE}/leaderboard?benchmark=demo-tools&format=csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"].startswith('attachment; filename="equirank-demo-tools')
    row = pl.read_csv(io.BytesIO(answer.content), infer_schema=False).row(0, named=True)
    assert row["retriever"].startswith("'=")
    assert row["parameters"] is None
    body = client.get(f"{BASE}/leaderboard?benchmark=demo-tools&metric=NDCG&k=999")
    item = strict(body.text)["items"][0]  # type: ignore[index]
    assert item["old"] is item["new"] is None


def test_a_run_with_its_figures_card_and_citation(
    client: TestClient, site: Site, submitted: Callable[..., str]
) -> None:
    run_id = submitted("Größe 100 %")
    body = strict(client.get(f"{BASE}/runs/{run_id}").text)
    assert isinstance(body, dict)
    with site.database.reading() as session:
        stored = runs.summaries(session, run_id)
        run = runs.get(session, run_id)
    assert len(body["figures"]) == stored.height
    assert body["run"]["retriever"] == "Größe 100 %"
    assert body["run"]["ranking_hash"] == run.ranking_hash
    assert "file" not in body["run"]
    macro = stored.filter(metric="NDCG", k=10, average="macro", view="new")["value"][0]
    assert body["scores"]["new"]["NDCG@10"]["macro"] == macro
    assert_frame_equal(
        parquet(client.get(f"{BASE}/runs/{run_id}?format=parquet").content).select("value"), stored.select("value")
    )
    card = client.get(f"{BASE}/runs/{run_id}/card").json()
    assert card["hashes"]["run_file"] == run.raw_artifact
    assert card["versions"]["scorer"] == run.scorer_version
    assert card["reproduce"]["command"].startswith("equirank score RUN_FILE --benchmark demo-tools@1")
    text = client.get(f"{BASE}/runs/{run_id}/card", headers={"Accept": "text/plain"}).text
    assert run.ranking_hash in text
    bibtex = client.get(f"{BASE}/runs/{run_id}?format=bibtex").text
    assert r"100 \%" in bibtex
    assert run_id in bibtex


def test_statistics_are_on_the_board_and_the_run_once_they_are_made(
    client: TestClient, site: Site, submitted: Callable[..., str]
) -> None:
    run_ids = [submitted("First"), submitted("Second")]
    address = f"{BASE}/leaderboard?benchmark=demo-tools"
    before = client.get(address).json()["items"][0]
    assert before["new_low"] is before["tie_group"] is before["control"] is None
    assert client.get(f"{BASE}/runs/{run_ids[0]}").json()["readings"] is None
    assert statistics.compute(site, statistics.pending(site), lambda line: None) == []
    for item in client.get(address).json()["items"]:
        assert item["new_low"] <= item["new"] <= item["new_high"]
        assert item["tie_group"] == item["tie_new"] == 1, "equal rankings cannot be told apart"
        assert 0 <= item["judged"] <= 1
    run = client.get(f"{BASE}/runs/{run_ids[0]}").json()
    assert {"max", "mean", "union"} <= {row["reading"] for row in run["readings"]}
    assert any(row["control"] is not None for row in run["lifts"])


def test_a_reported_run_says_that_nothing_lies_behind_it(client: TestClient) -> None:
    run_id = client.get(f"{BASE}/leaderboard?benchmark=tooleq&limit=1").json()["items"][0]["run_id"]
    assert client.get(f"{BASE}/runs/{run_id}").status_code == 200
    assert client.get(f"{BASE}/runs/{run_id}/card").json()["reproduce"]["command"] is None
    queries = client.get(f"{BASE}/runs/{run_id}/queries")
    assert queries.status_code == 404
    assert "printed" in queries.json()["detail"]


def test_scores_by_query_are_those_stored(client: TestClient, site: Site, submitted: Callable[..., str]) -> None:
    run_id = submitted()
    with site.database.reading() as session:
        digest = runs.get(session, run_id).per_query_artifact
    stored = site.artifacts.get_frame(digest or "")
    body = strict(client.get(f"{BASE}/runs/{run_id}/queries?limit=7&offset=3").text)
    assert isinstance(body, dict)
    assert body["total"] == stored.height
    assert [item["query_id"] for item in body["items"]] == stored["query_id"].to_list()[3:10]
    assert [item["new_NDCG@10"] for item in body["items"]] == stored["new_NDCG@10"].to_list()[3:10]
    frame = parquet(client.get(f"{BASE}/runs/{run_id}/queries?limit=10000&k=5&format=parquet").content)
    assert_frame_equal(frame.select("old_Comp@5"), stored.select("old_Comp@5"))
    assert not [name for name in frame.columns if "@" in name and "@5" not in name]
    assert client.get(f"{BASE}/runs/{run_id}/queries?k=7").status_code == 404
    csv = client.get(f"{BASE}/runs/{run_id}/queries?format=csv&limit=2").text
    assert csv.count("\n") == 3


def test_a_query_card_says_where_a_run_ranks_each_answer(
    client: TestClient, site: Site, submitted: Callable[..., str]
) -> None:
    run_id = submitted()
    query = client.get(f"{BASE}/runs/{run_id}/queries?limit=1").json()["items"][0]["query_id"]
    body = strict(client.get(f"{BASE}/queries/demo-tools/{query}?run={run_id}&k=5").text)
    assert isinstance(body, dict)
    assert body["query_id"] == query
    assert body["ground_truth"]
    assert {row["run"] for row in body["ranks"]} == {run_id}
    assert all(row["rank"] is None or row["rank"] >= 1 for row in body["ranks"])
    assert client.get(f"{BASE}/queries/demo-tools/nothing").status_code == 404
    assert client.get(f"{BASE}/queries/tooleq/{query}").status_code == 404
    assert client.get(f"{BASE}/queries/demo-skills/{query}?run={run_id}").status_code == 404
    refused = client.get(f"{BASE}/queries/demo-tools/{query}?format=csv")
    assert refused.status_code == 406


def test_a_private_run_is_nowhere_but_behind_its_token(
    client: TestClient, submitted: Callable[..., str], private_token: Callable[[str], str]
) -> None:
    public = submitted("Shown")
    run_id = submitted("Hidden name", publish=False)
    token = private_token(run_id)
    query = client.get(f"{BASE}/runs/{public}/queries?limit=1").json()["items"][0]["query_id"]
    for address in (
        "/benchmarks",
        "/benchmarks/demo-tools",
        "/leaderboard?benchmark=demo-tools",
        "/leaderboard?benchmark=demo-tools&format=html",
        "/leaderboard?benchmark=demo-tools&format=latex",
        f"/leaderboard?benchmark=demo-tools&search={run_id}",
        f"/runs/{public}",
        f"/queries/demo-tools/{query}?run={public}",
    ):
        text = client.get(BASE + address).text
        assert "Hidden name" not in text
        assert token not in text
        if "search" not in address:
            assert run_id not in text
    places = [f"/runs/{run_id}", f"/runs/{run_id}/card", f"/runs/{run_id}/queries"]
    for place in [*places, f"/queries/demo-tools/{query}?run={run_id}"]:
        joined = "&" if "?" in place else "?"
        unknown = client.get(BASE + place.replace(run_id, "n" * len(run_id)))
        for said in ("", f"{joined}token=wrong", f"{joined}token={token[:-1]}", f"{joined}token=%C3%A9"):
            hidden = client.get(BASE + place + said)
            assert hidden.status_code == 404
            assert hidden.json()["detail"].replace(run_id, "") == unknown.json()["detail"].replace(
                "n" * len(run_id), ""
            )
        opened = client.get(f"{BASE}{place}{joined}token={token}")
        assert opened.status_code == 200
        assert opened.headers["cache-control"].startswith("private")
        assert token not in opened.text
        # Kept answers are not given to whoever asks next.
        assert client.get(BASE + place).status_code == 404
        etag = {"If-None-Match": opened.headers["etag"]}
        assert client.get(BASE + place, headers=etag).status_code == 404


def test_reports_are_self_contained_and_escaped(client: TestClient, submitted: Callable[..., str]) -> None:
    submitted("<script>alert(1)</script> & <b>")
    answer = client.get(f"{BASE}/leaderboard?benchmark=demo-tools&format=html")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "<script" not in answer.text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &lt;b&gt;" in answer.text
    assert not re.search(r"(\ssrc=|@import|url\()", answer.text)
    body = client.get(f"{BASE}/leaderboard?benchmark=demo-tools").json()["items"][0]
    assert f'<td class="n">{100 * body["new"]:.1f}</td>' in answer.text
    assert client.get(f"{BASE}/benchmarks/demo-tools").json()["hash"] in answer.text


def test_the_paper_table_is_latex(client: TestClient) -> None:
    text = client.get(f"{BASE}/leaderboard?benchmark=tooleq&format=latex").text
    assert text.count("\\toprule") == text.count("\\bottomrule") == 1
    assert " / " in text
    rows = [line for line in text.splitlines() if line.endswith("\\\\")]
    assert len({line.count(" & ") for line in rows[1:]}) == 1
    # The same filters as for rows.
    one = client.get(f"{BASE}/leaderboard?benchmark=tooleq&format=latex&search=bm25").text
    assert "BM25" in one and one.count("\\\\") < text.count("\\\\") and "Tool-Embed" not in one


def test_a_method_is_named_as_in_the_rows_or_as_on_the_page(client: TestClient) -> None:
    address = f"{BASE}/leaderboard?benchmark=tooleq&limit=500"
    rows = client.get(f"{address}&method=full-doc").json()["items"]
    assert rows and {row["method"] for row in rows} == {"full-doc"}
    assert client.get(f"{address}&method=Full-Doc").json()["items"] == rows


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/leaderboard", 400),
        ("/leaderboard?benchmark=demo-tools&metrc=NDCG", 400),
        ("/leaderboard?benchmark=demo-tools&k=0", 400),
        ("/leaderboard?benchmark=demo-tools&k=10&k=20", 400),
        ("/leaderboard?benchmark=demo-tools&k=99999999999999999999999999", 400),
        ("/leaderboard?benchmark=demo-tools&limit=-1", 400),
        ("/leaderboard?benchmark=demo-tools&limit=nan", 400),
        ("/leaderboard?benchmark=demo-tools&average=macro&domain=web", 400),
        ("/leaderboard?benchmark=demo-tools&average=domain", 400),
        ("/leaderboard?benchmark=demo-tools&sort=secret", 400),
        ("/leaderboard?benchmark=demo-tools&search=%00", 400),
        ("/leaderboard?benchmark=demo-tools&format=xml", 406),
        ("/leaderboard?benchmark=../../etc/passwd", 404),
        ("/leaderboard?benchmark=demo-tools'%20OR%201=1--", 404),
        ("/leaderboard?benchmark=demo-tools&search=%FF%FE", 200),
        ("/leaderboard?benchmark=demo-tools&domain=%F0%9F%92%A9", 200),
        ("/benchmarks/%2e%2e", 404),
        ("/benchmarks/tests", 404),
        ("/benchmarks/%00", 400),
        ("/benchmarks/" + "a" * 2000, 400),
        ("/benchmarks?offset=1000000001", 400),
        ("/runs/" + "a" * 2000, 400),
        ("/runs/%0a", 400),
        ("/runs/%3Cscript%3E", 404),
        ("/queries/demo-tools/a/b/../c", 404),
        ("/queries/demo-tools/%00", 400),
        ("/nothing", 404),
        ("/runs", 404),
    ],
)
def test_hostile_requests_get_a_plain_answer(client: TestClient, address: str, status: int) -> None:
    answer = client.get(BASE + address)
    assert answer.status_code == status
    if status >= 400:
        body = answer.json()
        assert body["status"] == status
        assert body["detail"]
        assert "Traceback" not in answer.text


def test_every_wrong_parameter_is_named(client: TestClient) -> None:
    body = client.get(f"{BASE}/leaderboard?benchmark=demo-tools&k=x&limit=0").json()
    assert {problem["parameter"] for problem in body["problems"]} == {"k", "limit"}


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/csv", "text/csv; charset=utf-8"),
        ("text/csv;q=0.5, application/json;q=0.4", "text/csv; charset=utf-8"),
        ("text/*", "text/csv; charset=utf-8"),
        (f"application/json;q=0, {PARQUET}", PARQUET),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "application/json"),
        ("image/png", None),
        ("application/json;q=0", None),
        (";;q=,,", None),
    ],
)
def test_the_header_accept_is_heeded(client: TestClient, accept: str, kind: str | None) -> None:
    answer = client.get(f"{BASE}/benchmarks", headers={"Accept": accept})
    if kind is None:
        assert answer.status_code == 406
        assert "text/csv" in answer.json()["detail"]
    else:
        assert answer.headers["content-type"] == kind


def test_other_origins_may_read_and_nothing_else(client: TestClient) -> None:
    address = f"{BASE}/leaderboard?benchmark=demo-tools"
    for answer in (client.get(address), client.options(address), client.get(f"{BASE}/runs/none")):
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in answer.headers
    preflight = client.options(address)
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-methods"] == "GET, HEAD, OPTIONS"
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        refused = client.request(method, address)
        assert refused.status_code == 405
        assert refused.headers["allow"] == "GET, HEAD, OPTIONS"
    assert "access-control-allow-origin" not in client.options(f"{BASE}/submissions").headers


def test_no_number_of_an_answer_is_not_finite(client: TestClient, submitted: Callable[..., str]) -> None:
    run_id = submitted()
    for address in (f"/runs/{run_id}", f"/runs/{run_id}/card", f"/runs/{run_id}/queries?limit=10000"):
        strict(client.get(BASE + address).text)
    frame = parquet(client.get(f"{BASE}/runs/{run_id}/queries?limit=10000&format=parquet").content)
    for name in frame.select(pl.selectors.float()).columns:
        assert all(value is None or math.isfinite(value) for value in frame[name])
