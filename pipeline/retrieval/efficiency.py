"""What a retriever costs: the efficiency columns of a run."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Efficiency:
    """Cost of one run; None where a figure does not apply or was not measured.

    Attributes:
        encode_seconds_per_1000_documents: encoding (or indexing, for BM25) of distinct documents. For documents from
            the cache, what it took when they entered it.
        query_ms: milliseconds a query: encoding it (averaged over all, in batches) and searching.
        dimension: length of an embedding.
        parameters: number of weights.
        index_bytes: memory of the vectors or of the postings.
        device: where texts were encoded, or the processor for BM25.
        llm_calls_per_query: calls of a language model for a query; several draws of one prompt count once, as in the
            MFTR paper (§5.5). 0 where a method that needs a model needs it for the tools only.
        llm_seconds_per_query: what a query waits for them: draws of one prompt side by side, the rest one after
            another. None when no call's time is known, as after a batch.
        llm_calls_per_tool: calls before the first query, for a tool.
    """

    encode_seconds_per_1000_documents: float | None
    query_ms: float | None
    dimension: int | None
    parameters: int | None
    index_bytes: int
    device: str
    llm_calls_per_query: float | None = None
    llm_seconds_per_query: float | None = None
    llm_calls_per_tool: float | None = None

    def as_json(self) -> dict[str, Any]:
        """The attributes by name."""
        return asdict(self)


def per_thousand(seconds: float, count: int) -> float | None:
    """Seconds for a thousand, None for none."""
    return 1000 * seconds / count if count else None


def processor() -> str:
    """The name for computation outside torch."""
    return f"cpu ({platform.machine()})"
