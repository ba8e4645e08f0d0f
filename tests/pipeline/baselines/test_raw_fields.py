from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from pipeline.baselines.raw_fields import raw_fields
from pipeline.demo import __file__ as demo


def test_every_source_s_keys_go_to_their_field():
    tool = raw_fields(
        "t",
        json.dumps(
            {
                "name": "n",
                "category": "c",
                "api_description": "Finds flats",
                "summary": "Flats",
                "required_parameters": [{"name": "city", "type": "STRING"}],
                "optional_parameters": [{"name": "pets", "type": "BOOLEAN"}],
                "template_response": {"flats": "list"},
                "example_code": ["find('Oslo')", "N/A"],
                "method": "GET",
            }
        ),
    )
    assert tool.description == "Finds flats\nFlats"
    assert [(p.name, dict(p.stored), p.required) for p in tool.parameters] == [
        ("city", {"type": "STRING"}, True),
        ("pets", {"type": "BOOLEAN", "required": False}, False),
    ]
    assert tool.response == '{"flats": "list"}'
    assert [example.user_intent for example in tool.examples] == ["find('Oslo')"]


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ({"type": "object", "properties": {"a": {"type": "int"}, "b": {}}, "required": ["a"]}, ["a", "b"]),
        ({"a": {"type": "int"}, "b": "text"}, ["a", "b"]),
        ([{"name": "a", "in": "query"}, {"name": "b"}], ["a", "b"]),
        (["text", {"odd": 1}], ["text", "parameters 2"]),
        ("(date: datetime)", ["parameters"]),
        ("N/A", []),
        (None, []),
        ([], []),
        ({}, []),
    ],
)
def test_parameters_in_every_shape(value, names):
    tool = raw_fields("t", json.dumps({"parameters": value}))
    assert [parameter.name for parameter in tool.parameters] == names
    if names == ["a", "b"] and isinstance(value, dict) and "required" in value:
        assert [parameter.required for parameter in tool.parameters] == [True, False]


def test_openapi_and_prose():
    operation = {"summary": "Read a book", "parameters": [{"name": "isbn"}], "responses": {"200": {}}}
    tool = raw_fields("t", json.dumps({"openapi": "3.1.0", "paths": {"/b": {"parameters": [], "get": operation}}}))
    assert tool.description == "Read a book" and tool.parameters[0].name == "isbn" and tool.response == '{"200": {}}'
    assert raw_fields("t", " plain text ").description == "plain text"
    assert raw_fields("t", "").description == ""
    assert raw_fields("t", "{not json").description == "{not json"
    assert raw_fields("t", "[1, 2]").description == "[1, 2]"
    assert raw_fields("t", "{" * 100_000).parameters == ()


def test_no_document_of_the_demo_lacks_a_description():
    rows = [json.loads(line) for line in (Path(demo).parent / "tools" / "tools.jsonl").read_text().splitlines()]
    assert all(raw_fields(row["tool_id"], row["documentation"]).description for row in rows)


@pytest.mark.shared
def test_every_real_document_is_taken(shared: Path):
    without = 0
    with gzip.open(shared / "data" / "tools.jsonl.gz", "rt") as stream:
        rows = [json.loads(line) for line in stream]
    for row in rows:
        tool = raw_fields(row["id"], row["documentation"])
        assert all(isinstance(parameter.text, str) for parameter in tool.parameters)
        without += not tool.description
    assert len(rows) == 10_871 and without / len(rows) < 0.01
