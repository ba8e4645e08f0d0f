"""What a language model says in the tests: answers to every prompt of standardizing, rewriting and the baselines."""

from __future__ import annotations

import re
from typing import Any

Body = dict[str, Any]


def schema_name(body: Body) -> str:
    """The name of the schema that a request asks for."""
    return str(body["response_format"]["json_schema"]["name"])


def answer(body: Body) -> Any:
    """A valid answer, made from the words of the request, so that equal questions have equal answers."""
    text = str(body["messages"][-1]["content"])
    words = re.findall(r"[a-z]{4,}", text.lower())
    some = " ".join(words[:12]) or "nothing"
    kind = schema_name(body)
    if kind.startswith("standardize_"):
        field = kind.removeprefix("standardize_")
        if field in ("description", "response"):
            return {field: some}
        if field == "parameters":
            one = {"name": words[0], "type": "string", "description": some, "required": True}
            return {"parameters": [{**one, "default": None, "example": None}]}
        return {"examples": [{"user_intent": some, "tool_call": {"name": words[0], "arguments": []}}]}
    if kind == "rewrite_query":
        need = {"user_intent": some, "tool_description": some, "expected_response": some}
        return {"tool_needs": [need], "extracted_arguments": [{"name": words[0], "description": some}]}
    if kind == "easytool_overview":
        return {"purpose": some, "functions": [words[0]]}
    if kind == "easytool_guide":
        return {"parameters": [], "scenario": some, "example": words[0]}
    if kind == "pluto_plan":
        return {"stop": body.get("seed", 0) == 1, "action": some}
    if kind == "pluto_select":
        return {"relevant": [1]}
    if "use_cases" in kind:
        return {"use_cases": [some]}
    return {"description": some}
