"""A benchmark in memory: queries, tools and every label, as polars frames of fixed shape.

Ids are opaque text compared byte for byte. All frames hold strings as ``pl.String``; list columns are
``pl.List(pl.String)``. Optional frames may be empty but always have their columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import polars as pl


class Kind(StrEnum):
    """What is retrieved."""

    TOOL = "tool"
    SKILL = "skill"


class Average(StrEnum):
    """How query scores become one figure: mean of domain means, or mean over queries."""

    MACRO = "macro"
    MICRO = "micro"


class Judgement(StrEnum):
    """What a judge said of an equivalent or a combination; only ``valid`` rows count."""

    VALID = "valid"
    INVALID = "invalid"
    UNSURE = "unsure"


class Origin(StrEnum):
    """Where the verdict on an equivalent comes from."""

    GROUND_TRUTH = "ground_truth"
    JUDGED = "judged"
    RULE = "rule"
    HUMAN = "human"
    EXECUTED = "executed"


#: Column name → dtype of each frame, in the order they are written. ``domain`` and ``source`` may be "".
TOOLS = {
    "tool_id": pl.String,
    "documentation": pl.String,
    "name": pl.String,
    "domain": pl.String,
    "source": pl.String,
    "provider": pl.String,
}
QUERIES = {
    "query_id": pl.String,
    "text": pl.String,
    "instruction": pl.String,
    "domain": pl.String,
    "source": pl.String,
}
GROUND_TRUTH = {"query_id": pl.String, "tool_ids": pl.List(pl.String)}
SUBQUERIES = {"query_id": pl.String, "position": pl.Int32, "text": pl.String, "tool_id": pl.String}
EQUIVALENTS = {
    "query_id": pl.String,
    "position": pl.Int32,
    "tool_id": pl.String,
    "verdict": pl.String,
    "reason": pl.String,
    "judge": pl.String,
    "retrieval_rank": pl.Int32,
    "origin": pl.String,
    "same_operation": pl.Boolean,
    "inputs_available": pl.Boolean,
}
COMBINATIONS = {
    "query_id": pl.String,
    "tool_ids": pl.List(pl.String),
    "is_ground_truth": pl.Boolean,
    "rrf_score": pl.Float64,
    "verdict": pl.String,
    "reason": pl.String,
    "judge": pl.String,
    "coverage": pl.Boolean,
    "dependency_consistent": pl.Boolean,
}
#: Table name → schema; the names are those of the files in a benchmark folder.
TABLES: dict[str, dict[str, pl.DataType | type[pl.DataType]]] = {
    "tools": TOOLS,  # type: ignore[dict-item]
    "queries": QUERIES,  # type: ignore[dict-item]
    "ground_truth": GROUND_TRUTH,  # type: ignore[dict-item]
    "subqueries": SUBQUERIES,  # type: ignore[dict-item]
    "equivalents": EQUIVALENTS,  # type: ignore[dict-item]
    "combinations": COMBINATIONS,  # type: ignore[dict-item]
}


@dataclass(frozen=True)
class BenchmarkInfo:
    """What ``benchmark.toml`` says.

    Attributes:
        slug: short name, ``[a-z0-9][a-z0-9._-]*``.
        headline: the average that ranks the leaderboard; None takes ``default_headline``.
        parents: ``slug@version`` of the versions this one was made from.
    """

    slug: str
    title: str
    kind: Kind
    version: str
    licence: str = ""
    source: str = ""
    revision: str = ""
    parents: tuple[str, ...] = ()
    headline: Average | None = None

    @property
    def effective_headline(self) -> Average:
        """The declared headline, else macro for tools and micro for skills (SCORING §2, Averages)."""
        if self.headline is not None:
            return self.headline
        return Average.MACRO if self.kind is Kind.TOOL else Average.MICRO


@dataclass(frozen=True, eq=False)
class Benchmark:
    """One version of a benchmark with all its content, already validated.

    Attributes:
        ground_truth: one row a query, ``tool_ids`` distinct and known, in label order.
        combinations: every judged set, C* included as the first row of its query (``is_ground_truth``);
            empty when the benchmark has one label a query.
        content_hash: sha256 hex over canonical sorted rows of all tables (not over ``info``).
        notes: what was normalised on import, in words.
    """

    info: BenchmarkInfo
    tools: pl.DataFrame
    queries: pl.DataFrame
    ground_truth: pl.DataFrame
    subqueries: pl.DataFrame
    equivalents: pl.DataFrame
    combinations: pl.DataFrame
    content_hash: str
    notes: tuple[str, ...] = field(default=())

    @property
    def has_combinations(self) -> bool:
        """Whether any query has labels beyond C*."""
        return self.combinations.height > 0
