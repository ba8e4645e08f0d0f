"""The records of MFTR: a tool in four fields and a query rewritten for them (MFTR paper, §3.1–3.2).

The JSON shapes are those of the published data: ``{"description", "parameters", "response", "examples"}`` for a tool
and ``{"tool_needs", "extracted_arguments"}`` for a query. Nothing is added and nothing reordered, since the text of a
parameter is scored as it is stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"


class Field(StrEnum):
    """The four fields of a standardized tool, in the order of the learned weights."""

    DESCRIPTION = "description"
    PARAMETERS = "parameters"
    RESPONSE = "response"
    EXAMPLES = "examples"


class Standardizer(StrEnum):
    """Who filled the fields."""

    RULES = "rule-based"
    LLM = "llm"
    IMPORTED = "imported"


@dataclass(frozen=True)
class Parameter:
    """One parameter of a tool.

    Attributes:
        stored: the parameter's own keys (``type``, ``description``, ``required``, ``example``, …) in document order;
            a key that the document lacks is absent, never null.
    """

    name: str
    stored: Mapping[str, Json]

    @property
    def required(self) -> bool:
        """Required unless the document says otherwise (MFTR §3.1)."""
        return self.stored.get("required", True) is not False

    @property
    def text(self) -> str:
        """What is scored against an argument: the stored keys with the name last, as JSON."""
        return json.dumps({**self.stored, "name": self.name})


@dataclass(frozen=True)
class Example:
    """A user's wish and the call that serves it; only the wish is scored."""

    user_intent: str
    tool_call: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class StandardizedTool:
    """A tool's documentation in four fields; what the document does not say is empty."""

    tool_id: str
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    response: str = ""
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True)
class ToolNeed:
    """One tool that a query needs: ↔ examples, description and response."""

    user_intent: str
    tool_description: str
    expected_response: str


@dataclass(frozen=True)
class Argument:
    """A value that a query supplies, described by role and type; ↔ parameters."""

    name: str
    description: str

    @property
    def text(self) -> str:
        """What is scored against a parameter."""
        return f"{self.name}: {self.description}"


@dataclass(frozen=True)
class RewrittenQuery:
    """A query as tool needs and arguments.

    Attributes:
        test_fold: the fold whose learned parameters apply (published data); None when not assigned.
    """

    query_id: str
    needs: tuple[ToolNeed, ...]
    arguments: tuple[Argument, ...] = ()
    test_fold: int | None = None


def original_query(query_id: str, text: str) -> RewrittenQuery:
    """The query itself as its one need in every field, without arguments ("original query" variant)."""
    return RewrittenQuery(query_id, (ToolNeed(text, text, text),))
