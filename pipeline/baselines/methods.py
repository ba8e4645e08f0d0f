"""Every retrieval method with what it needs: what ``retrieve``, jobs, the command line and the pages iterate over."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pipeline.errors import UsageError
from pipeline.formats.messages import listing, quote
from pipeline.retrieval.registry import RetrieverEntry


class Calls(StrEnum):
    """How often a method asks a language model, in words a reader can add up."""

    NONE = "none"
    ONE = "1"
    FOUR = "4"
    ONE_AND_FUNCTIONS = "1 + functions"
    USE_CASES_AND_EDITS = "1 or 2"
    PLAN = "2 to 6"


@dataclass(frozen=True)
class MethodPreset:
    """One way to run a method.

    Attributes:
        name: what the command line takes.
        summary: what it changes, in a sentence.
    """

    name: str
    summary: str


@dataclass(frozen=True)
class MethodEntry:
    """One method.

    Attributes:
        name: what ``--method`` takes.
        label: as tables print it.
        summary: what it does, in a sentence.
        calls_per_tool: calls of a language model before the first query, for a tool.
        calls_per_query: calls for a query.
        dense_only: whether it is defined for dense models alone; for others there is no figure, which is not 0.
        learns: whether it is trained on the benchmark's own labels, fold by fold.
        needs_subqueries: whether the benchmark must have sub-queries.
        presets: the first is the default; empty when there is one way only. The encoding preset (``card``, ``paper``)
            is the model's, not the method's.
        without_llm: how it runs without a language model, in a sentence; "" when it cannot or need not.
    """

    name: str
    label: str
    summary: str
    calls_per_tool: Calls = Calls.NONE
    calls_per_query: Calls = Calls.NONE
    dense_only: bool = False
    learns: bool = False
    needs_subqueries: bool = False
    presets: tuple[MethodPreset, ...] = ()
    without_llm: str = ""

    @property
    def needs_llm(self) -> bool:
        """Whether it cannot run without a language model."""
        asks = self.calls_per_tool is not Calls.NONE or self.calls_per_query is not Calls.NONE
        return asks and not self.without_llm

    def defined_for(self, model: RetrieverEntry) -> bool:
        """Whether the method means anything for this model."""
        return model.dense or not self.dense_only


#: In the order of tables: the plain retriever, its rivals, MFTR, the diagnostics.
METHODS: tuple[MethodEntry, ...] = (
    MethodEntry("full-doc", "Full-Doc", "The query against the verbatim document."),
    MethodEntry(
        "easytool",
        "EasyTool",
        "The query against a concise text that a language model makes of each document.",
        calls_per_tool=Calls.ONE_AND_FUNCTIONS,
    ),
    MethodEntry(
        "pluto",
        "PLUTo",
        "A language model plans the query action by action and keeps the relevant of the tools retrieved for each.",
        calls_per_tool=Calls.USE_CASES_AND_EDITS,
        calls_per_query=Calls.PLAN,
        presets=(
            MethodPreset("filled", "The Full-Doc ranking follows the kept tools, so that lists reach their depth."),
            MethodPreset("paper", "Lists end with the kept tools, as in the MFTR paper."),
        ),
    ),
    MethodEntry(
        "onlinerag",
        "OnlineRAG",
        "The query against tool embeddings that were updated by feedback on other queries.",
        dense_only=True,
        learns=True,
        presets=(
            MethodPreset("chosen", "The learning rate is chosen within the training folds."),
            MethodPreset("unit-ball", "As chosen, and embeddings are pulled back into the unit ball."),
        ),
    ),
    MethodEntry(
        "mftr",
        "MFTR",
        "The rewritten query against four standardized fields, weighted by learning, with a penalty for missing "
        "parameters.",
        calls_per_tool=Calls.FOUR,
        calls_per_query=Calls.ONE,
        learns=True,
        presets=(
            MethodPreset("paper", "As published."),
            MethodPreset("v2", "Scaled fields, imputed empty fields, no penalty without arguments."),
        ),
        without_llm="Documents are standardized by rules and queries go as they are.",
    ),
    MethodEntry(
        "sub-query",
        "Sub-query",
        "Every sub-query retrieves its own list, fused by reciprocal rank: a diagnostic, not a usable setting.",
        needs_subqueries=True,
    ),
    MethodEntry(
        "adapter",
        "Adapter",
        "A linear adapter on the queries, trained on other queries' labels.",
        dense_only=True,
        learns=True,
    ),
)


def method(name: str) -> MethodEntry:
    """The entry of a method.

    Raises:
        UsageError: there is no such method.
    """
    for entry in METHODS:
        if entry.name == name:
            return entry
    raise UsageError(f"Unknown method {quote(name)}; choose {listing([m.name for m in METHODS], len(METHODS))}.")


def method_preset(entry: MethodEntry, name: str = "") -> MethodPreset | None:
    """A preset of the method, the default one for ""; None when it has no presets.

    Raises:
        UsageError: there is no such preset.
    """
    if not entry.presets:
        if name:
            raise UsageError(f"{entry.label} has no presets; leave out {quote(name)}.")
        return None
    for preset in entry.presets:
        if preset.name == (name or entry.presets[0].name):
            return preset
    raise UsageError(
        f"Unknown preset {quote(name)} of {entry.label}; choose {listing([p.name for p in entry.presets])}."
    )


def check_defined(entry: MethodEntry, model: RetrieverEntry) -> None:
    """Refuse a method that is not defined for a model.

    Raises:
        UsageError: it is not.
    """
    if not entry.defined_for(model):
        raise UsageError(f"{entry.label} works on embeddings; {model.name} has none. Choose a dense model.")
