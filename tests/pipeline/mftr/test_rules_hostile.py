"""Documents that are wrong, huge, deep or made to hurt: always four fields that can be stored, in good time."""

from __future__ import annotations

import json
import time
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.mftr.files import standardized_to_json
from pipeline.mftr.rules import Format, sniff, standardize
from pipeline.mftr.schema import StandardizedTool

KEYS = st.sampled_from(
    """name description parameters arguments properties required type items enum default example examples schema
    required_parameters optional_params api_call api_arguments functionality inputSchema outputSchema paths get
    /x/{id} responses 200 content application/json requestBody $ref allOf function func_signature skill_md tools
    results return_schema input-type summary method url in query user_intent tool_call""".split()  # noqa: SIM905
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=True, allow_infinity=True)
    | st.text(max_size=30)
    | st.sampled_from(
        [
            "#/a",
            "#/properties",
            "#",
            "object",
            "array",
            "Required. string. x",
            "def f(a=(1, 'b,'), *c):",
            "---\na: [b\n---\n",
        ]
    )
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS | st.text(max_size=5), inner, max_size=6),
    max_leaves=40,
)
MARKUP = ("---\n", "# When to use\n", "- a b\n", "Parameters:\n", "x (int): y\n", "Returns: ", "def f(", "):", '"""')
SIGNS = ("\n", "  ", "((", "[", "'x' parameter is ", ":param a: b\n", "----\n", "```\n", "{", "}", "optional", "\ud800")
PIECE = st.sampled_from(MARKUP) | st.sampled_from(SIGNS) | st.text(max_size=10)
PIECES = st.lists(PIECE, max_size=30).map("".join)


def check(tool: StandardizedTool) -> None:
    """Everything can be written as JSON in UTF-8, and nothing is of a wrong type."""
    json.dumps(standardized_to_json(tool), ensure_ascii=False, allow_nan=False).encode()
    assert isinstance(tool.description, str) and isinstance(tool.response, str)
    names = [parameter.name for parameter in tool.parameters]
    assert len(set(names)) == len(names) and all(names)
    for parameter in tool.parameters:
        assert isinstance(parameter.stored["required"], bool)
        assert None not in parameter.stored.values() and "" not in parameter.stored.values()
        assert isinstance(parameter.text, str)
    assert all(example.user_intent for example in tool.examples)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(VALUES)
def test_any_json(value):
    text = json.dumps(value)
    check(standardize("t", text))
    check(standardize("t", text[:-1]))


@settings(max_examples=200, deadline=None)
@given(PIECES | st.text(max_size=200))
def test_any_text(text):
    check(standardize("t", text))


def test_wrong_types_everywhere():
    keys = "description parameters required_parameters responses examples api_arguments inputSchema paths properties"
    for wrong in (None, 3, True, "x", [], {}, [None], {"a": None}, [[["a"]]], float("nan")):
        for key in [*keys.split(), "func_signature", "optional_params", "requestBody", "skill_md"]:
            parameter = {key: wrong, "type": wrong, "items": wrong, "enum": wrong}
            schema = {"properties": {"p": parameter}, "required": wrong}
            for document in (
                {"description": "d", key: wrong},
                {"api_call": wrong, "framework": 1, key: wrong},
                {"parameters": schema},
                {"paths": {"/p": {"get": {key: wrong, "parameters": [parameter], "responses": {"200": wrong}}}}},
            ):
                check(standardize("t", json.dumps(document)))


def test_three_hundred_parameters_are_all_kept():
    properties = {f"p{n}": {"type": "string", "description": f"Number {n}"} for n in range(300)}
    tool = standardize("t", json.dumps({"name": "n", "parameters": {"properties": properties, "required": ["p7"]}}))
    assert [parameter.name for parameter in tool.parameters] == list(properties)
    assert [parameter.name for parameter in tool.parameters if parameter.required] == ["p7"]


def test_characters_of_every_kind_survive_but_halves_of_pairs():
    text = json.dumps(
        {
            "description": "Zählt 羊 🐑",
            "parameters": {"größe": {"type": "字符串"}, "\udc00": {"description": "\ud800x"}},
        }
    )
    tool = standardize("t", text)
    check(tool)
    assert tool.description == "Zählt 羊 🐑"
    assert [parameter.name for parameter in tool.parameters] == ["größe", "\ufffd"]
    assert tool.parameters[1].stored["description"] == "\ufffdx"


def _deep(kind: str, depth: int) -> str:
    return {
        "lists": '{"description": "d", "parameters": ' + "[" * depth + "]" * depth + "}",
        "objects": '{"description":"d","parameters":' + '{"properties":' * depth + "{}" + "}" * depth + "}",
        "items": '{"parameters":{"properties":{"p":' + '{"type":"array","items":' * depth + "{}" + "}" * depth + "}}}",
        "allOf": '{"parameters":' + '{"allOf":[' * depth + "{}" + "]}" * depth + "}",
        "default": '{"parameters":{"p":{"default":' + '{"a":' * depth + "1" + "}" * depth + "}}}",
        "responses": '{"responses":' + '{"a":' * depth + '"x"' + "}" * depth + "}",
        "yaml": "---\ndescription: " + "[" * depth + "]" * depth + "\n---\nbody",
        "yaml maps": "---\n" + "".join(" " * n + "a:\n" for n in range(min(depth, 300))) + "---\nbody",
        "brackets": "def f(" + "(" * depth,
        "types": "def f(a: " + "List[" * depth + "]" * depth + "): pass",
    }[kind]


