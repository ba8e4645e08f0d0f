"""Query rewriting against a recorded asker, a real loopback server, and batch files."""

from __future__ import annotations

import json

import pytest

from pipeline.llm.batch_export import BatchWriter
from pipeline.llm.batch_import import BatchAnswers
from pipeline.llm.client import LiveAsker
from pipeline.llm.config import AskingConfig, ProviderLimit
from pipeline.llm.memory import MemoryAnswers
from pipeline.llm.stores import Budget
from pipeline.mftr.rewriter import NO_TEXT, Feedback, check_answer, rewrite_by_model
from pipeline.mftr.schema import Argument, Parameter, StandardizedTool, original_query
from tests.llm_server import LlmServer, answer_batch
from tests.pipeline.baselines.judge import LLM, Recorded, fenced

TOOLS = [
    StandardizedTool("z", "Boils water for tea", (Parameter("litres", {"type": "number"}),), "Hot water"),
    StandardizedTool("a", "Grinds coffee beans"),
    StandardizedTool("m", ""),
    *(StandardizedTool(f"n{n:02}", f"Pours water number {n:02}") for n in range(30)),
]
QUERIES = [("q1", "Boil some water"), ("q2", " "), ("q3", "Grind beans, then boil water"), ("q4", "zzz")]


def rewritten_answer(user):
    request = fenced(user)["request"]
    needs = [
        {"user_intent": f" {part.strip()} ", "tool_description": "Does it", "expected_response": "It"}
        for part in request.split(", then ")
    ]
    arguments = [{"name": "amount", "description": "how much, a number"}, {"name": "amount", "description": "again"}]
    return {"tool_needs": needs, "extracted_arguments": arguments if "water" in request else []}


def recorded(empty=()):
    def answer(question):
        user = question.messages[-1].content
        return None if fenced(user)["request"] in empty else rewritten_answer(user)

    return Recorded(answer)


def server_answer(body):
    return rewritten_answer(body["messages"][-1]["content"])


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "loopback")


def test_one_question_a_query_with_as_many_needs_as_it_has():
    asker = recorded()
    made = rewrite_by_model(QUERIES, TOOLS, asker, LLM)
    assert len(asker.asked) == 3 and (made.questions, made.pending) == (3, 0)
    assert [(query.query_id, len(query.needs)) for query in made.queries] == [("q1", 1), ("q3", 2), ("q4", 1)]
    assert made.queries[1].needs[1].user_intent == "boil water"
    assert made.queries[0].arguments == (Argument("amount", "how much, a number"),)
    assert made.queries[2].arguments == ()
    assert made.failures == {"q2": NO_TEXT}


def test_the_best_twenty_descriptions_and_the_first_document_are_shown():
    asker = recorded()
    rewrite_by_model(QUERIES, TOOLS, asker, LLM)
    parts = fenced(asker.asked[0].messages[-1].content)
    listed = parts["descriptions"].splitlines()
    assert len(listed) == 20 and listed[0] == "1. Boils water for tea"
    # Ties go by id, descending, as in every ranking here.
    assert listed[1] == "2. Pours water number 29"
    document = json.loads(parts["documentation_of_the_first"])
    assert document == {
        "description": "Boils water for tea",
        "parameters": {"litres": {"type": "number"}},
        "response": "Hot water",
        "examples": [],
    }
    nothing = fenced(asker.asked[2].messages[-1].content)
    assert nothing["descriptions"] == "(none)" and nothing["documentation_of_the_first"] == "(none)"


def test_the_order_of_the_tools_changes_no_question():
    first, second = recorded(), recorded()
    rewrite_by_model(QUERIES, TOOLS, first, LLM)
    rewrite_by_model(QUERIES, TOOLS[::-1], second, LLM)
    assert [question.key for question in first.asked] == [question.key for question in second.asked]


def test_no_tools_and_no_queries():
    assert Feedback([]).tools(["a"]) == [[]]
    assert rewrite_by_model([], TOOLS, recorded(), LLM).queries == ()
    assert len(rewrite_by_model(QUERIES, [], recorded(), LLM).queries) == 3


def test_a_failed_query_is_named():
    made = rewrite_by_model(QUERIES, TOOLS, recorded({"zzz"}), LLM)
    assert set(made.failures) == {"q2", "q4"} and made.failures["q4"]
    assert made.rewritten.failures == made.failures


@pytest.mark.parametrize(
    ("needs", "arguments", "said"),
    [
        ([], [], "tool_needs is empty"),
        ([{"user_intent": "u", "tool_description": " ", "expected_response": "e"}], [], "blank tool_description"),
        ([{"user_intent": "u", "tool_description": "t", "expected_response": "e"}], [{"name": ""}], "no name"),
    ],
)
def test_answers_without_needs_are_invalid(needs, arguments, said):
    asker = recorded()
    rewrite_by_model(QUERIES[:1], TOOLS, asker, LLM)
    assert said in (check_answer(asker.asked[0], {"tool_needs": needs, "extracted_arguments": arguments}) or "")


def test_a_server_that_finds_no_needs_is_asked_again_and_then_a_failure():
    seen = {}

    def answer(body):
        user = body["messages"][1]["content"]
        text = fenced(user)["request"]
        seen[text] = seen.get(text, 0) + 1
        if text == "zzz" or (text == "Boil some water" and seen[text] == 1):
            return {"tool_needs": [], "extracted_arguments": []}
        return rewritten_answer(user)

    with LlmServer(answer) as server:
        config = AskingConfig(base_url=server.url, limit=ProviderLimit(4), backoff_seconds=0.02)
        made = rewrite_by_model(QUERIES, TOOLS, LiveAsker(MemoryAnswers(), config), LLM)
    assert [query.query_id for query in made.queries] == ["q1", "q3"]
    assert seen["Boil some water"] == 2 and seen["zzz"] > 1
    assert "tool_needs is empty" in made.failures["q4"]


def test_batch_files_give_the_same_as_live_calls(tmp_path):
    store = MemoryAnswers()
    with BatchWriter(store, tmp_path / "batch.jsonl") as writer:
        waiting = rewrite_by_model(QUERIES, TOOLS, writer, LLM)
    assert waiting.pending == 3 and waiting.queries == () and set(waiting.failures) == {"q2"}
    assert answer_batch(tmp_path / "batch.jsonl", tmp_path / "answers.jsonl", server_answer) == 3
    reader = BatchAnswers(store, tmp_path / "answers.jsonl", Budget("test"))
    imported = rewrite_by_model(QUERIES, TOOLS, reader, LLM)
    reader.close()
    assert imported.queries == rewrite_by_model(QUERIES, TOOLS, recorded(), LLM).queries
    assert imported.pending == 0


def test_original_query_is_one_need_without_arguments():
    query = original_query("q", "text")
    assert [(need.user_intent, need.tool_description, need.expected_response) for need in query.needs] == [
        ("text",) * 3
    ]
    assert query.arguments == ()
