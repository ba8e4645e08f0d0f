"""A batch file out, an answers file in."""

from __future__ import annotations

import json

import pytest

from pipeline.errors import JudgeError
from pipeline.llm import batch_export
from pipeline.llm.batch_export import BatchWriter
from pipeline.llm.batch_import import BatchAnswers
from pipeline.llm.client import LiveAsker
from pipeline.llm.config import AskingConfig
from pipeline.llm.memory import MemoryAnswers
from pipeline.llm.prices import Price
from pipeline.llm.records import Answer, Failure, Pending
from pipeline.llm.request import AnswerFormat
from pipeline.llm.stores import Budget
from tests.llm_server import LlmServer, answer_batch, batch_answer
from tests.pipeline.llm.conftest import echo
from tests.pipeline.llm.conftest import make_question as question

TEXTS = ["a", "b", "c äöü\u2028", "b"]
PRICES = {"openai/gpt-4o-mini": Price(1e-6, 2e-6, 5e-7, 1e-6)}


def export(answers, path, texts=TEXTS, **options):
    with BatchWriter(answers, path, **options) as writer:
        outcomes = writer.ask([question(text) for text in texts])
    return writer, outcomes


def test_out_and_in_gives_the_same_as_live(answers, tmp_path):
    writer, outcomes = export(answers, tmp_path / "batch.jsonl")
    assert outcomes == [Pending(question(text).key) for text in TEXTS]
    assert writer.pending == 3 and writer.parts == [tmp_path / "batch.jsonl"]
    first = json.loads((tmp_path / "batch.jsonl").read_text().splitlines()[0])
    assert first["custom_id"] == question("a").key
    assert (first["method"], first["url"], first["body"]["model"]) == ("POST", "/v1/chat/completions", "gpt-4o-mini")
    answer_batch(tmp_path / "batch.jsonl", tmp_path / "answers.jsonl", echo)
    importing = BatchAnswers(answers, tmp_path / "answers.jsonl", Budget("job", 0.0), PRICES)
    imported = importing.ask([question(text) for text in TEXTS])
    importing.close()
    report = importing.report()
    assert (report.lines, report.accepted, report.known, report.missing, report.problems) == (3, 3, 0, 0, ())
    (line,) = answers.meter("job")
    assert line.usage.calls == 3 and line.usage.cost == pytest.approx(3 * (40 * 5e-7 + 60 * 1e-6))
    # A second time changes nothing.
    again = BatchAnswers(answers, tmp_path / "answers.jsonl", Budget("job"))
    again.ask([question(text) for text in TEXTS])
    assert (again.report().accepted, again.report().known) == (0, 3)
    assert answers.meter("job") == [line]
    again.close()
    with LlmServer(echo) as server:
        other = LiveAsker(MemoryAnswers(), AskingConfig(base_url=server.url))
        live = other.ask([question(text) for text in TEXTS])
    assert [outcome.value for outcome in live] == [outcome.value for outcome in imported]
    assert export(answers, tmp_path / "rest.jsonl")[0].pending == 0
    assert (tmp_path / "rest.jsonl").read_text() == ""


def test_whatever_is_wrong_with_an_answers_file_is_said_by_line(answers, tmp_path):
    texts = ["good", "invalid", "error", "refused", "cut", "missing", "objected"]
    export(answers, tmp_path / "batch.jsonl", texts)
    requests = [json.loads(line) for line in (tmp_path / "batch.jsonl").read_text().splitlines()]
    by_text = {request["body"]["messages"][1]["content"]: request for request in requests}
    lines = {text: batch_answer(request, echo) for text, request in by_text.items()}
    lines["invalid"]["response"]["body"]["choices"][0]["message"]["content"] = '{"echo": 3}'
    lines["error"] |= {"response": None, "error": {"code": "batch_expired", "message": "too late"}}
    lines["refused"]["response"] = {"status_code": 429, "body": {"error": {"message": "slow down"}}}
    lines["cut"]["response"]["body"]["choices"][0]["finish_reason"] = "length"
    stranger = {**lines["good"], "custom_id": "f" * 64}
    written = [
        json.dumps(lines["good"]),
        "{ not json",
        "",
        json.dumps(lines["invalid"]),
        json.dumps(lines["error"]),
        json.dumps(lines["good"]),
        json.dumps(stranger),
        '["a list"]',
        json.dumps(lines["refused"]),
        json.dumps(lines["cut"]),
        json.dumps(lines["objected"]),
        "x" * 5_000_000,
    ]
    path = tmp_path / "answers.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(written).encode())

    def check(asked, value):
        return "the check objects" if value["echo"] == "objected" else None

    importing = BatchAnswers(answers, path, Budget("job"))
    outcomes = dict(zip(texts, importing.ask([question(text) for text in texts], check=check), strict=True))
    report = importing.report()
    assert isinstance(outcomes["good"], Answer) and outcomes["missing"] == Pending(question("missing").key)
    assert all(isinstance(outcomes[text], Failure) for text in ("invalid", "error", "refused", "cut", "objected"))
    assert [(problem.line, problem.kind) for problem in report.problems] == [
        (2, "malformed"),
        (4, "invalid"),
        (5, "error"),
        (6, "duplicate"),
        (7, "unknown"),
        (8, "malformed"),
        (9, "error"),
        (10, "invalid"),
        (11, "invalid"),
        (12, "malformed"),
    ]
    assert (report.lines, report.accepted, report.missing) == (11, 1, 1)
    assert "too late" in report.problems[2].message and "slow down" in report.problems[6].message
    # Asked again in another part of the work, a bad line is no second problem.
    assert isinstance(importing.ask([question("invalid")], check=check)[0], Failure)
    assert importing.report() == report
    # What failed is exported again on request only, and a good answer puts it right.
    assert export(answers, tmp_path / "second.jsonl", texts)[0].pending == 1
    assert export(answers, tmp_path / "second.jsonl", texts, retry_failed=True)[0].pending == 6
    answer_batch(tmp_path / "second.jsonl", tmp_path / "better.jsonl", echo)
    better = BatchAnswers(answers, tmp_path / "better.jsonl", Budget("job"))
    assert all(isinstance(outcome, Answer) for outcome in better.ask([question(text) for text in texts]))
    assert better.report().problems == ()


