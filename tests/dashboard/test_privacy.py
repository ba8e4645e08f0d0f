"""Nothing of a private or withdrawn run is on any page, behind any permalink, in any search or download.

The hidden runs are somebody else's, so that *My runs* does not list them either. Their names, ids, links, contacts and
figures are looked for in everything that a page sends: texts, options, tables, charts and addresses.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from dashboard.api.routes import READS, api_routes
from pipeline.jobs.first_start import demo_run
from pipeline.jobs.site import Site
from pipeline.jobs.statistics import compute, pending
from pipeline.jobs.submission import SubmissionMetadata, check_run, submit_run, withdraw_run
from store.access import retrievers, runs
from store.models import Retriever, Visibility
from tests.dashboard.dashboard_app import open_page

DEMO = "demo-tools@1"
#: What a page may show of a run; where ``RUN`` stands, a hidden run's id is put in.
PLACES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("leaderboard", {"lb_benchmark": DEMO, "run": "RUN"}),
    ("leaderboard", {"lb_benchmark": DEMO, "lb_search": "Hidden"}),
    ("leaderboard", {"lb_layout": "methods", "lb_search": "Hidden"}),
    ("old_vs_new", {"ovn_benchmark": DEMO}),
    ("illusion", {"ill_benchmark": DEMO}),
    ("illusion", {"ill_benchmark": DEMO, "ill_runs": "any two runs", "ill_base": "RUN", "ill_tuned": "RUN"}),
    ("compare", {"cmp_benchmark": DEMO, "cmp_base": "RUN", "cmp_tuned": "RUN"}),
    ("score_and_cost", {"cost_benchmark": DEMO}),
    ("equivalent_ranks", {"er_benchmark": DEMO, "er_run": ["RUN"]}),
    ("queries", {"q_benchmark": DEMO, "q_run": ["RUN"]}),
    ("queries", {"q_benchmark": DEMO, "q_run": ["RUN"], "q_query": "ev-006"}),
    ("mftr_lab", {"lab_benchmark": DEMO, "lab_run": "RUN"}),
    ("submit", {"submit_benchmark": DEMO}),
    ("evaluate", {"ev_benchmark": DEMO}),
    ("my_runs", {}),
    ("my_runs", {"run": "RUN"}),
    ("jobs", {}),
    ("benchmarks", {"bm_benchmark": DEMO}),
    ("about", {}),
    ("run", {"run": "RUN"}),
    ("run", {"run": "RUN", "token": "guessed"}),
    ("retriever", {"retriever": "hidden-private"}),
    ("retriever", {"retriever": "hidden-withdrawn"}),
    ("retriever", {"retriever": "shown-one"}),
)
#: Signs of the hidden runs that no page sends on its own.
_WORDS = ("Hidden private", "Hidden withdrawn", "hidden.example", "secret contact", "secret setting", "secret-method")


@dataclass(frozen=True)
class Cast:
    """Who is on the board.

    Attributes:
        hidden: ids of the private and the withdrawn run.
        signs: what must not be seen: names, links, hashes, figures.
        ids: of the hidden runs, which a page may repeat where its address named them.
    """

    public: tuple[str, str]
    hidden: tuple[str, str]
    signs: tuple[str, ...]


@pytest.fixture
def cast(site: Site, tmp_path: Path) -> Cast:
    """Two public runs, and two hidden ones that were on the board while its statistics were made."""
    lines = demo_run("tools").read_text().splitlines()
    with site.database.session() as session:
        retrievers.upsert(session, Retriever(key="shown-one", name="Shown one", family="Shown"))
        for key, name in (("hidden-private", "Hidden private"), ("hidden-withdrawn", "Hidden withdrawn")):
            said = Retriever(key=key, name=name, family="Hidden family", base_key="shown-one", fine_tuned=True)
            retrievers.upsert(session, said)
    ids, signs = [], list(_WORDS)
    for name, dropped in (("Shown one", 0), ("Shown two", 3), ("Hidden private", 5), ("Hidden withdrawn", 7)):
        path = tmp_path / "run.trec"
        path.write_text("\n".join(x for i, x in enumerate(lines) if not dropped or i % dropped) + "\n")
        checked = check_run(site, path, DEMO)
        hidden = name.startswith("Hidden")
        said_of = SubmissionMetadata(
            retriever=name,
            person="somebody else" if hidden else "local",
            link="https://hidden.example/x" if hidden else "",
            contact="secret contact" if hidden else "",
            contract="secret setting" if hidden else "",
            method="secret-method" if hidden else "full-doc",
        )
        ids.append(submit_run(site, checked, path, said_of, publish=True))
        if hidden:
            assert checked.reading.run is not None and checked.summary is not None
            signs += [checked.reading.run.ranking_hash, checked.sha256]
            figures = checked.summary.filter(pl.col("metric") == "NDCG", pl.col("k") >= 10, pl.col("domain") == "")
            signs += [repr(value) for value in figures["value"] if 0 < value < 1]
    assert compute(site, pending(site), lambda line: None) == []
    with site.database.session() as session:
        runs.set_visibility(session, ids[2], Visibility.PRIVATE)
    withdraw_run(site, ids[3])
    with site.database.reading() as session:
        signs.append(runs.get(session, ids[2]).private_token or "none")
        shown = {repr(value) for run_id in ids[:2] for value in runs.summaries(session, run_id)["value"]}
    return Cast((ids[0], ids[1]), (ids[2], ids[3]), tuple(sign for sign in signs if sign not in shown))


def sent(app: AppTest) -> str:
    """Everything of the page, as text: every element's message, with the frames in it."""
    parts = []
    for element in walk(app._tree):
        proto = getattr(element, "proto", None)
        parts.append("" if proto is None else str(proto))
        if isinstance(value := getattr(element, "value", None), pd.DataFrame):
            parts.append(value.to_csv())
    return "\n".join(parts) + json.dumps(dict(app.query_params), default=str)


