"""``equirank mftr …`` and ``retrieve --method mftr`` as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.formats.benchmark_folder import read_benchmark_folder
from pipeline.jobs.first_start import demo_folder
from pipeline.retrieval.embedding_cache import FolderEmbeddingCache
from tests.llm_server import LlmServer
from tests.pipeline.command_line import CommandLine
from tests.pipeline.jobs.field_answers import answer
from tests.pipeline.jobs.worker_process import fields_benchmark

DEMO = str(demo_folder("tools"))
LLM = "openai/tester"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small benchmark folder."""
    from pipeline.formats.benchmark_folder import write_benchmark_folder

    made = tmp_path_factory.mktemp("benchmark") / "fields"
    write_benchmark_folder(fields_benchmark(), made)
    return made


@pytest.mark.slow
def test_files_go_round_without_a_database(equirank: CommandLine, folder: Path, tmp_path: Path) -> None:
    away = {"EQUIRANK_DATABASE_URL": "postgresql://me:secret@127.0.0.1:1/none", "EQUIRANK_HOME": str(tmp_path / "home")}
    benchmark = ("-b", str(folder))
    tools, queries, folds = tmp_path / "tools.jsonl", tmp_path / "queries.jsonl", tmp_path / "folds.jsonl"
    weights, out = tmp_path / "weights.json", tmp_path / "run.trec"
    done = equirank("mftr", "standardize", *benchmark, "--out", str(tools), **away)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in tools.read_text().splitlines()]
    assert len(rows) == fields_benchmark().tools.height and all(row["augmented"]["description"] for row in rows)
    assert equirank("mftr", "rewrite", *benchmark, "--out", str(queries), **away).returncode == 0
    files = ("--standardized", str(tools), "--rewritten", str(queries))
    done = equirank(
        "mftr", "train", *benchmark, "-m", "bm25", *files, "--out", str(weights), "--rewritten-out", str(folds), **away
    )
    assert done.returncode == 0, done.stderr
    assert "weight shares" in done.stdout
    trained = equirank("mftr", "score", *benchmark, "-m", "bm25", *files, "--format", "json", **away)
    files = ("--standardized", str(tools), "--rewritten", str(folds), "--weights", str(weights))
    given = equirank("mftr", "score", *benchmark, "-m", "bm25", *files, "--format", "json", "--out", str(out), **away)
    assert trained.returncode == given.returncode == 0, given.stderr
    assert json.loads(given.stdout)["scores"] == json.loads(trained.stdout)["scores"]
    assert equirank("validate", str(out), *benchmark, **away).returncode == 0
    plain = equirank("retrieve", *benchmark, "-m", "bm25", "--method", "mftr", "--out", str(tmp_path / "same"), **away)
    assert plain.returncode == 0, plain.stderr

    def lists(path: Path) -> list[list[str]]:
        return [line.split()[:4] for line in path.read_text().splitlines()]

    assert lists(tmp_path / "same") == lists(out), "rules and original queries are what the files hold"
    assert not (tmp_path / "home" / "equirank.sqlite3").exists()
    wrong = equirank("mftr", "score", *benchmark, "-m", "bm25", "--weights", str(weights), **away)
    assert wrong.returncode == 1 and "test_fold" in wrong.stderr


@pytest.mark.slow
def test_ablations_are_tables(equirank: CommandLine, folder: Path, tmp_path: Path) -> None:
    csv = tmp_path / "table.csv"
    done = equirank("mftr", "ablate", "-b", str(folder), "-m", "bm25", "--out", str(csv), "--format", "json")
    assert done.returncode == 0, done.stderr
    rows = {row["variant"]: row for row in json.loads(done.stdout)["rows"]}
    assert set(rows) == {"full-doc", "standardized-only", "weighting-only", "weighting-standardized", "mftr"}
    assert all(0 < row["ndcg_10_old"] <= row["ndcg_10_new"] <= 1 for row in rows.values())
    assert csv.read_text().startswith("variant,label")
    for of, column in (("fields", "field"), ("masking", "change_percent")):
        done = equirank("mftr", "ablate", "-b", str(folder), "-m", "bm25", "--of", of, "--format", "json")
        assert done.returncode == 0, done.stderr
        assert all(column in row for row in json.loads(done.stdout)["rows"])
    shown = equirank("mftr", "ablate", "-b", str(folder), "-m", "bm25", "--of", "fields").stdout
    parameters = next(line.split() for line in shown.splitlines() if line.startswith("parameters"))
    assert parameters[2:] == ["0", "—", "—"] and "nothing to rank by" in shown, "no query has arguments"
    assert equirank("mftr", "ablate", "-b", str(folder), "-m", "bm25", "--of", "moods").returncode == 2
    lacking = equirank("mftr", "ablate", "-b", str(folder), "-m", "bm25", "--only", "rewrite-only")
    assert lacking.returncode == 2 and "--rewritten" in lacking.stderr