def test_an_answer_counts_wherever_it_stands_in_the_file(answers, tmp_path):
    texts = ["before", "after", "twice", "neither"]
    export(answers, tmp_path / "batch.jsonl", texts)
    requests = [json.loads(line) for line in (tmp_path / "batch.jsonl").read_text().splitlines()]
    good = {request["body"]["messages"][1]["content"]: batch_answer(request, echo) for request in requests}
    error = {text: {**line, "response": None, "error": {"message": "too late"}} for text, line in good.items()}
    prose = json.loads(json.dumps(good["twice"]))
    prose["response"]["body"]["choices"][0]["message"]["content"] = "I cannot."
    nothing = {**good["neither"], "response": None, "error": None}
    written = [good["before"], error["before"], error["after"], good["after"], prose, error["twice"], good["twice"]]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in [*written, nothing]))
    importing = BatchAnswers(answers, path, Budget("job"))
    outcomes = importing.ask([question(text) for text in texts])
    importing.close()
    assert [type(outcome) for outcome in outcomes] == [Answer, Answer, Answer, Pending]
    report = importing.report()
    assert [(problem.line, problem.kind) for problem in report.problems] == [
        (2, "duplicate"),
        (3, "duplicate"),
        (5, "duplicate"),
        (6, "duplicate"),
        (8, "malformed"),
    ]
    assert "line 4, which counts" in report.problems[1].message
    assert "neither a response nor an error" in report.problems[4].message
    assert (report.accepted, report.missing) == (3, 1)


def test_large_batches_are_cut_into_parts(answers, tmp_path, monkeypatch):
    monkeypatch.setattr(batch_export, "MOST_LINES", 2)
    writer, _ = export(answers, tmp_path / "batch.jsonl", list("abcde"))
    assert [path.name for path in writer.parts] == ["batch.jsonl", "batch.2.jsonl", "batch.3.jsonl"]
    assert [len(path.read_text().splitlines()) for path in writer.parts] == [2, 2, 1]


def test_a_file_is_for_one_model(tmp_path, answers):
    """Providers refuse a batch that names several."""
    mixed = [question(str(n), model=f"openai/{'ab'[n % 2]}") for n in range(5)]
    with BatchWriter(answers, tmp_path / "batch.jsonl") as writer:
        writer.ask(mixed[:2])
        writer.ask(mixed[2:])
    models = [[json.loads(line)["body"]["model"] for line in path.read_text().splitlines()] for path in writer.parts]
    assert models == [["a", "a", "a"], ["b", "b"]] and writer.pending == 5


def test_servers_without_schemas_get_json_objects(answers, tmp_path):
    export(answers, tmp_path / "batch.jsonl", ["a"], answer_format=AnswerFormat.JSON_OBJECT)
    assert json.loads((tmp_path / "batch.jsonl").read_text())["body"]["response_format"]["type"] == "json_object"


def test_files_that_cannot_be_used_are_named(answers, tmp_path):
    with pytest.raises(JudgeError, match="no-such-file"):
        BatchAnswers(answers, tmp_path / "no-such-file", Budget("job"))
    with pytest.raises(JudgeError, match="cannot be written"), BatchWriter(answers, tmp_path / "no" / "folder.jsonl"):
        pass
