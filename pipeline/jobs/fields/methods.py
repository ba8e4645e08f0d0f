"""The methods beyond Full-Doc that retrieve with fields or with a language model: what each needs, and its identity."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from pipeline.retrieval.retrieve import Method


class FieldMethod(StrEnum):
    """MFTR, its rivals and its ablation variants; keys as in ``pipeline/published/data/methods.toml``."""

    MFTR = "mftr"
    EASYTOOL = "easytool"
    PLUTO = "pluto"
    ONLINERAG = "onlinerag"
    STAND_ONLY = "stand-only"
    REWRITE_ONLY = "rewrite-only"
    STAND_REWRITE = "stand-rewrite"
    WEIGHTING_ONLY = "weighting-only"
    WEIGHTING_STAND = "weighting-stand"
    WEIGHTING_REWRITE = "weighting-rewrite"
    WITHOUT_WEIGHTING = "without-weighting"
    WITHOUT_PENALTY = "without-penalty"

    @property
    def needs(self) -> Needs:
        """What it works with."""
        return _NEEDS[self]


AnyMethod: TypeAlias = Method | FieldMethod


@dataclass(frozen=True)
class Needs:
    """What a method works with.

    Attributes:
        tools: tools in fields.
        queries: queries rewritten into fields.
        learns: it learns on the labels of the other folds, so a preset and imported weights mean something.
        asks: it asks a language model itself.
        dense: it is defined for embeddings only.
    """

    tools: bool = False
    queries: bool = False
    learns: bool = False
    asks: bool = False
    dense: bool = False

    @property
    def fields(self) -> bool:
        """Whether it is MFTR or a variant of it, with MFTR's presets."""
        return self.tools or self.queries or self.learns


_NEEDS = {
    FieldMethod.MFTR: Needs(tools=True, queries=True, learns=True),
    FieldMethod.EASYTOOL: Needs(asks=True),
    FieldMethod.PLUTO: Needs(asks=True),
    FieldMethod.ONLINERAG: Needs(dense=True),
    FieldMethod.STAND_ONLY: Needs(tools=True),
    FieldMethod.REWRITE_ONLY: Needs(queries=True),
    FieldMethod.STAND_REWRITE: Needs(tools=True, queries=True),
    FieldMethod.WEIGHTING_ONLY: Needs(learns=True),
    FieldMethod.WEIGHTING_STAND: Needs(tools=True, learns=True),
    FieldMethod.WEIGHTING_REWRITE: Needs(queries=True, learns=True),
    FieldMethod.WITHOUT_WEIGHTING: Needs(tools=True, queries=True),
    FieldMethod.WITHOUT_PENALTY: Needs(tools=True, queries=True, learns=True),
}

#: What a preset's name follows in a label; MFTR's variants have its presets.
_PRESETS_OF = {FieldMethod.PLUTO: "PLUTo", FieldMethod.ONLINERAG: "OnlineRAG"}
#: Every method that ``equirank retrieve`` and a job know.
METHODS: dict[str, AnyMethod] = {str(method): method for kind in (Method, FieldMethod) for method in kind}

#: Words of a request for the field texts that need no language model, for those of one, else an id.
RULES = "rule-based"
ORIGINAL = "original"
LLM = "llm"


@dataclass(frozen=True)
class FieldOptions:
    """What a request of a ``FieldMethod`` says beyond model and contract, settled: only what the method uses is set.

    Attributes:
        method: the method.
        preset: of the method; "" where it has none.
        tools: ``rule-based``, ``llm`` or the id of stored field texts; "" where the method needs none.
        queries: ``original``, ``llm`` or the id of stored field texts; "" where the method needs none.
        weights: id of an imported parameter set; "" learns.
        llm: the language model, ``provider/model``; "" where none is asked.
        details: everything else that decides the result, by name: settings, versions of rules and prompts.
    """

    method: FieldMethod
    preset: str
    tools: str
    queries: str
    weights: str
    llm: str
    details: dict[str, Any]

    @property
    def asks(self) -> bool:
        """Whether a language model is asked."""
        return bool(self.llm)

    @property
    def identity(self) -> dict[str, Any]:
        """What two requests must share to measure the same."""
        return {
            "preset": self.preset,
            "tools": self.tools,
            "queries": self.queries,
            "weights": self.weights,
            "llm": self.llm,
            "details": self.details,
        }

    @property
    def label(self) -> str:
        """The options as a row of the leaderboard says them."""
        parts = []
        if self.preset:
            parts.append(f"{_PRESETS_OF.get(self.method, 'MFTR')} {self.preset}")
        parts += [document_words(self.tools, self.llm)] if self.tools else []
        parts += [query_words(self.queries, self.llm)] if self.queries else []
        if self.weights:
            parts.append(f"imported weights {self.weights[:8]}")
        if self.method.needs.asks:
            parts.append(f"asks {_short(self.llm)}")
        return ", ".join(parts)


def document_words(source: str, llm: str = "") -> str:
    """Who put the documents into fields: ``rule-based documents``, ``documents by openai/gpt-4o-mini``, …."""
    if source == RULES:
        return f"{RULES} documents"
    return f"documents by {_short(llm)}" if source == LLM else f"stored documents {source[:8]}"


def query_words(source: str, llm: str = "") -> str:
    """Who rewrote the queries: ``original query``, ``rewritten by openai/gpt-4o-mini``, …."""
    if source == ORIGINAL:
        return "original query"
    return f"rewritten by {_short(llm)}" if source == LLM else f"stored queries {source[:8]}"


def _short(llm: str) -> str:
    return llm if len(llm) <= 48 else llm[:47] + "…"