@pytest.mark.parametrize("depth", [20, 300, 900, 20_000])
@pytest.mark.parametrize(
    "kind",
    ["lists", "objects", "items", "allOf", "default", "responses", "yaml", "yaml maps", "brackets", "types"],
)
def test_deep_nesting(kind, depth):
    check(standardize("t", _deep(kind, depth)))


def test_references_in_circles_end_soon():
    schemas = {
        name: {"allOf": [{"$ref": f"#/s/{other}"} for other in "abcde"], "properties": {name: {"$ref": "#/s/a"}}}
        for name in "abcde"
    }
    documents = [
        {"parameters": {"properties": {"x": {"$ref": "#/parameters/properties/x"}}}},
        {"parameters": {"$ref": "#/parameters"}},
        {"inputSchema": {"s": schemas, "allOf": [{"$ref": "#/s/a"}]}},
        {"responses": {"200": {"$ref": "#/s/a"}}, "operationId": "x", "s": schemas},
    ]
    started = time.process_time()
    for document in documents:
        check(standardize("t", json.dumps(document)))
    assert time.process_time() - started < 2


BILLION = "---\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)
MANY = ", ".join(f"a{n}" for n in range(3_000))
HUGE = {
    "one word": "x" * 3_000_000,
    "words": "word " * 600_000,
    "lines": "a: b\n" * 400_000,
    "brackets": "a (" * 500_000,
    "closing": ")" * 1_000_000,
    "stars": "*" * 1_000_000,
    "backticks": "---\nname: x\n---\n# When to use\n- " + "`a" * 500_000,
    "emphasis": "---\nname: x\n---\n# When to use\n" + "- **a\n" * 200_000,
    "headings": "---\nname: x\n---\n" + "# When to use\n- a b\n" * 100_000,
    "dashes": "---\n" * 300_000,
    "blank front matter": "---\n" + "\n" * 500_000,
    "items": "Parameters: " + "x (int): y. " * 300_000,
    "parameters": "Parameters:\n" + "- x (a(b(c: d\n" * 200_000,
    "optional": "'a' optional parameters " * 200_000,
    "spoken": "'x' parameter is " * 200_000,
    "commas": "def f(" + "a=1," * 300_000,
    "quotes": "def f(" + "'" * 1_000_000,
    "docstring": 'def f():\n    """' + "a " * 500_000,
    "spaces": " " * 1_000_000 + "x",
    "spaces in a line": "args" + " " * 1_000_000 + "x: " + " " * 10_000 + "y\nParameters:\n- x" + " " * 9_000 + "y",
    "spaces in a heading": "---\nname: x\n---\n# a" + " #" * 90_000 + "x",
    "aliases": BILLION + "description: *a9\narguments: *a9\n---\nbody",
    "names": json.dumps({"parameters": {f"p{n}": "string" for n in range(20_000)}}),
    "list": json.dumps({"parameters": [{"name": f"p{n}", "required": n % 2} for n in range(10_000)]}),
    "gorilla": json.dumps({"api_call": "x", "framework": "y", "api_arguments": "a," * 500_000}),
    "signature": json.dumps({"func_signature": f"def f({MANY})", "doc": "Args: " + "a1 (b): c. " * 50_000}),
    "answer": json.dumps({"description": "d", "responses": {f"k{n}": dict.fromkeys(MANY, "x") for n in range(2_000)}}),
    "long number": '{"description": "d", "parameters": {"p": {"default": ' + "9" * 100_000 + "}}}",
    "large float": '{"description": "d", "parameters": {"p": {"default": 1e999}}}',
}  # fmt: skip


@pytest.mark.parametrize("kind", HUGE)
def test_huge_documents_take_no_more_than_seconds(kind):
    started = time.process_time()
    tool = standardize("t", HUGE[kind])
    assert time.process_time() - started < 6
    check(tool)
    assert len(tool.description) <= 20_000 and len(tool.response) <= 20_000


def test_nothing_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for text in ("", "null", "[]", "{}", '"x"', "---\n---\n", "def f(:", "{'a': 1}", "\x00", "NaN"):
            check(standardize("t", text))


def test_the_format_of_what_is_no_document():
    assert sniff("null").format is Format.TEXT
    assert sniff("{'description': 'single quotes'}").format is Format.TEXT
    assert sniff("{}").format is Format.TEXT
    assert sniff("---\nno end").format is Format.TEXT
    assert sniff("# Title\n\n```\ndef f(): ...\n```").format is Format.MARKDOWN
