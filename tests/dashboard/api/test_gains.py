"""The gains of pairs: the figures of the pages, and nothing of runs that are not public."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from starlette.testclient import TestClient

from pipeline.jobs.first_start import demo_run
from pipeline.jobs.pair_gains import pair_gains
from pipeline.jobs.site import Site
from pipeline.jobs.statistics import compute, pending
from pipeline.jobs.submission import SubmissionMetadata, check_run, submit_run, withdraw_run
from pipeline.scoring.gain_table import with_sayable_shares
from store.access import retrievers, runs, statistics
from store.models import Retriever, Visibility

GAINS = "/api/v1/gains?benchmark=demo-tools"


@dataclass(frozen=True)
class Pair:
    """A base, its fine-tuned run, and another fine-tuned run of the same base."""

    base: str
    tuned: str
    other: str


@pytest.fixture
def pair(site: Site, tmp_path: Path) -> Pair:
    """Three public runs with different rankings; their statistics are stored."""
    with site.database.session() as session:
        retrievers.upsert(session, Retriever(key="plain", name="Plain"))
        for key, name in (("tuned", "Tuned"), ("other", "Other tuned")):
            retrievers.upsert(session, Retriever(key=key, name=name, base_key="plain", fine_tuned=True))
    lines = demo_run("tools").read_text().splitlines()
    ids = []
    for name, dropped in (("Plain", 3), ("Tuned", 0), ("Other tuned", 7)):
        path = tmp_path / "run.trec"
        path.write_text("\n".join(x for i, x in enumerate(lines) if not dropped or i % dropped) + "\n")
        checked = check_run(site, path, "demo-tools")
        ids.append(submit_run(site, checked, path, SubmissionMetadata(retriever=name), publish=True))
    assert compute(site, pending(site), lambda line: None) == []
    return Pair(*ids)


def test_the_pairs_of_a_board_are_those_of_the_illusion_page(client: TestClient, site: Site, pair: Pair) -> None:
    body = client.get(GAINS).json()
    assert {(row["base_run"], row["tuned_run"]) for row in body["items"]} == {
        (pair.base, pair.tuned),
        (pair.base, pair.other),
    }
    with site.database.reading() as session:
        base, tuned = runs.get(session, pair.base), runs.get(session, pair.tuned)
    table = pair_gains(site, base, tuned, 10).table
    expected = with_sayable_shares(table).to_dicts()
    assert any(row["share"] is None for row in expected) and table["share"].null_count() < table["share"].len()
    shown = [row for row in body["items"] if row["tuned_run"] == pair.tuned]
    assert [{name: row[name] for name in expected[0]} for row in shown] == expected
    assert shown[0]["gain_new_low"] is not None and shown[0]["p_shrink"] is not None
    assert all(row["per_query"] and not row["pending"] for row in shown)
    one = client.get(f"{GAINS}&base={pair.base}&tuned={pair.tuned}&metric=NDCG").json()["items"]
    assert one == [row for row in shown if row["metric"] == "NDCG"]


def test_any_two_public_runs_and_printed_ones(client: TestClient, pair: Pair) -> None:
    # No job computes this pair: it comes without intervals, and says so.
    rows = client.get(f"{GAINS}&base={pair.tuned}&tuned={pair.other}").json()["items"]
    assert rows and all(row["pending"] and row["gain_new_low"] is None for row in rows)
    printed = client.get("/api/v1/gains?benchmark=tooleq&metric=NDCG").json()["items"]
    headline = [row for row in printed if row["average"] == "macro" and row["level"] == "query"]
    shares = {row["tuned"]: round(row["share"], 3) for row in headline}
    assert shares["Tool-Embed-0.6B"] == 0.306 and shares["Tool-Embed-4B"] == 0.470
    assert not any(row["per_query"] for row in printed)


@pytest.mark.parametrize("hide", ["withdrawn", "private"])
@pytest.mark.parametrize("which", ["base", "tuned"])
def test_stored_gains_of_a_hidden_run_are_not_served(
    client: TestClient, site: Site, pair: Pair, hide: str, which: str
) -> None:
    before = client.get(GAINS)
    hidden = getattr(pair, which)
    if hide == "withdrawn":
        withdraw_run(site, hidden)
    else:
        with site.database.session() as session:
            runs.set_visibility(session, hidden, Visibility.PRIVATE)
    # What is stored still holds the run: nothing was computed anew.
    with site.database.reading() as session:
        board = statistics.of_board(session, runs.get(session, hidden).benchmark_version_id)
        name = retrievers.get_by_id(session, runs.get(session, hidden).retriever_id).name
        secret = runs.get(session, hidden).private_token
    assert board is not None
    stored = site.artifacts.get_frame(board.gains_artifact)
    assert hidden in {*stored["base_run"], *stored["tuned_run"]}
    for query in ("", "&format=csv", "&format=parquet", "&k=5", "&offset=1&limit=1"):
        answer = client.get(GAINS + query, headers={"If-None-Match": before.headers["etag"]})
        assert answer.status_code == 200
        text = answer.text
        if "parquet" in query:
            text = json.dumps(pl.read_parquet(io.BytesIO(answer.content)).to_dicts())
        text += str(answer.headers)
        assert hidden not in text and f'"{name}"' not in text and f",{name}," not in text
    other = pair.tuned if which == "base" else pair.base
    for first, second in ((hidden, other), (other, hidden)):
        # Not even with the token of its link: gains are read from what is public.
        address = f"{GAINS}&base={first}&tuned={second}"
        refused = client.get(address)
        absent = client.get(address.replace(hidden, "nosuchrun00000"))
        assert refused.status_code == absent.status_code == 404
        assert refused.json()["detail"].replace(hidden, "") == absent.json()["detail"].replace("nosuchrun00000", "")
        assert client.get(f"{address}&token={secret}").status_code == 400


@pytest.mark.parametrize(
    ("query", "named"),
    [("&base=x", "belong together"), ("&base=x&tuned=x", "same run"), ("&metric=MAP", "metric"), ("&k=0", "k")],
)
def test_wrong_questions_are_named(client: TestClient, submitted: Callable[..., str], query: str, named: str) -> None:
    answer = client.get(GAINS + query)
    assert answer.status_code == 400 and named in answer.text


def test_a_cutoff_without_scores_is_said(client: TestClient, pair: Pair) -> None:
    answer = client.get(f"{GAINS}&k=7&base={pair.base}&tuned={pair.tuned}")
    assert answer.status_code == 400 and "K = 7" in answer.json()["detail"]
