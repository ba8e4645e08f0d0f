from __future__ import annotations

import json

import pytest

from pipeline.errors import MftrError
from pipeline.mftr.files import (
    RewrittenQueries,
    StandardizedDocuments,
    id_coverage,
    read_rewritten,
    read_standardized,
    write_rewritten,
    write_standardized,
)
from pipeline.mftr.schema import Argument, Example, Field, Parameter, RewrittenQuery, StandardizedTool, ToolNeed

TOOL = {
    "id": "tëa_1",
    "type": "web",
    "augmented": {
        "description": "Brews 茶.",
        "parameters": {"leaf": {"type": "string", "required": True, "default": None, "example": {"a": [1]}}},
        "response": "",
        "examples": [{"user_intent": "Make tea", "tool_call": {"name": "brew", "arguments": {"leaf": "assam"}}}],
    },
    "origin_documentation": {"any": ["thing"]},
    "extra": None,
}
QUERY = {
    "id": "q1",
    "dataset": "kitchen",
    "test_fold": 3,
    "rewritten_query": {
        "tool_needs": [{"user_intent": "u", "tool_description": "t", "expected_response": "e"}],
        "extracted_arguments": {"leaf": "sort of tea"},
    },
    "query": "tea please",
}


def lines(path, *rows):
    path.write_text(
        "".join((row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)) + "\n" for row in rows)
    )
    return path


def changed(row, *path, to=...):
    """A copy with one value replaced, or removed."""
    copy = json.loads(json.dumps(row))
    place = copy
    for key in path[:-1]:
        place = place[key]
    if to is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return copy


def test_published_tools_come_back_byte_for_byte(tmp_path):
    source = lines(tmp_path / "in.jsonl", TOOL, changed(TOOL, "id", to="b"))
    documents = read_standardized(source)
    tool = documents.tools[0]
    # A stored null is kept as it is, in its place.
    assert list(tool.parameters[0].stored) == ["type", "required", "default", "example"]
    assert tool.examples == (Example("Make tea", {"name": "brew", "arguments": {"leaf": "assam"}}),)
    assert documents.failures == {}
    write_standardized(tmp_path / "out.jsonl", documents)
    assert (tmp_path / "out.jsonl").read_bytes() == source.read_bytes()


def test_published_queries_come_back_byte_for_byte(tmp_path):
    source = lines(tmp_path / "in.jsonl", QUERY, changed(changed(QUERY, "id", to="b"), "test_fold"))
    rewritten = read_rewritten(source)
    assert rewritten.queries[0] == RewrittenQuery(
        "q1", (ToolNeed("u", "t", "e"),), (Argument("leaf", "sort of tea"),), 3
    )
    assert rewritten.queries[1].test_fold is None
    write_rewritten(tmp_path / "out.jsonl", rewritten)
    assert (tmp_path / "out.jsonl").read_bytes() == source.read_bytes()


def test_failures_are_written_and_read(tmp_path):
    tool = StandardizedTool("a", "d", (Parameter("p", {"required": False}),))
    documents = StandardizedDocuments((tool,), {"a": {Field.RESPONSE: "cut off", Field.EXAMPLES: "no JSON"}})
    write_standardized(tmp_path / "t.jsonl", documents)
    row = json.loads((tmp_path / "t.jsonl").read_text())
    assert "response" not in row["augmented"] and "examples" not in row["augmented"]
    again = read_standardized(tmp_path / "t.jsonl")
    assert (again.tools, again.failures) == (documents.tools, documents.failures)

    queries = RewrittenQueries((RewrittenQuery("q", (ToolNeed("u", "t", "e"),)),), {"r": "no needs"})
    write_rewritten(tmp_path / "q.jsonl", queries)
    again = read_rewritten(tmp_path / "q.jsonl")
    assert (again.queries, again.failures) == (queries.queries, queries.failures)


