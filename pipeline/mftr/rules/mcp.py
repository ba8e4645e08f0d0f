"""Entries of a Model Context Protocol server's ``tools/list``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.mftr.rules import record
from pipeline.mftr.rules.intents import read_examples
from pipeline.mftr.rules.parameters import read_parameters, settle
from pipeline.mftr.rules.references import References
from pipeline.mftr.rules.responses import response_text
from pipeline.mftr.rules.values import joined, tidy
from pipeline.mftr.schema import StandardizedTool


def matches(document: Mapping[str, Any]) -> bool:
    """A schema of the input under the protocol's own key."""
    return "inputSchema" in document


def read(tool_id: str, document: Mapping[str, Any]) -> StandardizedTool:
    """One tool; references point into the schema that holds them."""
    schema, output = document.get("inputSchema"), document.get("outputSchema")
    annotations = document.get("annotations")
    title = tidy(annotations.get("title")) if isinstance(annotations, Mapping) else ""
    description = record.description(document)
    return StandardizedTool(
        tool_id,
        description or joined(title),
        settle(read_parameters(schema, References(schema if isinstance(schema, Mapping) else {}))),
        response_text(output, References(output if isinstance(output, Mapping) else {})),
        read_examples(document, record.name(document)),
    )