def walk(block: Any) -> Iterator[Any]:
    """The block and everything below it."""
    yield block
    for child in getattr(block, "children", {}).values():
        yield from walk(child)


@pytest.mark.parametrize("which", [0, 1], ids=["private", "withdrawn"])
def test_no_page_shows_a_hidden_run(app: AppTest, cast: Cast, which: int) -> None:
    hidden = cast.hidden[which]
    for page, place in PLACES:
        query = json.loads(json.dumps(place).replace("RUN", hidden))
        opened = open_page(app, page, **query)
        assert not opened.exception, (page, query)
        text = sent(opened)
        if page == "leaderboard" and "lb_search" not in query:
            # What is looked through holds the table.
            assert "Shown one" in text
        # What the reader typed is in the reader's own search box.
        signs = [sign for sign in cast.signs if sign in text]
        assert signs == [], (page, query, signs)
        other = cast.hidden[1 - which]
        assert other not in text, (page, query)
        if not any(hidden in str(value) for value in query.values()):
            assert hidden not in text, (page, query)


def as_text(content: bytes, kind: str) -> str:
    """An answer's body as text."""
    if "parquet" in kind:
        return json.dumps(pl.read_parquet(io.BytesIO(content)).to_dicts(), default=str)
    return content.decode()


def test_no_route_shows_a_hidden_run(site: Site, cast: Cast) -> None:
    with TestClient(Starlette(routes=api_routes())) as client:
        listed = client.get(f"/api/v1/runs/{cast.public[0]}/queries?limit=1").json()["items"][0]["query_id"]
        checked = 0
        for read in READS:
            path = read.path.replace("{benchmark}", "demo-tools").replace("{query_id:path}", listed)
            places = [path.replace("{run_id}", run) for run in (*cast.public, *cast.hidden)]
            for place in dict.fromkeys(places):
                for params in ({}, {"run": cast.hidden[0]}, {"search": "Hidden"}, {"search": "secret"}, {"k": 10}):
                    asked = dict(params)
                    if "benchmark" in read.parameters.model_fields and "{benchmark}" not in read.path:
                        asked["benchmark"] = "demo-tools"
                    for offered in read.formats:
                        answer = client.get(f"/api/v1{place}", params={**asked, "format": offered.value})
                        text = as_text(answer.content, answer.headers["content-type"]) + str(answer.headers)
                        assert not [sign for sign in cast.signs if sign in text], (place, asked)
                        named = any(run in place or run in asked.values() for run in cast.hidden)
                        if named:
                            assert answer.status_code in {400, 404}, (place, asked)
                        else:
                            assert not any(run in text for run in cast.hidden), (place, asked)
                        checked += 1
        assert checked > 60
        health = client.get("/api/v1/health").text
        assert not any(sign in health for sign in (*cast.signs, *cast.hidden))
