"""Tables of questions to language models: answers by content, every call, and what each scope has spent."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, Index, Text
from sqlmodel import Field

from store.models import Table, utc_now


class LlmAnswer(Table, table=True):
    """A question's answer, or that it has none; shared by everything that asks.

    Attributes:
        key: sha256 over everything that decides the answer.
        state: ``answer`` or ``failure``.
        value: the answer as ASCII JSON; null for a failure.
        reason: why there is no answer.
        prompt: name and version of the prompt file.
        attempts: calls that it took.
        cost: US dollars of those calls; null when a price is unknown.
        seconds: their time.
    """

    __tablename__ = "llm_answer"
    __table_args__ = (
        CheckConstraint("state IN ('answer', 'failure')", name="state"),
        CheckConstraint("(state = 'answer') = (value IS NOT NULL)", name="value"),
    )

    key: str = Field(primary_key=True)
    state: str
    value: str | None = Field(default=None, sa_type=Text)
    reason: str = Field(default="", sa_type=Text)
    model: str
    prompt: str
    purpose: str
    attempts: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None = None
    seconds: float
    created_at: datetime = Field(default_factory=utc_now)


class LlmCall(Table, table=True):
    """One request to a model, written before it is sent.

    Attributes:
        scope: whose budget it counts against, such as a job.
        state: ``sent`` (no end is known: in flight, or its process died), ``done``, ``refused`` (the provider did
            not take it, so it cost nothing), ``lost`` (it broke off after it was sent) or ``batch`` (imported).
        reserved_nano: the most that it can cost, in billionths of a US dollar; null when the price is unknown.
        cost: US dollars; the reserved amount where only that is known, null when the price is unknown.
    """

    __tablename__ = "llm_call"
    __table_args__ = (
        CheckConstraint("state IN ('sent', 'done', 'refused', 'lost', 'batch')", name="state"),
        Index("ix_llm_call_scope", "scope", "purpose", "model"),
    )

    id: str = Field(primary_key=True)
    scope: str
    key: str
    purpose: str
    model: str
    attempt: int
    state: str
    reserved_nano: int | None = Field(default=None, sa_type=BigInteger)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0
    sent_at: datetime = Field(default_factory=utc_now)


class LlmScope(Table, table=True):
    """What a scope has spent, calls in flight at their worst: what a budget is compared with.

    Attributes:
        calls: requests that were sent.
        spent_nano: billionths of a US dollar, over calls with a known price.
        unpriced: calls whose price is unknown.
    """

    __tablename__ = "llm_scope"

    scope: str = Field(primary_key=True)
    calls: int = 0
    spent_nano: int = Field(default=0, sa_type=BigInteger)
    unpriced: int = 0
