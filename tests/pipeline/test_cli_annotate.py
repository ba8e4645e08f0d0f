"""``equirank annotate …`` in this process, against a judge on loopback that knows the demo's labels."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
from collections.abc import Callable, Generator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.main import get_command

from pipeline.benchmark import Benchmark
from pipeline.cli import app
from pipeline.errors import EquiRankError, ModelError
from pipeline.formats.benchmark_folder import read_benchmark_folder, write_benchmark_folder
from pipeline.jobs.annotations import naming
from pipeline.jobs.first_start import demo_folder, prepared_site
from store.errors import StoreError
from store.settings import Settings, get_settings
from tests.llm_server import Fault, LlmServer, answer_batch
from tests.pipeline.toolex.demo_judge import LabelJudge, labels_of, stripped, user_text

JUDGE = "openai/judge"
HOW = ("--judge", JUDGE, "--pool", "bm25", "--depth", "8")


@dataclass(frozen=True)
class Done:
    """What a command ended with, as ``pipeline.cli.main`` would say it."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)


Run = Callable[..., Done]


@pytest.fixture(scope="module")
def skills() -> Benchmark:
    return read_benchmark_folder(demo_folder("skills"))


@pytest.fixture(scope="module")
def bare(skills: Benchmark) -> Benchmark:
    """Four queries with much to combine, without anything after their ground truth."""
    sizes = skills.ground_truth.sort(pl.col("tool_ids").list.len(), descending=True, maintain_order=True)
    made = stripped(skills, sizes["query_id"].head(4).to_list())
    return replace(made, info=replace(made.info, slug="bare"))


