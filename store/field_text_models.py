"""The SQL tables of multi-field retrieval: texts in fields, and the parameters learned over them.

Both are immutable: a row is named by what it was made of, and making the same again finds the row that is there.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import CheckConstraint, Index, Text, UniqueConstraint
from sqlmodel import Field

from store.models import Table, _json, _one_of, utc_now


class FieldTextKind(StrEnum):
    """What the texts are of: standardized tools, or rewritten queries."""

    TOOLS = "tools"
    QUERIES = "queries"


class FieldTextSource(StrEnum):
    """Who put the texts into fields; the words that a row of the leaderboard says."""

    RULES = "rule-based"
    LLM = "llm"
    IMPORTED = "imported"
    ORIGINAL = "original query"


class ParameterSource(StrEnum):
    """Where parameters come from: learned here on the other folds' labels, or brought by somebody."""

    LEARNED = "learned"
    IMPORTED = "imported"


class FieldTexts(Table, table=True):
    """The tools or the queries of one benchmark version in fields.

    Attributes:
        id: 32 hex digits of the hash of everything that names it (``store.access.mftr.field_text_id``).
        model: the language model, litellm's name; "" where there was none.
        prompts: ``name@hash`` of each prompt file that was used.
        rules_version: of the deterministic standardizer; "" for other sources.
        artifact: hash of a frame ``id, fields, failure``: fields in the published JSON shape, null where they failed.
        items: tools or queries of the benchmark version.
        filled: how many have fields; the others failed, or an imported file lacks them.
        failures: how many a language model gave no valid answer for.
        counts: other figures by name, such as ``with parameters``.
        label: its owner's words, "" for none.
        person: who had it made; "" for the site itself.
    """

    __tablename__ = "field_texts"
    __table_args__ = (
        _one_of("kind", FieldTextKind),
        _one_of("source", FieldTextSource),
        CheckConstraint("filled >= 0 AND filled <= items AND failures >= 0 AND failures <= items", name="counts"),
        Index("ix_field_texts_board", "benchmark_version_id", "kind"),
    )

    id: str = Field(primary_key=True)
    benchmark_version_id: int = Field(foreign_key="benchmark_version.id")
    kind: str
    source: str
    model: str = ""
    prompts: list[str] = Field(default_factory=list, sa_column=_json())
    rules_version: str = ""
    artifact: str
    items: int
    filled: int
    failures: int = 0
    counts: dict[str, Any] = Field(default_factory=dict, sa_column=_json())
    label: str = Field(default="", sa_type=Text)
    person: str = ""
    created_at: datetime = Field(default_factory=utc_now)


class LearnedParameters(Table, table=True):
    """What one fold learned: the weights of four fields and of missing parameters.

    Attributes:
        set_id: names the folds of one training together (``store.access.mftr.parameter_set_id``).
        contract_hash: how the model encodes; parameters of one model mean nothing to another.
        tools, queries: ids of the field texts that they were learned over.
        settings_hash: hash of ``settings``.
        settings: everything else that decides what is learned: preset and its details, training, seed.
        fold: the fold that they apply to, learned on the others.
        weights: of description, parameters, response and examples, in this order.
        tau: threshold of a parameter's score, below which it counts as missing.
        required_penalty, optional_penalty: what a missing parameter costs.
    """

    __tablename__ = "learned_parameters"
    __table_args__ = (
        _one_of("source", ParameterSource),
        UniqueConstraint("set_id", "fold"),
        CheckConstraint("fold >= 0 AND fold < folds", name="fold"),
        Index("ix_learned_parameters_board", "benchmark_version_id", "contract_hash"),
    )

    id: int | None = Field(default=None, primary_key=True)
    set_id: str
    benchmark_version_id: int = Field(foreign_key="benchmark_version.id")
    contract_hash: str
    tools: str = Field(foreign_key="field_texts.id")
    queries: str = Field(foreign_key="field_texts.id")
    settings_hash: str
    settings: dict[str, Any] = Field(default_factory=dict, sa_column=_json())
    source: str
    fold: int
    folds: int
    weights: list[float] = Field(sa_column=_json())
    bias: float = 0.0
    tau: float
    alpha: float
    required_penalty: float
    optional_penalty: float
    created_at: datetime = Field(default_factory=utc_now)
