"""Small standardized corpora, and MFTR's formulas written down plainly to compare with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from pipeline.mftr.dense_fields import DenseFields, FieldEmbeddings
from pipeline.mftr.fields import QueryFields, ToolFields
from pipeline.mftr.learned_parameters import LearnedFolds, LearnedParameters
from pipeline.mftr.schema import Argument, Example, Field, Parameter, RewrittenQuery, StandardizedTool, ToolNeed

WORDS = ["weather", "city", "price", "stock", "名前", "naïve", "token", "user", "date", "hotel", "flug", "größe"]


def tool(
    tool_id: str,
    description: str = "",
    parameters: Sequence[tuple[str, bool]] = (),
    response: str = "",
    examples: Sequence[str] = (),
) -> StandardizedTool:
    """A tool whose parameters are (name, required)."""
    return StandardizedTool(
        tool_id,
        description,
        tuple(Parameter(name, {"description": name, "required": required}) for name, required in parameters),
        response,
        tuple(Example(text) for text in examples),
    )


def query(query_id: str, *needs: str, arguments: Sequence[str] = ()) -> RewrittenQuery:
    """A query whose needs say the same in every field."""
    return RewrittenQuery(
        query_id, tuple(ToolNeed(text, text, text) for text in needs), tuple(Argument(a, a) for a in arguments)
    )


def random_tools(count: int, seed: int = 0) -> ToolFields:
    """Tools of few words, many of them shared; some lack fields."""
    rng = np.random.default_rng(seed)

    def text(length: int) -> str:
        return " ".join(rng.choice(WORDS, length))

    return ToolFields(
        [
            tool(
                f"t{i:03}",
                text(3) if i % 7 else "",
                [(str(rng.choice(WORDS)), bool(rng.integers(2))) for _ in range(int(rng.integers(0, 4)))],
                text(4) if i % 5 else " ",
                [text(3) for _ in range(int(rng.integers(0, 3)))],
            )
            for i in range(count)
        ]
    )


def random_queries(count: int, seed: int = 1) -> QueryFields:
    """Queries with one to three needs and up to two arguments."""
    rng = np.random.default_rng(seed)
    return QueryFields(
        [
            query(
                f"q{i:03}",
                *(" ".join(rng.choice(WORDS, 3)) for _ in range(int(rng.integers(1, 4)))),
                arguments=[str(word) for word in rng.choice(WORDS, int(rng.integers(0, 3)))],
            )
            for i in range(count)
        ]
    )


def random_dense(tools: ToolFields, queries: QueryFields, seed: int = 2, dimension: int = 16) -> DenseFields:
    """Random unit vectors as embeddings."""
    rng = np.random.default_rng(seed)

    def units(rows: int) -> np.ndarray:
        vectors = rng.standard_normal((rows, dimension)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    return DenseFields(
        tools, queries, {f: FieldEmbeddings(units(len(tools[f].texts)), units(len(queries[f].texts))) for f in Field}
    )


def one_fold(queries: int, parameters: LearnedParameters) -> LearnedFolds:
    """The same parameters for every query."""
    return LearnedFolds((parameters,), np.zeros(queries, dtype=np.int64))


def plain_scores(
    asked: RewrittenQuery,
    held: StandardizedTool,
    phi: Callable[[Field, str, str], float],
    learned: LearnedParameters,
    sign: float = 1.0,
) -> tuple[list[float], float]:
    """(S_f in the order of ``Field``, S) as the paper defines them, tool by tool."""

    def best(field: Field, needs: list[str], texts: list[str]) -> float:
        found = [phi(field, need, text) for need in needs for text in texts if need.strip() and text.strip()]
        return max(found, default=0.0)

    matched = [
        max([0.0, *(phi(Field.PARAMETERS, argument.text, parameter.text) for argument in asked.arguments)])
        for parameter in held.parameters
    ]
    fields = [
        best(Field.DESCRIPTION, [need.tool_description for need in asked.needs], [held.description]),
        sum(matched) / len(matched) if matched else 0.0,
        best(Field.RESPONSE, [need.expected_response for need in asked.needs], [held.response]),
        best(Field.EXAMPLES, [n.user_intent for n in asked.needs], [e.user_intent for e in held.examples]),
    ]
    penalty = sum(
        (learned.required if parameter.required else learned.optional)
        / (1.0 + math.exp(-sign * learned.alpha * (learned.tau - score)))
        for parameter, score in zip(held.parameters, matched, strict=True)
    )
    total = sum(w * s for w, s in zip(learned.weights, fields, strict=True)) + learned.bias - penalty
    return fields, total
