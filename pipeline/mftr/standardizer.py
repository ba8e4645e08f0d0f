"""Tools put into the four fields by a language model, one question a field (MFTR paper, §3.2; the prompts are ours).

An answer must be of its field's schema and pass its check; the asker tries again and then records a failure. A field
that failed stays empty and is named with the reason, so that it is not taken for a field of which a document says
nothing. A blank document is asked nothing and has no fields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.formats.messages import quote
from pipeline.llm.asking import ask_all, pending_count, total_usage, usage_of
from pipeline.llm.prompts import load_prompt
from pipeline.llm.records import Answer, Asker, Failure, Outcome, Question, Usage
from pipeline.mftr.files import StandardizedDocuments
from pipeline.mftr.schema import Example, Field, Json, Parameter, StandardizedTool
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback

PURPOSE = "standardize"
#: Characters of a document that are shown; the longest real tool documents have about this many.
DOCUMENT_CHARACTERS = 24_000
#: The prompt of each field.
PROMPTS: Mapping[Field, str] = {name: f"standardize_{name.value}" for name in Field}

_TEXT = {"type": "string"}
_VALUE = {"type": ["string", "number", "boolean", "null"]}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    """A schema as strict endpoints want it: every key required, no other allowed."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _list_of(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": _object(properties)}


_CALL = {"name": _TEXT, "arguments": _list_of({"name": _TEXT, "value": _VALUE})}
#: The schema of each field's answer. Names are values in a list, since strict endpoints allow no free keys.
SCHEMAS: Mapping[Field, Mapping[str, Any]] = {
    Field.DESCRIPTION: _object({"description": _TEXT}),
    Field.PARAMETERS: _object(
        {
            "parameters": _list_of(
                {
                    "name": _TEXT,
                    "type": _TEXT,
                    "description": _TEXT,
                    "required": {"type": "boolean"},
                    "default": _VALUE,
                    "example": _VALUE,
                }
            )
        }
    ),
    Field.RESPONSE: _object({"response": _TEXT}),
    Field.EXAMPLES: _object({"examples": _list_of({"user_intent": _TEXT, "tool_call": _object(_CALL)})}),
}


@dataclass(frozen=True)
class ToolDocument:
    """A tool as a benchmark holds it; the name is told to the model and belongs to no field."""

    tool_id: str
    documentation: str
    name: str = ""


@dataclass(frozen=True, eq=False)
class ModelStandardized:
    """Tools in fields.

    Attributes:
        tools: one a document, in the order given; a field that failed or is pending is empty.
        failures: tool id → field → why there is no valid answer.
        pending: distinct questions that wait for a batch's answers; the tools are final only when it is 0.
        questions: how many were asked, equal ones of different tools counted each.
        usage: of the answers and the failures; what came from the cache counts as it was paid.
    """

    tools: tuple[StandardizedTool, ...]
    failures: Mapping[str, Mapping[Field, str]]
    pending: int
    questions: int
    usage: Usage

    @property
    def documents(self) -> StandardizedDocuments:
        """The tools and their failures as a file holds them."""
        return StandardizedDocuments(self.tools, self.failures)


def prompt_references() -> tuple[str, ...]:
    """``name@version`` of the four prompts, part of the identity of what they made."""
    return tuple(load_prompt(name).reference for name in PROMPTS.values())


def standardize_by_model(
    documents: Sequence[ToolDocument],
    asker: Asker,
    llm: str,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> ModelStandardized:
    """Put every document into the four fields.

    Args:
        documents: what to standardize; equal documents of equal names are asked once.
        asker: who answers: a live model, or a batch's writer or reader.
        llm: the language model, ``provider/model``.
        progress: stage ``standardizing``, in questions.
        cancelled: see ``ask_all``.

    Raises:
        BudgetExceeded: before a call that could exceed the budget; what was answered is in the cache.
        Cancelled: on request.
        JudgeError: the model cannot be asked at all.
    """
    asked = [document for document in documents if document.documentation.strip()]
    questions = [_question(document, name, llm) for document in asked for name in Field]
    outcomes = ask_all(
        asker, questions, stage="standardizing", check=check_answer, progress=progress, cancelled=cancelled
    )
    by_tool = {
        document.tool_id: dict(zip(Field, outcomes[start : start + len(Field)], strict=True))
        for document, start in zip(asked, range(0, len(outcomes), len(Field)), strict=True)
    }
    failures = {
        tool_id: failed
        for tool_id, answers in by_tool.items()
        if (failed := {name: out.reason for name, out in answers.items() if isinstance(out, Failure)})
    }
    return ModelStandardized(
        tuple(_tool(document.tool_id, by_tool.get(document.tool_id, {})) for document in documents),
        failures,
        pending_count(outcomes),
        len(questions),
        total_usage(usage_of(outcome) for outcome in outcomes),
    )


def _question(document: ToolDocument, name: Field, llm: str) -> Question:
    prompt = load_prompt(PROMPTS[name])
    shown = document.documentation[:DOCUMENT_CHARACTERS]
    return Question(
        model=llm,
        prompt=prompt.reference,
        messages=prompt.messages(name=document.name[:400], documentation=shown),
        schema=SCHEMAS[name],
        schema_name=PROMPTS[name],
        purpose=PURPOSE,
    )


def check_answer(question: Question, value: Mapping[str, Any]) -> str | None:
    """What the schema cannot say of a field's answer: texts that say something, names that are distinct."""
    name = next(name for name, prompt in PROMPTS.items() if prompt == question.schema_name)
    return _CHECKS[name](value[name.value])


def _check_text(text: str) -> str | None:
    return None if text.strip() else "the text is blank"


def _check_parameters(parameters: Sequence[Mapping[str, Any]]) -> str | None:
    names = [parameter["name"].strip() for parameter in parameters]
    if not all(names):
        return "a parameter has no name"
    twice = [name for name, count in Counter(names).items() if count > 1]
    return f"the parameter {quote(twice[0])} is listed twice" if twice else None


def _check_examples(examples: Sequence[Mapping[str, Any]]) -> str | None:
    if not examples:
        return "there is no example"
    return None if all(example["user_intent"].strip() for example in examples) else "an example has a blank user_intent"


_CHECKS: Mapping[Field, Callable[[Any], str | None]] = {
    Field.DESCRIPTION: _check_text,
    Field.PARAMETERS: _check_parameters,
    Field.RESPONSE: _check_text,
    Field.EXAMPLES: _check_examples,
}


def _tool(tool_id: str, outcomes: Mapping[Field, Outcome]) -> StandardizedTool:
    values = {name: out.value[name.value] for name, out in outcomes.items() if isinstance(out, Answer)}
    return StandardizedTool(
        tool_id,
        values.get(Field.DESCRIPTION, "").strip(),
        tuple(_parameter(parameter) for parameter in values.get(Field.PARAMETERS, ())),
        values.get(Field.RESPONSE, "").strip(),
        tuple(_example(example) for example in values.get(Field.EXAMPLES, ())),
    )


def _parameter(answer: Mapping[str, Any]) -> Parameter:
    """In the published order; a null default or example is absent."""
    keys = ("type", "description", "required", "default", "example")
    return Parameter(answer["name"].strip(), {key: answer[key] for key in keys if answer[key] is not None})


def _example(answer: Mapping[str, Any]) -> Example:
    call = answer["tool_call"]
    arguments: dict[str, Json] = {argument["name"]: argument["value"] for argument in call["arguments"]}
    return Example(answer["user_intent"].strip(), {"name": call["name"], "arguments": arguments})
