"""OpenAPI 2 and 3: a document with its operations, or one operation by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pipeline.mftr.rules import record
from pipeline.mftr.rules.intents import read_examples
from pipeline.mftr.rules.parameters import Draft, read_parameters, settle
from pipeline.mftr.rules.references import References
from pipeline.mftr.rules.responses import content_schema, openapi_response
from pipeline.mftr.rules.values import first_text, joined, tidy
from pipeline.mftr.schema import StandardizedTool

_METHODS = ("get", "put", "post", "delete", "patch", "head", "options", "trace", "query")
_PLACEHOLDER = re.compile(r"\{([^{}/]{1,80})\}|/:([A-Za-z_]\w{0,80})")
#: Operations of one document that are read: a tool is one of them, and rarely a few.
_OPERATIONS = 50


def matches(document: Mapping[str, Any]) -> bool:
    """A document with paths, or an operation with an identifier, a body, or a method and an address."""
    if isinstance(document.get("paths"), Mapping):
        return True
    address = document.get("path") or document.get("url")
    has_address = isinstance(address, str) and address.startswith(("/", "http"))
    return "operationId" in document or "requestBody" in document or ("method" in document and has_address)


def read(tool_id: str, document: Mapping[str, Any]) -> StandardizedTool:
    """All operations of the document as one tool."""
    references = References(document)
    descriptions, drafts, responses = [], [], []
    for path, shared, operation in _operations(document):
        descriptions.append(record.description(operation))
        drafts += _drafts(path, shared, operation, references)
        responses.append(
            openapi_response(operation.get("responses"), references) or record.response(operation, references)
        )
    about = document.get("info")
    said = joined(*descriptions)
    if not said and isinstance(about, Mapping):
        said = joined(tidy(about.get("summary")), tidy(about.get("description"))) or tidy(about.get("title"))
    return StandardizedTool(
        tool_id,
        said,
        settle(drafts),
        joined(*responses),
        read_examples(document, record.name(document)),
    )


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, object, Mapping[str, Any]]]:
    """(path, parameters of the path, operation)."""
    paths = document.get("paths")
    if not isinstance(paths, Mapping):
        yield first_text(document, "path", "url"), None, document
        return
    count = 0
    for path, item in paths.items():
        if not isinstance(item, Mapping):
            continue
        for method in _METHODS:
            operation = item.get(method)
            if isinstance(operation, Mapping) and count < _OPERATIONS:
                count += 1
                yield str(path), item.get("parameters"), operation


def _drafts(path: str, shared: object, operation: Mapping[str, Any], references: References) -> list[Draft]:
    """Parameters of the operation and its path, then of its body, then placeholders that nobody describes."""
    listed = []
    for value in (operation.get("parameters"), shared):
        if not isinstance(value, list):
            listed += read_parameters(value, references)
            continue
        for member in value:
            resolved = references.resolve(member)
            if isinstance(resolved, Mapping) and resolved.get("in") == "body":
                listed += read_parameters(content_schema(resolved, references), references)
            else:
                listed += [_in_path(draft, resolved) for draft in read_parameters([resolved], references)]
    body = references.resolve(operation.get("requestBody"))
    if isinstance(body, Mapping):
        listed += read_parameters(content_schema(body, references), references)
    known = {draft.name for draft in listed}
    names = (found[1] or found[2] for found in _PLACEHOLDER.finditer(path.partition("?")[0]))
    return listed + [Draft(name, marked=True) for name in dict.fromkeys(names) if name not in known]


def _in_path(draft: Draft, parameter: object) -> Draft:
    """A parameter in the path is always required."""
    in_path = isinstance(parameter, Mapping) and parameter.get("in") == "path"
    return replace(draft, marked=True) if in_path else draft