@pytest.mark.slow
def test_a_model_is_asked_live_or_through_a_batch_with_the_same_result(
    equirank: CommandLine, folder: Path, tmp_path: Path
) -> None:
    with LlmServer(answer) as server:
        llm = {"EQUIRANK_LLM_BASE_URL": server.url, "EQUIRANK_LLM_PRICES": f"{LLM}=1/1"}
        live, home = tmp_path / "live.jsonl", {"EQUIRANK_HOME": str(tmp_path / "live-home")}
        command = ("mftr", "standardize", "-b", str(folder), "--llm", LLM)
        none = equirank(*command, "--out", str(live), **llm, **home)
        assert none.returncode == 2 and "--budget" in none.stderr
        poor = equirank(*command, "--out", str(live), "--budget", "0.004", **llm, **home)
        assert poor.returncode == 4 and "budget" in poor.stderr, poor.stderr
        assert not live.exists()
        done = equirank(*command, "--out", str(live), "--budget", "5", **llm, **home)
        assert done.returncode == 0, done.stderr
        assert all(count == 1 for count in server.counts().values())
        calls = server.count
        assert calls == 4 * fields_benchmark().tools.height
        # Again from the cache; and elsewhere through a batch.
        assert equirank(*command, "--out", str(live), "--budget", "5", **llm, **home).returncode == 0
        batch, answers, other = tmp_path / "batch.jsonl", tmp_path / "answers.jsonl", tmp_path / "batch-tools.jsonl"
        exported = equirank(*command, "--export-batch", str(batch))
        assert exported.returncode == 0 and f"{calls} questions" in exported.stdout, exported.stderr
        lines = []
        for request in map(json.loads, batch.read_text().splitlines()):
            message = {"role": "assistant", "content": json.dumps(answer(request["body"]))}
            body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
            line = {"custom_id": request["custom_id"], "response": {"status_code": 200, "body": body}, "error": None}
            lines.append(json.dumps(line) + "\n")
        answers.write_text("".join(lines[:-1]))
        half = equirank(*command, "--import-batch", str(answers), "--out", str(other))
        assert half.returncode == 0 and "1 question still" in half.stdout and not other.exists()
        answers.write_text("".join(lines))
        whole = equirank(*command, "--import-batch", str(answers), "--out", str(other))
        assert whole.returncode == 0, whole.stderr
        assert other.read_bytes() == live.read_bytes()
        assert server.count == calls


@pytest.mark.slow
def test_stored_texts_and_a_measured_run(equirank: CommandLine, tmp_path: Path) -> None:
    tools = tmp_path / "tools.jsonl"
    assert equirank("mftr", "standardize", "-b", DEMO, "--out", str(tools)).returncode == 0
    imported = equirank("mftr", "import", "-b", "demo-tools", "--standardized", str(tools), "--format", "json")
    assert imported.returncode == 0, imported.stderr
    set_id = json.loads(imported.stdout)["standardizer"]
    listed = json.loads(equirank("mftr", "texts", "-b", "demo-tools", "--format", "json").stdout)
    assert [(row["id"], row["source"], row["filled"]) for row in listed] == [
        (set_id, "imported", read_benchmark_folder(demo_folder("tools")).tools.height)
    ]
    command = ("retrieve", "-b", "demo-tools", "-m", "bm25", "--method", "mftr", "--mftr", "v2", "--format", "json")
    first = equirank(*command)
    assert first.returncode == 0, first.stderr
    second = equirank(*command, "--standardizer", set_id[:12])
    assert second.returncode == 0, second.stderr
    shown = [
        json.loads(equirank("runs", "show", json.loads(done.stdout)["run_id"], "--format", "json").stdout)
        for done in (first, second)
    ]
    assert shown[0]["run"]["contract"] == "card, MFTR v2, rule-based documents, original query"
    assert shown[1]["run"]["contract"] == f"card, MFTR v2, stored documents {set_id[:8]}, original query"
    assert shown[0]["run"]["ranking_hash"] == shown[1]["run"]["ranking_hash"], "the file holds what the rules made"
    assert shown[0]["run"]["method"] == "mftr" and shown[0]["run"]["trained_on_benchmark"] == "yes"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("mftr", "standardize", "-b", DEMO), 2, "--out"),
        (("mftr", "standardize", "-b", DEMO, "--budget", "1", "--out", "x"), 2, "--llm"),
        (("mftr", "rewrite", "-b", "nothing-here", "--out", "x"), 1, "nothing-here"),
        (("mftr", "score", "-b", DEMO, "-m", "bm25", "--standardized", "/nowhere"), 1, "no file"),
        (("mftr", "score", "-b", DEMO, "-m", "bm25", "--mftr", "v3"), 2, "paper"),
        (("mftr", "score", "-b", DEMO, "-m", "no-such-model"), 3, "no-such-model"),
        (("mftr", "import", "-b", "demo-tools"), 2, "--standardized"),
        (("retrieve", "-b", DEMO, "-m", "bm25", "--method", "easytool", "--out", "x"), 2, "budget"),
        (("retrieve", "-b", "demo-tools", "-m", "bm25", "--method", "full-doc", "--mftr", "v2"), 2, "full-doc"),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    equirank: CommandLine, arguments: tuple[str, ...], code: int, says: str
) -> None:
    done = equirank(*arguments)
    assert done.returncode == code, done.stderr
    assert says in done.stderr


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "preset", "options", "ndcg", "recall"),
    [
        ("bm25", "card", (), ".6704", ".6906"),
        ("bm25", "card", ("--printed-sign",), ".6323", ".6221"),
        ("minilm", "paper", (), ".7237", ".7863"),
    ],
)
def test_the_published_weights_give_the_published_figures(
    equirank: CommandLine,
    shared: Path,
    embeddings: FolderEmbeddingCache,
    model: str,
    preset: str,
    options: tuple[str, ...],
    ndcg: str,
    recall: str,
) -> None:
    data = shared / "data" / "mftr"
    done = equirank(
        "mftr", "score", "-b", str(shared / "benchmarks" / "apibank"), "-m", model, "--preset", preset,
        "--standardized", str(data / "standardized_tools_apibank.jsonl"),
        "--rewritten", str(data / "rewritten_queries.jsonl"),
        "--weights", str(data / "learned_params.json"), "--k", "10", *options,
        EQUIRANK_ARTIFACT_URL=str(embeddings.folder.parent),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = {words[0]: words[1:] for line in done.stdout.splitlines() if len(words := line.split()) == 3}
    assert rows["NDCG@10"] == [f"0{ndcg}"] * 2 and rows["Recall@10"] == [f"0{recall}"] * 2


def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    equirank: CommandLine, folder: Path, tmp_path: Path
) -> None:
    given = ("-b", str(folder), "-m", "bm25")
    for verb in (("mftr", "score"), ("mftr", "train"), ("mftr", "ablate"), ("retrieve",)):
        for out, said in ((tmp_path / "none" / "x", "there is no folder"), (tmp_path, "is a folder; name a file")):
            done = equirank(*verb, *given, "--out", str(out))
            assert done.returncode == 2 and said in done.stderr, (verb, done.stderr)