def test_a_list_and_a_folder_of_single_tools(tmp_path):
    (tmp_path / "all.json").write_text(json.dumps([TOOL, changed(TOOL, "id", to="b")]))
    assert [tool.tool_id for tool in read_standardized(tmp_path / "all.json").tools] == ["tëa_1", "b"]
    folder = tmp_path / "one_each"
    folder.mkdir()
    (folder / "2.json").write_text(json.dumps(TOOL))
    (folder / "1.json").write_text(json.dumps(changed(TOOL, "id", to="b")))
    assert [tool.tool_id for tool in read_standardized(folder).tools] == ["b", "tëa_1"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (changed(TOOL, "id"), "id is missing; it must be text"),
        (changed(TOOL, "id", to=7), 'id must be text, found a number: "7"'),
        (changed(TOOL, "id", to=""), 'the id is ""'),
        (changed(TOOL, "id", to="first"), 'the id "first" is that of tools.jsonl, line 1 too'),
        (changed(TOOL, "augmented"), "augmented is missing; it must be an object"),
        (changed(TOOL, "augmented", "response"), "augmented.response is missing; it must be text"),
        (changed(TOOL, "augmented", "description", to=None), "augmented.description must be text, found null"),
        (changed(TOOL, "augmented", "parameters", to=[]), "augmented.parameters must be an object, found a list"),
        (changed(TOOL, "augmented", "parameters", "leaf", to="string"), 'the parameter "leaf" must be an object'),
        (changed(TOOL, "augmented", "parameters", "leaf", "required", to="yes"), "required must be true or false"),
        (changed(TOOL, "augmented", "examples", to={}), "augmented.examples must be a list"),
        (changed(TOOL, "augmented", "examples", 0, to="wish"), "augmented.examples, entry 1: expected an object"),
        (changed(TOOL, "augmented", "examples", 0, "user_intent"), "entry 1.user_intent is missing"),
        (changed(TOOL, "augmented", "examples", 0, "tool_call", to="x"), "tool_call must be an object"),
        (TOOL | {"failed": {"price": "x"}}, "failed must name fields"),
        ("[]", "expected a JSON object"),
        ("{", "not valid JSON"),
        ('{"id": "x", "id": "y"}', 'the key "id" occurs twice'),
        ('{"id": NaN}', "NaN is not a JSON value"),
    ],
)  # fmt: skip
def test_faults_of_tools_are_named_with_their_line(tmp_path, row, said):
    path = lines(tmp_path / "tools.jsonl", changed(TOOL, "id", to="first"), "", row)
    with pytest.raises(MftrError) as refused:
        read_standardized(path)
    message = str(refused.value)
    assert message.startswith("tools.jsonl cannot be read as standardized documents:\n  tools.jsonl, line 3: ")
    assert said in message


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (changed(QUERY, "rewritten_query"), "rewritten_query is missing"),
        (changed(QUERY, "rewritten_query", "tool_needs", to=[]), "at least one need"),
        (changed(QUERY, "rewritten_query", "tool_needs", 0, "expected_response"), "expected_response is missing"),
        (changed(QUERY, "rewritten_query", "extracted_arguments", to=[]), "extracted_arguments must be an object"),
        (changed(QUERY, "rewritten_query", "extracted_arguments", "leaf", to=3), "arguments.leaf must be text"),
        (changed(QUERY, "test_fold", to="0"), "test_fold must be a whole number"),
        (changed(QUERY, "test_fold", to=True), "test_fold must be a whole number"),
        (changed(QUERY, "test_fold", to=10**30), "test_fold must be a whole number from 0 to 1,000,000"),
        ({"id": "q", "failed": 3}, "failed must be text"),
    ],
)  # fmt: skip
def test_faults_of_queries_are_named_with_their_line(tmp_path, row, said):
    path = lines(tmp_path / "queries.jsonl", changed(QUERY, "id", to="first"), row)
    with pytest.raises(MftrError, match=r"queries\.jsonl, line 2: ") as refused:
        read_rewritten(path)
    assert said in str(refused.value)


def test_many_faults_are_all_counted_and_twenty_shown(tmp_path):
    path = lines(tmp_path / "t.jsonl", *({"id": str(n)} for n in range(30)))
    with pytest.raises(MftrError) as refused:
        read_standardized(path)
    assert len(str(refused.value).splitlines()) == 22
    assert str(refused.value).endswith("… and 10 more")


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(MftrError, match="there is no file"):
        read_standardized(tmp_path / "none.jsonl")
    with pytest.raises(MftrError, match=r"holds no \.json"):
        read_rewritten(tmp_path)
    (tmp_path / "broken.json").write_text("[1, {")
    with pytest.raises(MftrError, match=r"broken\.json: not valid JSON"):
        read_standardized(tmp_path / "broken.json")


def test_ids_against_a_benchmark():
    fit = id_coverage(["a", "tool_1", "x"], ["a", "b", "Tool_1", "c"], "tool")
    assert (fit.known, fit.missing, fit.unknown) == (1, ("b", "Tool_1", "c"), ("tool_1", "x"))
    assert fit.messages[0] == '3 tools of 4 in the benchmark are not in the file: "b", "Tool_1", "c"'
    assert 'the known tool "Tool_1" differs from it only in upper and lower case' in fit.messages[1]
    assert id_coverage(["a"], ["a"], "query").messages == ()
    assert id_coverage([], ["a", "b"], "query").messages[0].startswith("2 queries of 2 in the benchmark")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"id": "a", "id": "b"}]', 'the key "id" occurs twice'),
        ('[{"id": "a", "augmented": {"description": NaN}}]', "NaN is not a JSON value"),
        ('[{"id": "\\ud800"}]', "half of a surrogate pair"),
        ("[" * 100_000, "nested too deeply"),
        ("[{]", "not valid JSON at line 1, column 3"),
    ],
)
def test_a_list_is_read_as_strictly_as_lines(tmp_path, text, said):
    (tmp_path / "tools.json").write_text(text, encoding="utf-8")
    with pytest.raises(MftrError, match=r"tools\.json: ") as refused:
        read_standardized(tmp_path / "tools.json")
    assert said in str(refused.value)
