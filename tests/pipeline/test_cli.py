"""The command line's contract: exit codes, JSON shapes, and no traceback for anybody."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.jobs.first_start import demo_folder, demo_run
from tests.pipeline.command_line import CommandLine, Done

SAMPLE = str(demo_run("tools"))
FOLDER = str(demo_folder("tools"))


def parsed(done: Done) -> Any:
    return json.loads(done.stdout)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, pipeline.cli; "
        "print([m for m in ('polars', 'numba', 'numpy', 'sqlmodel', 'streamlit', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_process_starts_a_new_home_and_ends_with_its_exit_code(tmp_path: Path) -> None:
    variables = os.environ | {"EQUIRANK_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "pipeline.cli", "runs", "show", "nosuchrun"]
    done = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "nosuchrun" in done.stderr and "Traceback" not in done.stderr
    assert (tmp_path / "home" / "equirank.sqlite3").is_file()


def test_validate_accepts_and_refuses(equirank: CommandLine, tmp_path: Path) -> None:
    good = equirank("validate", SAMPLE, "--benchmark", FOLDER, "--format", "json")
    assert good.returncode == 0
    assert parsed(good)["verdict"] == "accept"
    assert set(parsed(good)) >= {"verdict", "format", "problems", "notes", "flags", "counts"}
    bad = tmp_path / "bad.trec"
    bad.write_text(Path(SAMPLE).read_text().replace(" 1 ", " 1 x ", 1))
    refused = equirank("validate", str(bad), "--benchmark", FOLDER, "--format", "json")
    assert refused.returncode == 1
    assert parsed(refused)["verdict"] == "refuse"
    assert parsed(refused)["problems"][0]["line"] == 1
    in_words = equirank("validate", str(bad), "--benchmark", FOLDER)
    assert in_words.returncode == 1
    assert "line 1" in in_words.stdout
    assert parsed(equirank("score", str(bad), "--benchmark", FOLDER, "--format", "json")) == parsed(refused)


def test_score_prints_every_format_of_the_same_figures(equirank: CommandLine) -> None:
    scored = parsed(equirank("score", SAMPLE, "--benchmark", FOLDER, "--k", "10,3", "--format", "json"))
    assert set(scored) == {"benchmark", "run", "scores", "queries"}
    assert set(scored["benchmark"]) == {"slug", "version", "hash"}
    assert scored["queries"] == {"total": 111, "missing": 0}
    assert list(scored["scores"]["old"]) == [f"{m}@{k}" for m in ("NDCG", "Recall", "Comp") for k in (3, 10)]
    old, new = scored["scores"]["old"]["NDCG@10"], scored["scores"]["new"]["NDCG@10"]
    assert old["macro"] == pytest.approx(sum(old["domains"].values()) / 3)
    assert new["macro"] > old["macro"]
    shown = f"{100 * new['macro']:.1f}"
    for name in ("table", "markdown", "latex"):
        assert shown in equirank("score", SAMPLE, "--benchmark", FOLDER, "--k", "10", "--format", name).stdout
    assert repr(new["macro"]) in equirank("score", SAMPLE, "--benchmark", FOLDER, "--format", "csv").stdout


def test_submit_list_show_withdraw_publish(equirank: CommandLine) -> None:
    submitted = equirank("submit", SAMPLE, "-b", "demo-tools", "-r", "Lexical", "--format", "json")
    assert submitted.returncode == 0, submitted.stderr
    run_id = parsed(submitted)["run_id"]
    assert parsed(submitted)["permalink"].endswith(run_id)
    listed = parsed(equirank("runs", "list", "--benchmark", "demo-tools", "--format", "json"))
    assert [(row["id"], row["state"]) for row in listed] == [(run_id, "published")]
    figure = listed[0]["ndcg"]
    assert f"{100 * figure['old']:.1f} / {100 * figure['new']:.1f} (@10)" in equirank("runs", "list").stdout
    shown = parsed(equirank("runs", "show", run_id, "--format", "json"))
    scored = parsed(equirank("score", SAMPLE, "--benchmark", FOLDER, "--format", "json"))
    assert shown["scores"] == scored["scores"]
    assert shown["run"]["ranking_hash"] == scored["run"]["ranking_hash"]
    assert equirank("runs", "withdraw", run_id).returncode == 0
    assert parsed(equirank("runs", "list", "--format", "json"))[0]["state"] == "withdrawn"
    assert run_id in equirank("runs", "publish", run_id).stdout
    missing = equirank("runs", "show", "nosuchrun")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "nosuchrun" in missing.stderr


def test_benchmarks_go_out_and_come_back(equirank: CommandLine, tmp_path: Path) -> None:
    listed = {row["slug"]: row for row in parsed(equirank("benchmark", "list", "--format", "json"))}
    assert {"demo-tools", "demo-skills", "tooleq", "skilleq", "mftr-mixed"} <= set(listed)
    out = tmp_path / "copy"
    assert equirank("benchmark", "export", "demo-tools", str(out), "--tables", "parquet").returncode == 0
    verified = parsed(equirank("benchmark", "verify", str(out), "--format", "json"))
    assert verified["hash"] == listed["demo-tools"]["hash"] and verified["notes"] == []
    accepted = str(out / "query_combo_verified.jsonl")
    version = parsed(
        equirank("benchmark", "import", accepted, "--parent", FOLDER, "--set-version", "accepted", "--format", "json")
    )
    assert version["combinations"] == listed["demo-tools"]["combinations"]
    assert version["statistics"]["all"]["combinations"] == listed["demo-tools"]["combinations"]
    again = equirank("benchmark", "import", str(out), "--slug", "copied", "--format", "json")
    assert parsed(again)["hash"] == listed["demo-tools"]["hash"]
    assert equirank("benchmark", "export", "demo-tools", str(out)).returncode == 2
    shown = parsed(equirank("benchmark", "show", "copied@1", "--format", "json"))
    assert shown["statistics"]["all"]["combinations"] == listed["demo-tools"]["combinations"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("validate", "nowhere.trec", "--benchmark", FOLDER), 1, "nowhere.trec"),
        (("validate", SAMPLE, "--benchmark", "./nowhere"), 1, "no folder"),
        (("validate", SAMPLE, "--benchmark", "no-such-slug"), 1, "stored are"),
        (("validate", SAMPLE, "--benchmark", "tooleq"), 1, "only figures"),
        (("validate", SAMPLE, "--benchmark", FOLDER, "--order", "best"), 2, "--order"),
        (("score", SAMPLE, "--benchmark", FOLDER, "--k", "0,5"), 2, "--k"),
        (("score", SAMPLE, "--benchmark", FOLDER, "--k", "1_0"), 2, "--k"),
        (("score", SAMPLE), 2, "--benchmark"),
        (("submit", SAMPLE, "-b", "demo-tools", "-r", "  "), 1, "name"),
        (("submit", SAMPLE, "-b", "demo-tools", "-r", "x", "--level", "deep"), 2, "sub-query"),
        (("benchmark", "import", "/nowhere/at-all"), 1, "nowhere"),
        (("nonsense",), 2, "nonsense"),
        (("score", SAMPLE, "--benchmark", "b" * 300), 2, "shorter"),
        (("growth", "--benchmark", "demo-tools", "--out", "o" * 300), 2, "shorter"),
    ],
)
def test_bad_input_is_named_with_its_exit_code(
    equirank: CommandLine, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = equirank(*arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert words in done.stderr


def test_a_database_that_is_away_is_an_environment_problem(equirank: CommandLine) -> None:
    away = {"EQUIRANK_DATABASE_URL": "postgresql://me:secret@127.0.0.1:1/none"}
    for arguments in (("runs", "list"), ("submit", SAMPLE, "-b", "demo-tools", "-r", "x")):
        done = equirank(*arguments, **away)
        assert done.returncode == 3
        assert "EQUIRANK_DATABASE_URL" in done.stderr
        assert "secret" not in done.stderr
    assert equirank("doctor", **away).returncode == 3
    # A benchmark folder needs no database.
    assert equirank("validate", SAMPLE, "--benchmark", FOLDER, **away).returncode == 0


def test_doctor_finds_damaged_artifacts(equirank: CommandLine, tmp_path: Path) -> None:
    home = {"EQUIRANK_HOME": str(tmp_path)}
    assert equirank("migrate", **home).returncode == 0
    assert equirank("doctor", "--deep", **home).returncode == 0
    victim = next(path for path in (tmp_path / "artifacts").rglob("*.parquet"))
    victim.write_bytes(victim.read_bytes()[:-1] + b"?")
    found = equirank("doctor", "--deep", "--format", "json", **home)
    assert found.returncode == 3
    assert any(item["state"] == "broken" and victim.stem in item["detail"] for item in parsed(found))
