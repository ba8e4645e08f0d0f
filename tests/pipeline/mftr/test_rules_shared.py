"""The rules on real documents: none crashes, and the shares that were reached stay reached."""

from __future__ import annotations

import gzip
import json
import time
from collections import defaultdict

import pytest

from pipeline.mftr.coverage import field_coverage, parameter_recovery
from pipeline.mftr.files import (
    read_rewritten,
    read_standardized,
    standardized_to_json,
    write_rewritten,
    write_standardized,
)
from pipeline.mftr.rules import Format, sniff, standardize
from pipeline.mftr.schema import Field

pytestmark = pytest.mark.shared

#: Least share of documents with description, parameters, response and examples, and the format of most.
FLOORS = {
    "apibank": (0.99, 0.98, 0.99, 0, Format.RECORD),
    "apigen": (1, 0.999, 0, 0, Format.RECORD),
    "gorilla-huggingface": (1, 0.85, 0, 0, Format.GORILLA),
    "gorilla-pytorch": (1, 0.98, 0, 0, Format.GORILLA),
    "gorilla-tensor": (1, 0.95, 0, 0, Format.GORILLA),
    "craft-math-algebra": (1, 0.99, 1, 0, Format.PYTHON),
    "metatool": (1, 0, 0, 0, Format.RECORD),
    "toolalpaca": (1, 0.82, 1, 0, Format.RECORD),
    "bfcl": (1, 0.98, 0, 0, Format.FUNCTION),
    "restgpt-spotify": (1, 0.62, 0, 0, Format.OPENAPI),
    "ultratool": (1, 0.99, 0.99, 0, Format.FUNCTION),
    "toollens": (1, 0.45, 0.71, 0, Format.RAPIDAPI),
    "toolbench-g3": (0.95, 0.71, 0.66, 0, Format.RAPIDAPI),
    "toolbench-example": (0.92, 0.84, 0.65, 0, Format.RAPIDAPI),
    "taskbench-tools": (1, 1, 0.6, 0, Format.RECORD),
    "skills": (0.999, 0.004, 0.1, 0.33, Format.SKILL),
}


def rows(shared):
    with gzip.open(shared / "data" / "tools.jsonl.gz", "rt", encoding="utf-8") as stream:
        for row in map(json.loads, stream):
            yield row["source"], row["id"], row["documentation"]
    with gzip.open(shared / "data" / "skills" / "skills.jsonl.gz", "rt", encoding="utf-8") as stream:
        for row in map(json.loads, stream):
            yield "skills", row["id"], row["skill_md"]


def test_every_real_document_is_standardized_and_the_shares_hold(shared):
    read = list(rows(shared))
    assert len(read) == 10_871 + 3_096
    started = time.process_time()
    made = [standardize(tool_id, text) for _, tool_id, text in read]
    seconds = time.process_time() - started
    # Some 6,000 a second where nothing else runs.
    assert len(read) / seconds > 1_000
    tools, formats = defaultdict(list), defaultdict(list)
    for (source, _, text), tool in zip(read, made, strict=True):
        tools[source].append(tool)
        formats[source].append(sniff(text).format)
        json.dumps(standardized_to_json(tool), ensure_ascii=False, allow_nan=False).encode()
    assert tools.keys() == FLOORS.keys()
    for source, (*floors, expected) in FLOORS.items():
        found = field_coverage(tools[source])
        for field, floor in zip(Field, floors, strict=True):
            assert found.share(field) >= floor, (source, field)
        assert formats[source].count(expected) >= 0.99 * len(formats[source]), source


def test_parameters_recovered_of_the_published_standardization(shared):
    published = read_standardized(shared / "data" / "mftr" / "standardized_tools_apibank.jsonl").tools
    ours = [standardize(tool_id, text) for source, tool_id, text in rows(shared) if source == "apibank"]
    found = parameter_recovery(ours, published)
    # Five optional parameters of one tool are optional to the language model alone: the document does not say so.
    assert (found.reference, found.recovered, found.same_flag, found.extra) == (217, 217, 212, 0)
    assert (found.optional, found.optional_found) == (9, 4)


def test_published_files_come_back_byte_for_byte(shared, tmp_path):
    source = shared / "data" / "mftr" / "standardized_tools_apibank.jsonl"
    write_standardized(tmp_path / "tools.jsonl", read_standardized(source))
    assert (tmp_path / "tools.jsonl").read_bytes() == source.read_bytes()
    source = shared / "data" / "mftr" / "rewritten_queries.jsonl"
    rewritten = read_rewritten(source)
    assert len(rewritten.queries) == 1_601
    write_rewritten(tmp_path / "queries.jsonl", rewritten)
    assert (tmp_path / "queries.jsonl").read_bytes() == source.read_bytes()
