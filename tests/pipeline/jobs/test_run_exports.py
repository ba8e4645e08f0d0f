from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipeline.jobs.citations import benchmark_address, benchmark_bibtex, citation_key, escape_bibtex, run_bibtex
from pipeline.jobs.first_start import demo_run, prepared_site
from pipeline.jobs.run_card import card_text, run_address, run_card
from pipeline.jobs.site import Site
from pipeline.jobs.submission import SubmissionMetadata, check_run, submit_run
from pipeline.run import Order
from store.access import benchmarks, retrievers, runs
from store.models import Provenance, Retriever, Run, State, Submission
from store.records import Summary
from store.settings import Settings


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return prepared_site(Settings(home=tmp_path_factory.mktemp("home"), public_url="https://board.example"))


def submitted(site: Site, name: str, order: Order | None = None) -> str:
    checked = check_run(site, demo_run("tools"), "demo-tools", order=order)
    return submit_run(site, checked, demo_run("tools"), SubmissionMetadata(retriever=name), publish=False)


def test_the_command_of_an_uploaded_run_scores_it_again(site: Site, tmp_path: Path) -> None:
    run_id = submitted(site, "Mine", Order.SCORE)
    with site.database.reading() as session:
        run = runs.get(session, run_id)
    card = run_card(site, run)
    words = shlex.split(card["reproduce"]["command"])
    assert words[:3] == ["equirank", "score", "RUN_FILE"]
    assert words[words.index("--order") + 1] == "score"
    again = check_run(site, demo_run("tools"), words[words.index("--benchmark") + 1], order=Order.SCORE)
    assert again.reading.run is not None
    assert again.reading.run.ranking_hash == card["hashes"]["ranking"]
    assert again.sha256 == card["hashes"]["run_file"]
    assert again.version.content_hash == card["hashes"]["benchmark"]


def test_a_card_holds_no_private_link_contact_or_endpoint(site: Site) -> None:
    run_id = submitted(site, "Quiet")
    with site.database.reading() as session:
        run = runs.get(session, run_id)
    text = card_text(run_card(site, run))
    assert run.private_token
    assert run.private_token not in text
    assert run_address(site, run) == f"https://board.example/run?run={run_id}"
    assert all(line == line.rstrip() for line in text.splitlines())


def test_a_measured_run_names_what_it_was_asked_with(site: Site) -> None:
    uploaded = submitted(site, "Twin")
    with site.database.session() as session:
        twin = runs.get(session, uploaded)
        retriever = retrievers.upsert(session, Retriever(key="tiny model", name="Tiny"))
        request = {
            "benchmark": "demo-tools@1", "model": "acme/tiny; rm -rf", "method": "adapter", "preset": "card",
            "instruction": True, "depth": 50, "positives": "equivalents", "dtype": "float32",
            "endpoint_url": "https://inside.example", "publish": True, "person": "local",
        }  # fmt: skip
        made = runs.add_run(
            session,
            Run(
                benchmark_version_id=twin.benchmark_version_id, retriever_id=retriever.id, contract="card",
                provenance=Provenance.MEASURED.value, state=State.SCORED.value,
                ranking_artifact=twin.ranking_artifact, ranking_hash=twin.ranking_hash, contract_hash="c" * 64,
            ),
            [Summary("old", "NDCG", 10, "macro", 0.5)],
            submission=Submission(benchmark_version_id=twin.benchmark_version_id, report={"request": request}),
            artifacts=site.artifacts,
        )  # fmt: skip
    card = run_card(site, made)
    assert shlex.split(card["reproduce"]["command"]) == [
        "equirank", "retrieve", "--benchmark", "demo-tools@1", "--model", "acme/tiny; rm -rf", "--method", "adapter",
        "--preset", "card", "--instruction", "--depth", "50", "--positives", "equivalents", "--dtype", "float32",
    ]  # fmt: skip
    assert card["contract"]["hash"] == "c" * 64
    assert "inside.example" not in card_text(card)


def test_bibtex_of_strangers_names_is_balanced(site: Site) -> None:
    run_id = submitted(site, "50% {better} \\input{x} & #1_$")
    with site.database.reading() as session:
        run = runs.get(session, run_id)
        retriever = retrievers.get_by_id(session, run.retriever_id)
        version = benchmarks.get_by_id(session, run.benchmark_version_id)
    card = benchmark_address(site, version)
    assert card == "https://board.example/benchmarks?bm_benchmark=demo-tools@1"
    text = run_bibtex(run, retriever, version, address=run_address(site, run), benchmark_address=card)
    unescaped = text.replace("\\\\", "").replace("\\{", "").replace("\\}", "")
    assert unescaped.count("{") == unescaped.count("}")
    assert r"50\% \{better\} \textbackslash{}input\{x\} \& \#1\_\$" in text
    assert text.count("@misc{") == 2
    assert version.content_hash is not None
    assert version.content_hash in text
    cited = replace(version, citation="@misc{paper}", created_at=datetime(2031, 1, 1, tzinfo=UTC))
    assert benchmark_bibtex(cited, card).startswith("@misc{paper}\n\n@misc{demo-tools-1,")
    assert "{2031}" in benchmark_bibtex(cited, card)


def test_escaping_and_keys() -> None:
    assert escape_bibtex("a\n b\u202e\x07") == "a b"
    assert citation_key("Größe", "v1.0") == "groe-v1-0"
    assert citation_key("工具") == "equirank"
