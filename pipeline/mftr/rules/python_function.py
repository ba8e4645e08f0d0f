"""Python functions with their docstring: source text, or a record with a signature as CRAFT and others keep it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pipeline.mftr.rules import record
from pipeline.mftr.rules.intents import read_examples
from pipeline.mftr.rules.parameters import Draft, settle
from pipeline.mftr.rules.prose import Prose, read_prose
from pipeline.mftr.rules.references import References
from pipeline.mftr.rules.signature import Signature, find_signature
from pipeline.mftr.rules.values import LONGEST, first_text, joined
from pipeline.mftr.schema import StandardizedTool

_SOURCE_KEYS = ("func_signature", "signature", "function_signature", "code", "source", "func_source", "implementation")


def matches(document: Mapping[str, Any]) -> bool:
    """A key that holds Python source with a function."""
    return any("def " in document[key] for key in _SOURCE_KEYS if isinstance(document.get(key), str))


def matches_text(text: str) -> bool:
    """Source text: a function at the beginning of a line before any prose could mention one."""
    return "def " in text[:LONGEST] and find_signature(text) is not None and _begins_as_source(text)


def _begins_as_source(text: str) -> bool:
    first = text.lstrip("\ufeff \t\r\n")
    return first.startswith(("def ", "async def ", "import ", "from ", "@", "#!", "class "))


def read(tool_id: str, document: Mapping[str, Any]) -> StandardizedTool:
    """A record whose description is a docstring and whose signature names the parameters."""
    signature = next(
        (
            found
            for key in _SOURCE_KEYS
            if isinstance(text := document.get(key), str) and (found := find_signature(text))
        ),
        Signature("", ()),
    )
    said = "\n".join(
        value for key in record.DESCRIPTION_KEYS if isinstance(value := document.get(key), str) and value.strip()
    )
    references = References(document)
    tool = _tool(tool_id, signature, read_prose(said or signature.docstring, _names(signature)))
    return replace(
        tool,
        parameters=settle(record.parameters(document, references)) or tool.parameters,
        response=record.response(document, references) or tool.response,
        examples=read_examples(document, record.name(document)) or tool.examples,
        description=joined(first_text(document, *record.SUMMARY_KEYS), tool.description),
    )


def read_source(tool_id: str, text: str) -> StandardizedTool:
    """Source text: the first function that it defines."""
    signature = find_signature(text) or Signature("", ())
    return _tool(tool_id, signature, read_prose(signature.docstring, _names(signature)))


def _names(signature: Signature) -> list[str]:
    return [draft.name for draft in signature.parameters]


def _tool(tool_id: str, signature: Signature, prose: Prose) -> StandardizedTool:
    described = {draft.name: draft for draft in prose.parameters}
    drafts = [_both(draft, described.get(draft.name)) for draft in signature.parameters] or prose.parameters
    response = prose.response
    if not response:
        response = signature.returns if signature.returns != "None" else ""
    return StandardizedTool(tool_id, prose.description, settle(drafts), response, prose.examples)


def _both(draft: Draft, described: Draft | None) -> Draft:
    """The signature says whether an argument may be left out; the docstring says the rest."""
    if described is None:
        return draft
    return replace(
        draft,
        type=described.type or draft.type,
        description=described.description,
        marked=described.marked if draft.marked is None else draft.marked,
        default=draft.default if draft.default is not None else described.default,
    )
