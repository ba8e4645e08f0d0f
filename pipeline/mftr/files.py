"""Standardized documents and rewritten queries in the shapes of the published MFTR data.

A line of standardized documents is ``{"id", "type", "augmented": {"description", "parameters", "response",
"examples"}, "origin_documentation"}``, one of rewritten queries ``{"id", "dataset", "test_fold", "rewritten_query":
{"tool_needs", "extracted_arguments"}}``. Other keys are kept and written back, so that a published file comes out
byte for byte. A field that a language model could not fill is named with the reason under ``failed``, a key of ours,
and may be missing; any other missing field is a fault.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.formats.messages import listing, plural, quote
from pipeline.formats.nearest_id import NearestId
from pipeline.mftr import file_rows
from pipeline.mftr.file_rows import RowFault, RowReader, shown
from pipeline.mftr.schema import (
    Argument,
    Example,
    Field,
    Json,
    Parameter,
    RewrittenQuery,
    StandardizedTool,
    ToolNeed,
)

#: Keys that stand before the content in the published files; the others follow it.
_BEFORE = ("id", "type", "dataset", "test_fold")


@dataclass(frozen=True)
class StandardizedDocuments:
    """The tools of a file, in its order.

    Attributes:
        failures: tool id → field → why it could not be filled; such a field is empty in ``tools``.
        beside: tool id → keys of the row that say nothing of the fields (``type``, ``origin_documentation``, …).
    """

    tools: tuple[StandardizedTool, ...]
    failures: Mapping[str, Mapping[Field, str]] = field(default_factory=dict)
    beside: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)


@dataclass(frozen=True)
class RewrittenQueries:
    """The queries of a file, in its order.

    Attributes:
        failures: query id → why it could not be rewritten; such a query is not in ``queries``.
        beside: query id → keys of the row that say nothing of the rewriting (``dataset``, ``query``, …).
    """

    queries: tuple[RewrittenQuery, ...]
    failures: Mapping[str, str] = field(default_factory=dict)
    beside: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)


def read_standardized(path: Path) -> StandardizedDocuments:
    """Read standardized documents.

    Args:
        path: ``.jsonl``, ``.jsonl.gz``, ``.json`` (a list or one object), or a folder of such files.

    Raises:
        MftrError: with every fault's line and what to write instead.
    """
    reader = RowReader(path)
    tools: list[StandardizedTool] = []
    failures: dict[str, dict[Field, str]] = {}
    beside: dict[str, dict[str, Json]] = {}
    for tool_id, row in reader.rows():
        try:
            failed = _failed_fields(row)
            tools.append(standardized_from_json(tool_id, file_rows.mapping(row, "augmented"), failed))
        except RowFault as fault:
            reader.refuse(fault)
            continue
        if failed:
            failures[tool_id] = failed
        beside[tool_id] = {key: value for key, value in row.items() if key not in ("id", "augmented", "failed")}
    reader.raise_if_any("standardized documents")
    return StandardizedDocuments(tuple(tools), failures, beside)


def read_rewritten(path: Path) -> RewrittenQueries:
    """Read rewritten queries.

    Args:
        path: as for ``read_standardized``.

    Raises:
        MftrError: with every fault's line and what to write instead.
    """
    reader = RowReader(path)
    queries: list[RewrittenQuery] = []
    failures: dict[str, str] = {}
    beside: dict[str, dict[str, Json]] = {}
    for query_id, row in reader.rows():
        try:
            if row.get("failed") is not None and "rewritten_query" not in row:
                failures[query_id] = file_rows.text(row, "failed")
            else:
                queries.append(_rewritten_from_row(query_id, row))
        except RowFault as fault:
            reader.refuse(fault)
            continue
        apart = ("id", "rewritten_query", "test_fold", "failed")
        beside[query_id] = {key: value for key, value in row.items() if key not in apart}
    reader.raise_if_any("rewritten queries")
    return RewrittenQueries(tuple(queries), failures, beside)


def write_standardized(path: Path, documents: StandardizedDocuments) -> None:
    """Write one line a tool, in the order given."""
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for tool in documents.tools:
            failed = documents.failures.get(tool.tool_id, {})
            content = {key: value for key, value in standardized_to_json(tool).items() if key not in failed}
            own: dict[str, Any] = {"augmented": content}
            if failed:
                own["failed"] = {name.value: reason for name, reason in failed.items()}
            stream.write(_line({"id": tool.tool_id}, own, documents.beside.get(tool.tool_id, {})))


def write_rewritten(path: Path, rewritten: RewrittenQueries) -> None:
    """Write one line a query, in the order given, those that failed last."""
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for query in rewritten.queries:
            beside = dict(rewritten.beside.get(query.query_id, {}))
            if query.test_fold is not None:
                beside["test_fold"] = query.test_fold
            own = {"rewritten_query": rewritten_to_json(query)}
            stream.write(_line({"id": query.query_id}, own, beside))
        for query_id, reason in rewritten.failures.items():
            stream.write(_line({"id": query_id}, {"failed": reason}, rewritten.beside.get(query_id, {})))


def _line(first: Mapping[str, Any], own: Mapping[str, Any], beside: Mapping[str, Any]) -> str:
    before = {key: beside[key] for key in _BEFORE if key in beside}
    after = {key: value for key, value in beside.items() if key not in before}
    return json.dumps({**first, **before, **own, **after}, ensure_ascii=False) + "\n"


def standardized_to_json(tool: StandardizedTool) -> dict[str, Json]:
    """The four fields as the published data writes them."""
    return {
        "description": tool.description,
        "parameters": {parameter.name: dict(parameter.stored) for parameter in tool.parameters},
        "response": tool.response,
        "examples": [
            {"user_intent": example.user_intent, "tool_call": dict(example.tool_call)}
            if example.tool_call
            else {"user_intent": example.user_intent}
            for example in tool.examples
        ],
    }


def standardized_from_json(
    tool_id: str, content: Mapping[str, Any], failed: Collection[Field] = ()
) -> StandardizedTool:
    """A tool from its four fields.

    Args:
        tool_id: the tool's id.
        content: the object of the four fields.
        failed: fields that may be missing.

    Raises:
        RowFault: a field is missing or not of its type.
    """
    where = "augmented"

    def wanted(name: Field) -> bool:
        return name not in failed or name.value in content

    parameters, examples = [], []
    if wanted(Field.PARAMETERS):
        for name, stored in file_rows.mapping(content, "parameters", where).items():
            parameters.append(_parameter(name, stored))
    if wanted(Field.EXAMPLES):
        for number, example in enumerate(file_rows.objects(content, "examples", where), start=1):
            examples.append(_example(example, f"{where}.examples, entry {number}"))
    return StandardizedTool(
        tool_id,
        file_rows.text(content, "description", where) if wanted(Field.DESCRIPTION) else "",
        tuple(parameters),
        file_rows.text(content, "response", where) if wanted(Field.RESPONSE) else "",
        tuple(examples),
    )


def _parameter(name: str, stored: object) -> Parameter:
    if not isinstance(stored, dict):
        raise RowFault(f"the parameter {quote(name)} must be an object, found {shown(stored)}")
    if not isinstance(required := stored.get("required", True), bool):
        raise RowFault(f"the parameter {quote(name)}: required must be true or false, found {shown(required)}")
    return Parameter(name, stored)


def _example(example: Mapping[str, Any], where: str) -> Example:
    call = example.get("tool_call")
    if call is not None and not isinstance(call, dict):
        raise RowFault(f"{where}: tool_call must be an object, found {shown(call)}")
    return Example(file_rows.text(example, "user_intent", where), call or {})


def _failed_fields(row: Mapping[str, Any]) -> dict[Field, str]:
    if row.get("failed") is None:
        return {}
    reasons = file_rows.mapping(row, "failed")
    for name, reason in reasons.items():
        if name not in list(Field) or not isinstance(reason, str):
            raise RowFault(f"failed must name fields with a reason each, found {quote(name)}: {shown(reason)}")
    return {Field(name): reason for name, reason in reasons.items()}


def rewritten_to_json(query: RewrittenQuery) -> dict[str, Json]:
    """Needs and arguments as the published data writes them."""
    return {
        "tool_needs": [
            {
                "user_intent": need.user_intent,
                "tool_description": need.tool_description,
                "expected_response": need.expected_response,
            }
            for need in query.needs
        ],
        "extracted_arguments": {argument.name: argument.description for argument in query.arguments},
    }


def _rewritten_from_row(query_id: str, row: Mapping[str, Any]) -> RewrittenQuery:
    content = file_rows.mapping(row, "rewritten_query")
    where = "rewritten_query"
    needs = []
    for number, need in enumerate(file_rows.objects(content, "tool_needs", where), start=1):
        at = f"{where}.tool_needs, entry {number}"
        parts = (file_rows.text(need, key, at) for key in ("user_intent", "tool_description", "expected_response"))
        needs.append(ToolNeed(*parts))
    if not needs:
        raise RowFault(f"{where}.tool_needs is empty; a rewritten query has at least one need")
    arguments = file_rows.mapping(content, "extracted_arguments", where)
    described = [Argument(name, file_rows.text(arguments, name, f"{where}.extracted_arguments")) for name in arguments]
    return RewrittenQuery(query_id, tuple(needs), tuple(described), file_rows.number(row, "test_fold"))


@dataclass(frozen=True)
class IdCoverage:
    """How the ids of a file and of a benchmark fit.

    Attributes:
        known: how many ids of the benchmark the file has.
        missing: ids of the benchmark that the file lacks, in the benchmark's order.
        unknown: ids of the file that the benchmark lacks, in the file's order.
        messages: both in words, with the nearest known id of the first unknown ones; empty when all fits.
    """

    known: int
    missing: tuple[str, ...]
    unknown: tuple[str, ...]
    messages: tuple[str, ...]


def id_coverage(given: Iterable[str], wanted: Iterable[str], noun: str) -> IdCoverage:
    """Compare the ids of a file with those of a benchmark.

    Args:
        given: ids of the file.
        wanted: ids of the benchmark.
        noun: ``tool`` or ``query``.
    """
    given_ids, wanted_ids = dict.fromkeys(given), dict.fromkeys(wanted)
    missing = tuple(identifier for identifier in wanted_ids if identifier not in given_ids)
    unknown = tuple(identifier for identifier in given_ids if identifier not in wanted_ids)
    many = "queries" if noun == "query" else f"{noun}s"
    messages = []
    if missing:
        of_all = f"{plural(len(missing), noun, many)} of {len(wanted_ids):,}"
        messages.append(f"{of_all} in the benchmark are not in the file: {listing(list(missing), 5)}")
    if unknown:
        nearest = NearestId(list(wanted_ids), noun, limit=5)
        hints = "; ".join(f"{quote(identifier)}{nearest.hint(identifier)}" for identifier in unknown[:5])
        more = f" and {len(unknown) - 5:,} more" if len(unknown) > 5 else ""
        messages.append(f"{plural(len(unknown), noun, many)} of the file are not in the benchmark: {hints}{more}")
    return IdCoverage(len(wanted_ids) - len(missing), missing, unknown, tuple(messages))
