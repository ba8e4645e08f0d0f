"""Each format with a document written for the test."""

from __future__ import annotations

import json

import pytest

from pipeline.mftr.rules import Format, sniff, standardize


def read(document, expected: Format):
    text = document if isinstance(document, str) else json.dumps(document, ensure_ascii=False)
    assert sniff(text).format is expected
    return standardize("t", text)


def stored(tool):
    return {parameter.name: dict(parameter.stored) for parameter in tool.parameters}


def required(tool):
    return {parameter.name: parameter.required for parameter in tool.parameters}


def test_json_schema_function_with_list_of_required():
    function = {
        "name": "brew",
        "description": "Brews a pot of tea.",
        "parameters": {
            "type": "object",
            "properties": {
                "leaf": {"type": "string", "description": "Sort of tea", "enum": ["assam", "sencha"]},
                "minutes": {"type": "integer", "description": "How long", "default": 3, "examples": [4, 5]},
                "cups": {"type": ["integer", "null"], "default": None},
                "water": {
                    "type": "object",
                    "properties": {"litres": {"type": "number", "description": "How much"}, "hardness": {}},
                },
                "guests": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["leaf", "water"],
        },
        "returns": {"type": "object", "properties": {"colour": {"type": "string", "description": "As hex."}}},
    }
    for document in (function, {"type": "function", "function": function}, [function]):
        tool = read(document, Format.FUNCTION)
        assert tool.description == "Brews a pot of tea."
        assert stored(tool) == {
            "leaf": {
                "type": "string",
                "description": "Sort of tea",
                "required": True,
                "enum": ["assam", "sencha"],
            },
            "minutes": {"type": "integer", "description": "How long", "required": False, "default": 3, "example": 4},
            # A null default is no default.
            "cups": {"type": "integer", "required": False},
            "water": {"type": "object", "required": True, "properties": {"litres": "How much", "hardness": ""}},
            "guests": {"type": "array of string", "required": False},
        }
        assert list(stored(tool)["minutes"]) == ["type", "description", "required", "default", "example"]
        assert tool.response == "colour (string): As hex."
        assert tool.examples == ()


def test_without_marks_every_parameter_is_required_unless_its_text_says_otherwise():
    properties = {
        "a": {"type": "string"},
        "b": {"type": "string", "description": "Optional. The second."},
        "c": {"type": "string", "description": "Left at midnight if not provided."},
        "d": {"type": "string", "description": "This one is not optional."},
        "e": {"type": "string", "description": "An optional extra such as sugar"},
        "f": {"type": "string", "optional": True},
        "g": {"type": "string", "default": "x"},
    }
    tool = read({"name": "n", "arguments": {"type": "object", "properties": properties}}, Format.FUNCTION)
    # "An optional extra" speaks of the extra; a default alone says nothing of leaving the parameter out.
    assert required(tool) == {"a": True, "b": False, "c": False, "d": True, "e": True, "f": False, "g": True}


def test_one_mark_makes_the_unmarked_optional():
    tool = read(
        {"description": "d", "parameters": {"a": "Required. string. First.", "b": "integer. Second."}}, Format.RECORD
    )
    assert stored(tool) == {
        "a": {"type": "string", "description": "First.", "required": True},
        "b": {"type": "integer", "description": "Second.", "required": False},
    }
    tool = read({"description": "d", "parameters": [{"name": "a", "required": "false"}, {"name": "b"}]}, Format.RECORD)
    assert required(tool) == {"a": False, "b": True}


def test_anthropic_tool_and_parameters_written_as_json_text():
    tool = read(
        {"name": "n", "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}}}, Format.FUNCTION
    )
    assert required(tool) == {"q": True}
    tool = read({"description": "d", "parameters": json.dumps({"q": "string. What to look for."})}, Format.RECORD)
    assert stored(tool) == {"q": {"type": "string", "description": "What to look for.", "required": True}}


def test_map_of_parameters_with_optional_in_the_type():
    document = {
        "name": "n",
        "description": "Finds ferries.",
        "parameters": {
            "port": {"type": "str", "description": "Where from", "default": ""},
            "day": {"type": "str, optional", "description": "When", "default": "today"},
            "seats": {"type": "int, optional, default=2", "description": "How many"},
            "via": {"type": "Optional[str]"},
        },
    }
    assert stored(read(document, Format.RECORD)) == {
        "port": {"type": "str", "description": "Where from", "required": True},
        "day": {"type": "str", "description": "When", "required": False, "default": "today"},
        "seats": {"type": "int", "description": "How many", "required": False, "default": "2"},
        "via": {"type": "str", "required": False},
    }


def test_rapidapi():
    document = {
        "category_name": "Sea",
        "tool_name": "Tides",
        "api_name": "High water",
        "api_description": "Times of high water.",
        "description": "Times of high water.",
        "required_parameters": [{"name": "harbour", "type": "STRING", "description": "Which", "default": "Dover"}],
        "optional_parameters": [{"name": "days", "type": "NUMBER", "description": "", "default": ""}],
        "template_response": {"tides": [{"time": "str", "metres": "float", "_list_length": 4}]},
    }
    tool = read(document, Format.RAPIDAPI)
    assert tool.description == "Times of high water."
    assert stored(tool) == {
        "harbour": {"type": "string", "description": "Which", "required": True, "default": "Dover"},
        "days": {"type": "number", "required": False},
    }
    assert tool.response == "tides {time (str); metres (float)}"


def test_gorilla_arguments_of_every_shape():
    def arguments(value):
        document = {"domain": "Audio", "functionality": "Denoising", "api_call": "load()", "api_arguments": value}
        return stored(
            read({**document, "description": "Removes noise.", "example_code": "import x\nx.run()"}, Format.GORILLA)
        )

    assert arguments(["path", "rate: samples a second"]) == {
        "path": {"required": True},
        "rate": {"description": "samples a second", "required": True},
    }
    assert arguments({"model": "owner/name", "path": "path to a file", "kind": "string", "n": 3, "none": None}) == {
        "model": {"required": True, "example": "owner/name"},
        "path": {"description": "path to a file", "required": True},
        "kind": {"type": "string", "required": True},
        "n": {"required": True, "example": 3},
        "none": {"required": True},
    }
    assert arguments([{"name": "size", "type": "str", "description": "How big"}]) == {
        "size": {"type": "str", "description": "How big", "required": True}
    }
    assert list(arguments("image, labels")) == ["image", "labels"]
    for nothing in ("", "N/A", "the address of the model", None, [], 7):
        assert arguments(nothing) == {}


def test_gorilla_says_what_the_model_is_for_and_has_no_wish():
    document = {
        "domain": "Audio",
        "functionality": "Denoising",
        "api_call": "x",
        "framework": "F",
        "example_code": "a b",
    }
    tool = read(
        {**document, "description": "Removes noise from audio", "performance": {"result": "0.9"}}, Format.GORILLA
    )
    assert tool.description == "Removes noise from audio. Denoising"
    assert tool.examples == () and tool.response == ""


def test_api_bank_like_record():
    document = {
        "category": "调用",
        "parameters": [
            {"name": "plot", "in": "query", "schema": {"type": "str", "default": None}, "description": "Which (if any)"}
        ],
        "description": '"Waters a garden."',
        "url": "apis/water.py",
        "method": "GET",
        "responses": {"litres": {"type": "float", "description": "Used."}, "state": {"type": "str"}},
        "name": "Water",
    }
    tool = read(document, Format.RECORD)
    assert tool.description == "Waters a garden."
    assert stored(tool) == {"plot": {"type": "str", "description": "Which (if any)", "required": False}}
    assert tool.response == "litres (float): Used; state (str)"


def test_a_description_may_name_optional_parameters():
    document = {
        "description": "Takes two optional parameters - 'a' and 'b' - and 'c'.",
        "parameters": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
    }
    assert required(read(document, Format.RECORD)) == {"a": False, "b": False, "c": True}


def test_a_signature_as_parameters():
    tool = read({"description": ".", "parameters": "(image: str, size: int = 3)"}, Format.RECORD)
    assert tool.description == ""
    assert stored(tool) == {
        "image": {"type": "str", "required": True},
        "size": {"type": "int", "required": False, "default": "3"},
    }


def test_types_of_input_and_output():
    tool = read(
        {"name": "n", "description": "d", "input-type": ["video", "text"], "output-type": ["audio"]}, Format.RECORD
    )
    assert list(stored(tool)) == ["video", "text"] and tool.response == "audio"


def test_examples_are_wishes_not_code():
    document = {
        "description": "d",
        "examples": [
            {"query": "How wet is it in Oslo?", "tool_call": {"name": "wx", "arguments": {"city": "Oslo"}}},
            "Is it raining?",
            3,
        ],
        "when_to_use": "The user plans a walk.",
        "example": "import wx",
    }
    tool = read(document, Format.RECORD)
    assert [example.user_intent for example in tool.examples] == [
        "How wet is it in Oslo?",
        "Is it raining?",
        "The user plans a walk.",
    ]
    assert tool.examples[0].tool_call == {"name": "wx", "arguments": {"city": "Oslo"}}


def test_openapi_document_with_references_bodies_and_placeholders():
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Boats"},
        "paths": {
            "/boats/{id}/{deck}": {
                "parameters": [
                    {"name": "id", "in": "path", "schema": {"type": "integer"}, "description": "Which boat"}
                ],
                "post": {
                    "summary": "Rent a boat",
                    "description": "Books it for a day.",
                    "parameters": [{"$ref": "#/components/parameters/Lang"}],
                    "requestBody": {
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Rental"}}}
                    },
                    "responses": {
                        "404": {"description": "No such boat"},
                        "201": {
                            "description": "Booked.",
                            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Receipt"}}},
                        },
                    },
                },
            }
        },
        "components": {
            "parameters": {"Lang": {"name": "lang", "in": "query", "required": False, "schema": {"type": "string"}}},
            "schemas": {
                "Rental": {
                    "allOf": [{"$ref": "#/components/schemas/Dated"}],
                    "properties": {"crew": {"type": "integer", "example": 4}},
                },
                "Dated": {"properties": {"day": {"type": "string", "format": "date"}}, "required": ["day"]},
                "Receipt": {"properties": {"number": {"type": "string", "description": "Of the booking"}}},
            },
        },
    }
    tool = read(document, Format.OPENAPI)
    assert tool.description == "Rent a boat. Books it for a day."
    assert required(tool) == {"lang": False, "id": True, "crew": False, "day": True, "deck": True}
    assert stored(tool)["id"]["description"] == "Which boat"
    assert stored(tool)["crew"] == {"type": "integer", "required": False, "example": 4}
    assert tool.response == "Booked: number (string): Of the booking"


def test_one_operation_by_itself_and_swagger_bodies():
    operation = {
        "name": "GET /boats/{id}",
        "summary": "One boat\n",
        "method": "GET",
        "url": "https://boats.example/v1/boats/{id}",
        "parameters": [{"name": "full", "in": "query", "required": "true"}],
    }
    assert required(read(operation, Format.OPENAPI)) == {"full": True, "id": True}
    body = {"name": "body", "in": "body", "schema": {"properties": {"day": {"type": "string"}}, "required": []}}
    tool = read(
        {"operationId": "rent", "parameters": [body], "responses": {"200": {"schema": {"type": "string"}}}},
        Format.OPENAPI,
    )
    assert required(tool) == {"day": False} and tool.response == "string"


def test_mcp_tool_and_list():
    entry = {
        "name": "moon",
        "title": "Moon",
        "description": "Phase of the moon.",
        "inputSchema": {
            "type": "object",
            "properties": {"day": {"$ref": "#/$defs/Day"}, "place": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
            "required": ["day"],
            "$defs": {"Day": {"type": "string", "description": "ISO date"}},
        },
        "outputSchema": {"type": "object", "properties": {"lit": {"type": "number"}}},
    }
    for document in (entry, {"tools": [entry]}):
        tool = read(document, Format.MCP)
        assert tool.description == "Phase of the moon."
        assert stored(tool) == {
            "day": {"type": "string", "description": "ISO date", "required": True},
            "place": {"type": "string", "required": False},
        }
        assert tool.response == "lit (number)"


SKILL = """---
name: tidy-logs
description: >
  Tidies log files
  by date.
argument-hint: "<folder> [since]"
---

# Tidy logs

Opening words.

## When to use this skill

- Logs fill the disk
- "Sort **my** logs"
- Do not use it for traces

```
- not an item
```

## When not to use

- Anything else

## Output format

A folder a month.

| --- | --- |

### Detail

With an index.

## Inputs

- `depth` (integer, optional): How deep to look
- **root** — Where to begin
- **Note**: Ask when unsure
- Anything else that helps

## Setup

- Install it
"""


def test_skill():
    tool = read(SKILL, Format.SKILL)
    assert tool.description == "Tidies log files by date."
    assert [example.user_intent for example in tool.examples] == ["Logs fill the disk", "Sort my logs"]
    assert tool.response == "A folder a month. With an index."
    assert required(tool) == {"folder": True, "since": False, "depth": False, "root": False}
    assert stored(tool)["depth"] == {"type": "integer", "description": "How deep to look", "required": False}
    assert stored(tool)["root"]["description"] == "Where to begin"


def test_skill_without_a_description_opens_with_its_first_paragraph():
    tool = read("---\nname: x\n---\n# X\n\nFolds *paper*\ninto cranes.\n\nMore.\n", Format.SKILL)
    assert tool.description == "Folds paper into cranes."


def test_markdown_without_front_matter():
    tool = read(
        "# Cranes\n\nFolds paper.\n\n## Parameters\n\n- `size`: In millimetres\n\n## Returns\n\nA crane.\n",
        Format.MARKDOWN,
    )
    assert tool.description == "Folds paper."
    assert stored(tool) == {"size": {"description": "In millimetres", "required": True}}
    assert tool.response == "A crane."


def test_python_source_with_google_numpy_and_sphinx_docstrings():
    google = '''def area(width: float, height: float = 2.0, *, unit="m", **more) -> float:
    """Area of a rectangle.

    Args:
        width (float): How wide,
            in the unit.
        height: How high.
    Returns:
        float: The area.
    """
'''
    tool = read(google, Format.PYTHON)
    assert tool.description == "Area of a rectangle."
    assert stored(tool) == {
        "width": {"type": "float", "description": "How wide, in the unit.", "required": True},
        "height": {"type": "float", "description": "How high.", "required": False, "default": "2.0"},
        "unit": {"required": False, "default": "m"},
    }
    assert tool.response == "float: The area."

    numpy = '''def f(x, y):
    """Adds.

    Parameters
    ----------
    x : int
        The first.
    y : int, optional
        The second.

    Returns
    -------
    int
        The sum.
    """
'''
    tool = read(numpy, Format.PYTHON)
    assert required(tool) == {"x": True, "y": False}
    assert stored(tool)["x"] == {"type": "int", "description": "The first.", "required": True}
    assert tool.response == "int The sum."

    sphinx = 'def f(x):\n    """Halves.\n\n    :param int x: What.\n    :returns: Half of it.\n    """\n'
    tool = read(sphinx, Format.PYTHON)
    assert stored(tool) == {"x": {"type": "int", "description": "What.", "required": True}}
    assert tool.response == "Half of it."


def test_record_with_signature_and_a_docstring_on_one_line():
    document = {
        "name": "mean",
        "func_signature": "def mean(values, weights=None)",
        "description": "Mean of values. Parameters: values (list of float): The numbers: all of them. "
        "weights (list of float): Their weights. Returns: float: The mean.",
    }
    tool = read(document, Format.PYTHON)
    assert tool.description == "Mean of values."
    assert stored(tool) == {
        "values": {"type": "list of float", "description": "The numbers: all of them.", "required": True},
        "weights": {"type": "list of float", "description": "Their weights.", "required": False},
    }
    assert tool.response == "float: The mean."


def test_prose_with_sections():
    text = """Ferry finder. Finds ferries.

Parameters:
- port (string, required): Where from.
- day (string, optional): When.

Returns: a list of crossings.

Example queries:
- When is the next boat to Brodick?
"""
    tool = read(text, Format.TEXT)
    assert tool.description == "Ferry finder. Finds ferries."
    assert required(tool) == {"port": True, "day": False}
    assert tool.response == "a list of crossings."
    assert [example.user_intent for example in tool.examples] == ["When is the next boat to Brodick?"]


def test_prose_that_speaks_of_parameters():
    text = "An API with two parameters. The 'town' parameter refers to the place, and the 'day' parameter is the date."
    tool = read(text, Format.TEXT)
    assert tool.description == text
    assert stored(tool) == {
        "town": {"description": "the place", "required": True},
        "day": {"description": "the date", "required": True},
    }


@pytest.mark.parametrize("text", ["", " \n\t", "\ufeff"])
def test_blank(text):
    tool = standardize("t", text)
    assert (tool.description, tool.parameters, tool.response, tool.examples) == ("", (), "", ())


def test_unknown_json_is_read_as_its_texts():
    assert read({"foo": "Counts sheep.", "bar": ["Quickly.", 4]}, Format.TEXT).description == "Counts sheep. Quickly."
    assert read("[1, 2]", Format.TEXT).description == ""


def test_the_name_is_no_field():
    tool = standardize("t", json.dumps({"name": "secretname", "description": "d"}), "othername")
    assert tool == standardize("t", json.dumps({"name": "secretname", "description": "d"}))
    assert "secretname" not in repr(tool)
