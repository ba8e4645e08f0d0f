"""The texts that are scored: the fields of all tools and of all rewritten queries, flat and without repeats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pipeline.errors import MftrError
from pipeline.formats.messages import quote
from pipeline.identifiers import IdTable
from pipeline.mftr.schema import Field, RewrittenQuery, StandardizedTool

_Record = TypeVar("_Record", StandardizedTool, RewrittenQuery)


@dataclass(frozen=True, eq=False)
class FieldTexts:
    """The texts of one field of consecutive owners (tools or queries).

    Attributes:
        texts: distinct texts, in order of first appearance.
        places: int32 (occurrences,), positions in ``texts``, owner after owner.
        offsets: int64 (owners + 1): the texts of owner i are ``places[offsets[i]:offsets[i + 1]]``.
    """

    texts: tuple[str, ...]
    places: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]

    @classmethod
    def of(cls, owners: Iterable[Sequence[str]]) -> FieldTexts:
        """From the texts of each owner."""
        position: dict[str, int] = {}
        places: list[int] = []
        ends = [0]
        for texts in owners:
            places += [position.setdefault(text, len(position)) for text in texts]
            ends.append(len(places))
        return cls(tuple(position), np.array(places, dtype=np.int32), np.array(ends, dtype=np.int64))

    @property
    def occurrences(self) -> list[str]:
        """All texts, repeats kept."""
        return [self.texts[place] for place in self.places.tolist()]

    @cached_property
    def filled(self) -> npt.NDArray[np.bool_]:
        """Which owners have a text; bool (owners,)."""
        return np.diff(self.offsets) > 0


def _written(*texts: str) -> list[str]:
    """Blank texts are absent: an embedding of nothing matches by chance."""
    return [text for text in texts if text.strip()]


class ToolFields:
    """The standardized tools of a corpus.

    Args:
        tools: in byte order of their ids.

    Attributes:
        tools: as given.
        required: bool (parameters,), whether each parameter is required, in the order of the parameters' ``places``.
    """

    def __init__(self, tools: Sequence[StandardizedTool]) -> None:
        self.tools = tuple(tools)
        self._texts = {
            Field.DESCRIPTION: FieldTexts.of(_written(tool.description) for tool in self.tools),
            Field.PARAMETERS: FieldTexts.of([parameter.text for parameter in tool.parameters] for tool in self.tools),
            Field.RESPONSE: FieldTexts.of(_written(tool.response) for tool in self.tools),
            Field.EXAMPLES: FieldTexts.of(
                _written(*(example.user_intent for example in tool.examples)) for tool in self.tools
            ),
        }
        self.required = np.array(
            [parameter.required for tool in self.tools for parameter in tool.parameters], dtype=np.bool_
        )

    def __len__(self) -> int:
        """Number of tools."""
        return len(self.tools)

    def __getitem__(self, field: Field) -> FieldTexts:
        """The texts of one field."""
        return self._texts[field]


class QueryFields:
    """Rewritten queries, a text for each need or argument.

    Args:
        queries: in the order of the benchmark's queries.
    """

    def __init__(self, queries: Sequence[RewrittenQuery]) -> None:
        self.queries = tuple(queries)
        needs = [query.needs for query in self.queries]
        self._texts = {
            Field.DESCRIPTION: FieldTexts.of(_written(*(need.tool_description for need in some)) for some in needs),
            Field.PARAMETERS: FieldTexts.of([argument.text for argument in query.arguments] for query in self.queries),
            Field.RESPONSE: FieldTexts.of(_written(*(need.expected_response for need in some)) for some in needs),
            Field.EXAMPLES: FieldTexts.of(_written(*(need.user_intent for need in some)) for some in needs),
        }

    def __len__(self) -> int:
        """Number of queries."""
        return len(self.queries)

    def __getitem__(self, field: Field) -> FieldTexts:
        """The texts of one field."""
        return self._texts[field]

    @cached_property
    def answerable(self) -> npt.NDArray[np.bool_]:
        """Which queries have any text to score; the others get an empty ranking. bool (queries,)."""
        filled: npt.NDArray[np.bool_] = np.logical_or.reduce([self._texts[field].filled for field in Field])
        return filled


def tool_fields(tools: Iterable[StandardizedTool], table: IdTable) -> ToolFields:
    """The tools in the order of a benchmark's ids; one that was not standardized has only empty fields.

    Raises:
        MftrError: a tool comes twice or is not of the benchmark.
    """
    given = _once(tools, "tool_id", table, "tool")
    return ToolFields([given.get(tool_id) or StandardizedTool(tool_id) for tool_id in table.ids])


def query_fields(queries: Iterable[RewrittenQuery], table: IdTable) -> QueryFields:
    """The queries in the order of a benchmark's ids; one that was not rewritten has no needs and no arguments.

    Raises:
        MftrError: a query comes twice or is not of the benchmark.
    """
    given = _once(queries, "query_id", table, "query")
    return QueryFields([given.get(query_id) or RewrittenQuery(query_id, ()) for query_id in table.ids])


def _once(records: Iterable[_Record], key: str, table: IdTable, what: str) -> dict[str, _Record]:
    found: dict[str, _Record] = {}
    for record in records:
        name: str = getattr(record, key)
        if name in found:
            raise MftrError(f"The {what} {quote(name)} comes twice; keep one of the two.")
        found[name] = record
    names = list(found)
    unknown = np.flatnonzero(table.find(names) < 0)
    if len(unknown):
        raise MftrError(
            f"{len(unknown):,} of {len(names):,} {what} ids are not of this benchmark, the first is "
            f"{quote(names[unknown[0]])}; check that the file belongs to it."
        )
    return found


def compared_fields(tools: ToolFields, queries: QueryFields) -> list[Field]:
    """The fields of which both sides have texts; nothing is compared in the others."""
    return [field for field in Field if tools[field].texts and queries[field].texts]
