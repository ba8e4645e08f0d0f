from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from pipeline.jobs.llm_answers import StoredAnswers
from pipeline.llm.memory import MemoryAnswers
from pipeline.llm.records import Message, Question, Sampling
from pipeline.llm.stores import AnswerStore
from store.database import Database
from store.settings import Settings

SCHEMA = {
    "type": "object",
    "properties": {"echo": {"type": "string"}},
    "required": ["echo"],
    "additionalProperties": False,
}


@pytest.fixture(params=["sqlite", "memory"])
def answers(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[AnswerStore]:
    if request.param == "memory":
        yield MemoryAnswers()
        return
    database = Database(Settings(home=tmp_path / "home"))
    database.migrate()
    yield StoredAnswers(database)
    database.close()


def make_question(text: str, *, model: str = "openai/gpt-4o-mini", purpose: str = "test", **sampling: int) -> Question:
    messages = (Message("system", "Echo what the user says."), Message("user", text))
    return Question(model, "echo@1", messages, SCHEMA, "echo", purpose, Sampling(**{"max_tokens": 100} | sampling))


@pytest.fixture
def memory() -> MemoryAnswers:
    return MemoryAnswers()


def echo(body: dict) -> dict:
    """The right answer to ``make_question``; the system's turn is the first."""
    return {"echo": next(message["content"] for message in body["messages"] if message["role"] == "user")}
