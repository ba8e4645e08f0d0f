"""RapidAPI endpoints as ToolBench and its descendants record them: two lists of parameters and a template answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pipeline.mftr.rules import record
from pipeline.mftr.rules.intents import read_examples
from pipeline.mftr.rules.parameters import read_parameters, settle
from pipeline.mftr.rules.references import References
from pipeline.mftr.schema import StandardizedTool

_LISTS = {
    "required_parameters": True,
    "required_params": True,
    "required_arguments": True,
    "optional_parameters": False,
    "optional_params": False,
    "optional_arguments": False,
}


def matches(document: Mapping[str, Any]) -> bool:
    """Any list of required or of optional parameters."""
    return any(isinstance(document.get(key), list | Mapping) for key in _LISTS)


def read(tool_id: str, document: Mapping[str, Any]) -> StandardizedTool:
    """The list that a parameter stands in decides whether it is required."""
    references = References(document)
    drafts = [
        replace(draft, marked=required)
        for key, required in _LISTS.items()
        for draft in read_parameters(document.get(key), references)
    ]
    return StandardizedTool(
        tool_id,
        record.description(document),
        settle(drafts or record.parameters(document, references)),
        record.response(document, references),
        read_examples(document, record.name(document)),
    )