def test_options_that_the_method_passes_over_are_refused(equirank: CommandLine, folder: Path, tmp_path: Path) -> None:
    given = ("retrieve", "-b", str(folder), "-m", "bm25", "--out", str(tmp_path / "run"))
    for options, said in (
        (("--llm", LLM), "--llm, --budget and --retry-failed mean nothing"),
        (("--method", "mftr", "--llm", LLM, "--budget", "1"), "--standardizer llm and --rewriter llm ask one"),
        (("--method", "mftr", "--positives", "equivalents"), "the positives mean nothing to the method mftr"),
        (("--weights", "x"), "the weights mean nothing to the method full-doc"),
    ):
        done = equirank(*given, *options)
        assert done.returncode == 2 and said in done.stderr, (options, done.stderr)


@pytest.mark.slow
def test_imported_weights_need_queries_with_folds(equirank: CommandLine, tmp_path: Path) -> None:
    tools, queries, weights = (tmp_path / name for name in ("tools.jsonl", "queries.jsonl", "weights.json"))
    assert equirank("mftr", "standardize", "-b", DEMO, "--out", str(tools)).returncode == 0
    assert equirank("mftr", "rewrite", "-b", DEMO, "--out", str(queries)).returncode == 0
    fold = {"base_weight": [[1, 0, 0, 0]], "base_bias": [0], "tau": 0, "w_req": 0, "w_opt": 0, "alpha": 15}
    weights.write_text(json.dumps({"demo-tools": {"bm25__0": {"0": fold}}}))
    files = ("--standardized", str(tools), "--rewritten", str(queries), "--weights", str(weights))
    done = equirank("mftr", "import", "-b", "demo-tools", "-m", "bm25", *files)
    assert done.returncode == 1 and "have no test_fold from 0 to 0" in done.stderr, done.stderr


@pytest.mark.slow
def test_a_model_that_answers_nothing_makes_no_run_and_is_asked_again_on_demand(equirank: CommandLine) -> None:
    asked = (
        "retrieve", "-b", "demo-skills", "-m", "bm25", "--method", "mftr", "--rewriter", "llm", "--llm", LLM,
        "--budget", "1", "--format", "json",
    )  # fmt: skip
    with LlmServer(lambda body: "I would rather not.") as server:
        llm = {"EQUIRANK_LLM_BASE_URL": server.url, "EQUIRANK_LLM_PRICES": f"{LLM}=0/0", "EQUIRANK_LLM_ATTEMPTS": "1"}
        done = equirank(*asked, **llm)
        assert done.returncode == 1 and "gave no valid answer for any of 59 queries" in done.stderr, done.stderr
        calls, server.answer = server.count, answer
        assert equirank(*asked, **llm).returncode == 1 and server.count == calls, "a failure stands"
        again = equirank(*asked, "--retry-failed", **llm)
    assert again.returncode == 0, again.stderr
    assert server.count == 2 * calls and json.loads(again.stdout)["run_id"]
