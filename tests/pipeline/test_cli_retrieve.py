"""``equirank retrieve`` and ``equirank worker`` as a user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.jobs import durable, job_client
from pipeline.jobs.evaluation_request import EvaluationRequest
from pipeline.jobs.first_start import demo_folder, prepared_site
from pipeline.jobs.job_client import JobState
from pipeline.jobs.site import Site
from store.access import workers
from store.settings import Settings
from tests.pipeline.command_line import CommandLine
from tests.pipeline.jobs.worker_process import finished

FOLDER = str(demo_folder("tools"))


def test_a_folder_is_retrieved_on_without_a_database(equirank: CommandLine, tmp_path: Path) -> None:
    away = {"EQUIRANK_DATABASE_URL": "postgresql://me:secret@127.0.0.1:1/none", "EQUIRANK_HOME": str(tmp_path / "home")}
    out = tmp_path / "run.trec"
    done = equirank("retrieve", "-b", FOLDER, "-m", "bm25", "--out", str(out), "--depth", "20", **away)
    assert done.returncode == 0, done.stderr
    assert out.read_text().splitlines()[0].split()[-1] == "bm25s-full-doc-card"
    checked = equirank("validate", str(out), "-b", FOLDER, "--format", "json", **away)
    assert checked.returncode == 0
    assert json.loads(checked.stdout)["verdict"] == "accept"
    assert json.loads(checked.stdout)["counts"]["depth"] == 20
    assert not (tmp_path / "home" / "equirank.sqlite3").exists()


def test_a_stored_run_is_private_and_measured_once(equirank: CommandLine) -> None:
    command = ("retrieve", "-b", "demo-tools", "-m", "bm25", "--method", "sub-query", "--format", "json")
    first = equirank(*command)
    assert first.returncode == 0, first.stderr
    said = json.loads(first.stdout)
    assert "token=" in said["permalink"]
    assert json.loads(equirank(*command).stdout) == said
    shown = json.loads(equirank("runs", "show", said["run_id"], "--format", "json").stdout)
    run = shown["run"]
    assert (run["provenance"], run["method"], run["level"]) == ("measured", "sub-query", "sub-query")
    assert run["contract"] == "card" and run["contract_hash"]
    assert run["efficiency"]["index_bytes"] > 0
    assert (run["state"], run["visibility"]) == ("scored", "private")
    assert any("a ceiling" in note for note in run["notes"])
    assert shown["scores"]["new"]["NDCG@10"]["macro"] >= shown["scores"]["old"]["NDCG@10"]["macro"] > 0.2
    again = equirank(*command[:-2]).stdout
    assert f"measured before as {said['run_id']}" in again and f"equirank runs publish {said['run_id']}" in again
    assert f"{100 * shown['scores']['new']['NDCG@10']['macro']:.1f} by every valid answer" in again
    assert equirank("runs", "publish", said["run_id"]).returncode == 0
    assert "private" not in equirank(*command[:-2]).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("-b", FOLDER, "-m", "bm25"), 2, "--out"),
        (("-b", "demo-tools", "-m", "no-such-model"), 3, "no-such-model"),
        (("-b", "demo-tools", "-m", "minilm", "--method", "magic"), 2, "full-doc"),
        (("-b", "demo-tools", "-m", "bm25", "--method", "adapter"), 2, "dense"),
        (("-b", "demo-tools", "-m", "nobody/nothing"), 3, "commit"),
        (("-b", "demo-tools", "-m", "nobody/nothing@" + "0" * 40), 3, "hub cannot be reached"),
        (("-b", "nothing-here", "-m", "bm25"), 1, "nothing-here"),
        (("-b", FOLDER, "-m", "bm25", "--out", "/nowhere/at/all/run"), 2, "no folder"),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    equirank: CommandLine, arguments: tuple[str, ...], code: int, says: str
) -> None:
    done = equirank("retrieve", *arguments)
    assert done.returncode == code, done.stderr
    assert says in done.stderr


def test_a_worker_on_sqlite_says_what_to_set(equirank: CommandLine) -> None:
    done = equirank("worker", "--queues", "cpu")
    assert done.returncode == 3
    assert "EQUIRANK_DATABASE_URL" in done.stderr and "EQUIRANK_ARTIFACT_URL" in done.stderr
    assert equirank("worker", "--queues", "tpu").returncode == 2


@pytest.mark.postgres
@pytest.mark.slow
def test_a_worker_does_the_jobs_of_a_site_on_postgresql(tmp_path: Path, postgres_url: str) -> None:
    site = prepared_site(Settings(home=tmp_path / "home", database_url=postgres_url))
    job_id = job_client.submit(site, EvaluationRequest("demo-tools", "bm25"))
    settings = {"EQUIRANK_HOME": str(tmp_path / "home"), "EQUIRANK_DATABASE_URL": postgres_url}
    worker = subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", "worker", "--queues", "cpu"],
        env=os.environ | settings, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        job = finished(site, job_id)
        assert job.state is JobState.DONE, job
        assert job.worker in heard(site)
    finally:
        worker.terminate()
        _, errors = worker.communicate(timeout=30)
        durable.close_job_client(site)
    assert worker.returncode == 0, errors
    assert "must share this folder" in errors and "serves cpu" in errors
    assert heard(site) == ""
    site.database.close()


def heard(site: Site) -> str:
    """The names of the workers that gave a heartbeat."""
    with site.database.reading() as session:
        return " ".join(worker.id for worker in workers.list_workers(session))


def test_the_web_process_loads_no_model() -> None:
    code = (
        "import sys, dashboard.asgi, pipeline.jobs.job_client, pipeline.jobs.estimate; "
        "print([m for m in ('torch', 'sentence_transformers', 'transformers', 'litellm') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[-2] == "[]"