@pytest.fixture(scope="module")
def folder(bare: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as a benchmark folder."""
    made = tmp_path_factory.mktemp("folder") / "bare"
    write_benchmark_folder(bare, made)
    return made


class Home:
    """A home after the first start that can be put back to that."""

    def __init__(self, root: Path) -> None:
        self.path, self._kept = root / "home", root / "kept"
        prepared_site(Settings(home=self.path)).database.close()
        shutil.copytree(self.path, self._kept)

    def reset(self) -> None:
        shutil.rmtree(self.path)
        # At the same place: what ships is not loaded anew then.
        shutil.copytree(self._kept, self.path)


@pytest.fixture(scope="module")
def module_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("prepared"))


@pytest.fixture
def home(module_home: Home) -> Home:
    """As it is after the first start."""
    module_home.reset()
    return module_home


@pytest.fixture
def equirank(home: Home, monkeypatch: pytest.MonkeyPatch) -> Generator[Run]:
    """Runs ``equirank …`` here, as ``pipeline.cli.main`` does."""
    monkeypatch.setenv("EQUIRANK_HOME", str(home.path))
    monkeypatch.setenv("EQUIRANK_LLM_PRICES", f"{JUDGE}=1/1")
    command = get_command(app)

    def run(*arguments: str) -> Done:
        get_settings.cache_clear()
        out, err = io.StringIO(), io.StringIO()
        code: Any = 0
        with redirect_stdout(out), redirect_stderr(err):
            try:
                command.main(list(arguments), "equirank")
            except SystemExit as ended:
                code = ended.code
            except (EquiRankError, StoreError) as error:
                code = error.exit_code
                err.write(f"error: {error}")
        return Done(code, out.getvalue(), err.getvalue())

    yield run
    get_settings.cache_clear()


@pytest.fixture
def judge(skills: Benchmark, monkeypatch: pytest.MonkeyPatch) -> Generator[LlmServer]:
    with LlmServer(LabelJudge(skills)) as server:
        monkeypatch.setenv("EQUIRANK_LLM_BASE_URL", server.url)
        yield server


def files_of(made: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(made.iterdir())}


def words_of(said: str) -> str:
    """Without line breaks, so that a sentence is found however it is folded."""
    return " ".join(said.split())


def test_a_folder_is_expanded_live_and_in_three_rounds_to_the_same_bytes(
    equirank: Run,
    home: Home,
    judge: LlmServer,
    skills: Benchmark,
    bare: Benchmark,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = equirank("annotate", "estimate", "-b", str(folder), *HOW, "--format", "json").json["stages"]
    assert [stage["stage"] for stage in expected] == ["decompose", "verify", "audit"]
    cost = sum(stage["expected_cost"] for stage in expected)
    table = equirank("annotate", "estimate", "-b", str(folder), *HOW).out
    assert f"{expected[1]['calls']:,}" in table and table.splitlines()[5].startswith("total")
    # An invalid answer of any stage is asked for again, so each question may take as many calls as the settings say.
    assert all(stage["most_calls"] == 4 * stage["most_questions"] for stage in expected)
    monkeypatch.setenv("EQUIRANK_LLM_ATTEMPTS", "2")
    fewer = equirank("annotate", "estimate", "-b", str(folder), *HOW, "--format", "json").json["stages"]
    assert all(stage["most_calls"] == 2 * stage["most_questions"] for stage in fewer)
    words = equirank("annotate", "estimate", "-b", str(folder), *HOW).out
    assert "answered up to 2 times (EQUIRANK_LLM_ATTEMPTS)" in words and "come on top" in words
    monkeypatch.delenv("EQUIRANK_LLM_ATTEMPTS")

    # A budget of half the estimate is never exceeded, and the same command with a greater one goes on.
    run = ("annotate", "run", "-b", str(folder), "--version", "2", *HOW)
    assert "--budget USD" in equirank(*run).err and judge.count == 0
    half = equirank(*run, "--budget", str(cost / 2))
    assert half.code == 4 and "equirank annotate run --benchmark bare@1 --version 2 --budget MORE" in half.err, half.err
    assert "the folder is stored as bare@1" in half.err
    (listed,) = equirank("annotate", "list", "--format", "json").json
    assert 0 < listed["cost"] <= cost / 2 and (listed["parent"], listed["version"]) == ("bare@1", "2")
    assert "stopped by its budget" in equirank("annotate", "list").out
    done = equirank("annotate", "run", "-b", "bare", "--version", "2", "--budget", "5", "--out", str(tmp_path / "live"))
    assert done.code == 0, done.err
    assert "bare@2 is stored" in done.out and "equirank runs rescore --benchmark bare@2" in done.out
    assert all(count == 1 for count in judge.counts().values()), "what was answered is not asked again"
    made, written = read_benchmark_folder(tmp_path / "live"), labels_of(skills)
    ids = set(bare.queries["query_id"])
    assert made.notes == () and labels_of(made)["subqueries"] == {row for row in written["subqueries"] if row[0] in ids}
    assert labels_of(made)["equivalents"] <= written["equivalents"]
    assert len(labels_of(made)["combinations"]) > len(ids)
    again = equirank("annotate", "run", "-b", "bare@1", "--version", "2", "--format", "json").json
    assert again["benchmark"]["hash"] == made.content_hash and again["spent"]["calls"] == judge.count

    home.reset()
    asked = judge.count
    three_rounds(equirank, LabelJudge(skills), folder, tmp_path)
    assert files_of(tmp_path / "batch") == files_of(tmp_path / "live") and judge.count == asked


def three_rounds(equirank: Run, answer: LabelJudge, folder: Path, tmp_path: Path) -> None:
    """Export, answer, import, three times; the second answers file is not what one would wish."""
    batch, answers = tmp_path / "round.jsonl", tmp_path / "answers.jsonl"
    export = ("annotate", "export-batch", str(batch), "-b", str(folder), "--version", "2")
    take = ("annotate", "import-batch", str(answers), "-b", "bare", "--version", "2")
    for number in range(3):
        written = equirank(*export, *(HOW if number == 0 else ()), "--format", "json").json
        assert written["files"] == [str(batch)] and written["next"].startswith("equirank annotate import-batch")
        assert answer_batch(batch, answers, answer) == written["pending"]
        if number == 1:
            lines = answers.read_text().splitlines(keepends=True)
            unknown = json.dumps({**json.loads(lines[0]), "custom_id": "f" * 64}) + "\n"
            answers.write_text("".join([*lines[:-1], "not json\n", lines[0], unknown]))
            # One file that is not there keeps the others out.
            away = equirank(*take[:3], str(tmp_path / "away.jsonl"), *take[3:])
            assert away.code == 3 and "away.jsonl cannot be read" in away.err and "No file was imported" in away.err
            said = equirank(*take)
            size = len(lines)
            assert said.code == 0, said.err
            assert f"{size - 1:,} new answers" in said.out and "1 question of this round without an answer" in said.out
            for line, kind in ((size, "malformed"), (size + 1, "duplicate"), (size + 2, "unknown")):
                assert f"line {line}: {kind}" in said.out
            repeated = equirank(*take, "--format", "json").json["imports"][0]
            assert (repeated["accepted"], repeated["known"], repeated["missing"]) == (0, size - 1, 1)
            answers.write_text(lines[-1])
        said = equirank(*take, *(("--out", str(tmp_path / "batch")) if number == 2 else ()))
        assert said.code == 0, said.err
        assert ("bare@2 is stored" if number == 2 else "this round is complete") in said.out
    assert "bare@2 is stored" in equirank(*take).out, "importing again changes nothing"
    assert "is made" in equirank(*export).err


def test_failures_are_named_and_asked_again_by_the_printed_command(
    equirank: Run, skills: Benchmark, bare: Benchmark, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sick, right = True, LabelJudge(skills)
    query_id, query = bare.queries.select("query_id", "text").row(0)

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        """No draw for one query fits its tools, while sick."""
        found = right(body)
        return {"subqueries": []} if sick and "subqueries" in found and query in user_text(body) else found

    def fault(number: int, body: dict[str, Any]) -> Fault | None:
        return Fault.invalid_json() if sick and number in (9, 10) else None

    monkeypatch.setenv("EQUIRANK_LLM_ATTEMPTS", "1")
    with LlmServer(answer, faults=fault) as server:
        monkeypatch.setenv("EQUIRANK_LLM_BASE_URL", server.url)
        done = equirank("annotate", "run", "-b", str(folder), "--version", "2", *HOW, "--budget", "5")
        assert done.code == 0, done.err
        assert "and so not accepted: 1 at decompose, 2 at verify;" in done.out
        report = equirank("annotate", "report", "-b", "bare@2", "--format", "json").json
        assert report["failures"]["counts"] == {"decompose": 1, "verify": 2, "audit": 0}
        split, *verdicts = report["failures"]["rows"]
        assert (split["stage"], split["query_id"], split["judge"]) == ("decompose", query_id, JUDGE)
        assert re.fullmatch(r"0 sub-queries for \d tools", split["failure"])
        assert all("no valid answer" in row["failure"] for row in verdicts)
        assert report["queries"]["decomposition_failed"] == [query_id]
        sick = False
        command = re.search(r"^  (equirank annotate run .*--retry-failed --budget) USD$", done.out, re.MULTILINE)
        assert command is not None and "--version 3" in command[1]
        more = ("--decompose-retries", "6")
        assert " ".join(more) in done.out
        again = equirank(*shlex.split(command[1])[1:], "5", *more, "--format", "json").json
        assert again["benchmark"]["version"] == "3" and set(again["failures"].values()) == {0}
        told = json.dumps(query, ensure_ascii=False)[1:-1]
        twice = {asked: count for asked, count in server.counts().items() if count > 1 and told not in asked}
        assert list(twice.values()) == [2, 2], "the two verdicts that failed"
    refused = equirank("annotate", "run", "-b", "bare@1", "--version", "2", "--retry-failed")
    assert refused.code == 1 and "a version never changes" in refused.err


def test_stored_runs_and_the_report(equirank: Run, judge: LlmServer, folder: Path, tmp_path: Path) -> None:
    assert equirank("benchmark", "import", str(folder)).code == 0
    retrieve = ("retrieve", "-b", "bare@1", "-m", "bm25", "--publish", "--format", "json", "-q")
    old = equirank(*retrieve).json["run_id"]
    private = equirank(*retrieve[:5], "--depth", "50", *retrieve[6:]).json["run_id"]
    run = equirank("annotate", "run", "-b", "bare@1", "--version", "2", *HOW, "--max-calls", "1000", "-q")
    assert run.code == 0 and run.err == ""
    before = equirank("annotate", "report", "-b", "bare@2")
    assert "no public run is on this version" in before.out
    pairs = equirank("runs", "rescore", "-b", "bare@2", "--format", "json").json
    assert pairs["benchmark"] == "bare@2" and {pair["from"] for pair in pairs["runs"]} == {old, private}
    new = {pair["from"]: pair["to"] for pair in pairs["runs"]}
    assert "(there already)" in equirank("runs", "rescore", "-b", "bare@2", "--run", old).out
    assert "nothing to re-score" in equirank("runs", "rescore", "-b", "bare@2").out
    report = equirank("annotate", "report", "-b", "bare@2", "--format", "json").json
    (left_out,) = report["leave_one_out"]
    shown = equirank("runs", "show", new[old], "--format", "json").json["scores"]
    assert left_out["run"] == new[old] and left_out["new"] == shown["new"]["NDCG@10"]["micro"]
    # Without the only member of the pool nothing was found.
    assert left_out["without"] == pytest.approx(shown["old"]["NDCG@10"]["micro"]) and left_out["change"] < 0
    assert report["statistics"][0]["queries"] == 4 and report["pool_bias"]["only_one"] == 1.0
    assert sum(row[new[old]] * row["queries"] for row in report["lift_by_length"]) > 0
    assert private not in json.dumps(report) and new[private] not in json.dumps(report)
    for style in ("table", "md"):
        told = equirank("annotate", "report", "-b", "bare@2", "--format", style)
        assert told.code == 0 and "Who found the accepted equivalents" in told.out
    assert "no expansion here made this version" in equirank("annotate", "report", "-b", "demo-skills").out


def test_what_cannot_be_is_refused_before_anything_is_asked(
    equirank: Run, judge: LlmServer, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_here(*_: object) -> None:
        raise ModelError("The model is not on this machine and the hub cannot be reached.")

    monkeypatch.setattr(naming, "shared_encoder", not_here)
    run = ("annotate", "run", "-b", str(folder), "--version", "2", "--budget", "1")
    for options, code, said in (
        (("--judge", JUDGE), 3, "name other retrievers with --pool"),
        (("--judge", "judge", "--pool", "bm25"), 2, "provider/model"),
        ((*HOW, "--verify", "perhaps"), 2, "both or function_only"),
        ((*HOW, "--preset", "best"), 2, "card, paper"),
        ((*HOW, "--out", str(folder)), 2, "exists and is not empty"),
        ((*HOW, "--out", ""), 2, "--out is empty"),
        ((*HOW, "--out", str(folder / "tools.jsonl" / "new")), 2, "cannot be written"),
        ((*HOW, "--out", "/proc/new/er"), 2, "cannot be written"),
        ((*HOW, "--depth", "9" * 20), 2, "give a number from 1 to 1,000"),
        ((*HOW, "--budget", "1e308"), 2, "give 0 to 1,000,000"),
        (("--judge", JUDGE, "--pool", "no-such-model"), 3, "no-such-model"),
    ):
        done = equirank(*run, *options)
        assert done.code == code and said in words_of(done.err), (options, done.err)
    assert equirank("annotate", "list").out.startswith("no expansions yet")
    taken = equirank("annotate", "run", "-b", str(folder), "--version", "1", *HOW, "--budget", "1")
    assert taken.code == 1 and "bare@1 is stored" in taken.err
    (tmp_path / "answers.jsonl").write_text("{}")
    assert (
        equirank("annotate", "import-batch", str(tmp_path / "answers.jsonl"), "-b", "bare", "--version", "7").code == 1
    )
    assert equirank("annotate", "report", "-b", "tooleq").code == 1
    # A batch file names the model that it is for; nobody is asked.
    export = ("-b", "bare", "--version", "9", *HOW, "--judge-decompose", "openai/planner")
    assert equirank("annotate", "export-batch", str(tmp_path), *export).code == 2
    written = equirank("annotate", "export-batch", str(tmp_path / "round.jsonl"), *export)
    assert "round.jsonl (for planner): 4 questions to answer" in written.out, written.err
    assert judge.count == 0
    # What is refused leaves an attempt as it was; so does one that a model was asked for.
    spent = equirank(*run[:4], "--version", "8", "--max-calls", "5", *HOW)
    assert spent.code == 4 and judge.count == 5
    for options, said in ((("--budget", "inf"), "give 0 to 1,000,000"), (("--max-calls", "9"), "cap 100, here 60")):
        other = equirank(*run[:4], "--version", "8", *HOW, "--cap", "60", *options)
        assert other.code == 2 and said in other.err, other.err
    # An attempt that came to nothing gives way to other settings; one that is begun does not.
    assert equirank(*run, *HOW, "--max-calls", "0").code == 4
    assert equirank(*run, *HOW, "--cap", "50", "--max-calls", "1000", "-q").code == 0
    other = equirank(*run, *HOW, "--cap", "60")
    assert other.code == 2 and "cap 50, here 60" in other.err
