"""Tools and queries in fields as stored artifacts: made by rules, by a language model, or imported.

A set is one frame, one row for each tool or query of the benchmark version in byte order of the ids: ``id``, ``fields``
(the published JSON shape as text, null where there is none) and ``failure`` (what a language model could not fill and
why, null otherwise).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import polars as pl

from pipeline.benchmark import Benchmark
from pipeline.errors import MftrError
from pipeline.jobs.site import Site
from pipeline.mftr import fields
from pipeline.mftr.fields import QueryFields, ToolFields
from pipeline.mftr.files import rewritten_to_json, standardized_from_json, standardized_to_json
from pipeline.mftr.schema import Argument, RewrittenQuery, StandardizedTool, ToolNeed, original_query
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback, Stage
from pipeline.run import RunTarget
from store.access import mftr
from store.access.mftr import FieldTextsRecord
from store.field_text_models import FieldTextKind, FieldTexts, FieldTextSource

SCHEMA = {"id": pl.String, "fields": pl.String, "failure": pl.String}


@dataclass(frozen=True)
class Origin:
    """Where field texts come from.

    Attributes:
        source: who made them.
        model: the language model; "" where there was none.
        prompts: ``name@version`` of the prompts.
        rules_version: of the rules.
        counts: figures to keep with them, such as calls and seconds.
    """

    source: FieldTextSource
    model: str = ""
    prompts: tuple[str, ...] = ()
    rules_version: str = ""
    counts: Mapping[str, Any] | None = None


def rule_based_tools(
    benchmark: Benchmark, *, progress: ProgressCallback | None = None, cancelled: CancelledCallback | None = None
) -> list[StandardizedTool]:
    """Every tool of a benchmark in fields, by rules alone."""
    from pipeline.mftr.rules import standardize

    stage = Stage("standardizing", benchmark.tools.height, progress, cancelled)
    found = []
    for tool_id, documentation, name in benchmark.tools.select("tool_id", "documentation", "name").iter_rows():
        found.append(standardize(tool_id, documentation or "", name or ""))
        stage.advance(1)
    return found


def original_queries(benchmark: Benchmark) -> list[RewrittenQuery]:
    """Every query as its one need."""
    return [original_query(key, text) for key, text in benchmark.queries.select("query_id", "text").iter_rows()]


def rules_origin() -> Origin:
    """The origin of ``rule_based_tools``."""
    from pipeline.mftr.rules import RULES_VERSION

    return Origin(FieldTextSource.RULES, rules_version=RULES_VERSION)


def store_tools(
    site: Site,
    version_id: int,
    target: RunTarget,
    tools: Iterable[StandardizedTool],
    origin: Origin,
    *,
    failures: Mapping[str, str] | None = None,
    label: str = "",
    person: str = "",
) -> FieldTextsRecord:
    """Store tools in fields for a benchmark version; the same again changes nothing.

    Args:
        site: where to.
        version_id: of the benchmark.
        target: its ids.
        tools: at most one of each id; the others have no fields.
        origin: where they come from.
        failures: tool id → why it lacks fields.
        label: the owner's words.
        person: the owner.

    Raises:
        MftrError: a tool comes twice or is not of the benchmark.
    """
    given = list(tools)
    fields.tool_fields(given, target.tools)  # for its refusals
    known = {tool.tool_id: _written(standardized_to_json(tool)) for tool in given}
    counts = {
        "with description": sum(bool(tool.description) for tool in given),
        "with parameters": sum(bool(tool.parameters) for tool in given),
        "with response": sum(bool(tool.response) for tool in given),
        "with examples": sum(bool(tool.examples) for tool in given),
        "parameters": sum(len(tool.parameters) for tool in given),
        "examples": sum(len(tool.examples) for tool in given),
    }
    return _store(
        site, version_id, FieldTextKind.TOOLS, target.tools.ids, known, origin, counts, failures, label, person
    )


def store_queries(
    site: Site,
    version_id: int,
    target: RunTarget,
    queries: Iterable[RewrittenQuery],
    origin: Origin,
    *,
    failures: Mapping[str, str] | None = None,
    label: str = "",
    person: str = "",
) -> FieldTextsRecord:
    """Store rewritten queries; arguments as for ``store_tools``.

    Raises:
        MftrError: a query comes twice or is not of the benchmark.
    """
    given = list(queries)
    fields.query_fields(given, target.queries)
    known = {
        query.query_id: _written({"test_fold": query.test_fold, "rewritten_query": rewritten_to_json(query)})
        for query in given
    }
    counts = {
        "needs": sum(len(query.needs) for query in given),
        "with arguments": sum(bool(query.arguments) for query in given),
        "arguments": sum(len(query.arguments) for query in given),
        "with a fold": sum(query.test_fold is not None for query in given),
    }
    kind = FieldTextKind.QUERIES
    return _store(site, version_id, kind, target.queries.ids, known, origin, counts, failures, label, person)


def _store(
    site: Site,
    version_id: int,
    kind: FieldTextKind,
    ids: Iterable[str],
    known: Mapping[str, str],
    origin: Origin,
    counts: Mapping[str, Any],
    failures: Mapping[str, str] | None,
    label: str,
    person: str,
) -> FieldTextsRecord:
    failed = failures or {}
    rows = [(key, known.get(key), failed.get(key)) for key in ids]
    row = FieldTexts(
        id="",
        benchmark_version_id=version_id,
        kind=kind.value,
        source=origin.source.value,
        model=origin.model,
        prompts=sorted(origin.prompts),
        rules_version=origin.rules_version,
        artifact=site.artifacts.put_frame(pl.DataFrame(rows, schema=SCHEMA, orient="row")),
        items=len(rows),
        filled=sum(written is not None for _, written, _ in rows),
        failures=sum(failure is not None for _, _, failure in rows),
        counts={**counts, **(origin.counts or {})},
        label=label,
        person=person,
    )
    with site.database.session() as session:
        return mftr.add_field_texts(session, row, artifacts=site.artifacts)


def load_tools(site: Site, field_texts_id: str) -> list[StandardizedTool]:
    """The tools of a stored set that have fields.

    Raises:
        NotFound: there is no such set.
        MftrError: it holds queries.
    """
    rows = _rows(site, field_texts_id, FieldTextKind.TOOLS)
    return [standardized_from_json(key, json.loads(text)) for key, text in rows]


def load_queries(site: Site, field_texts_id: str) -> list[RewrittenQuery]:
    """The queries of a stored set that were rewritten; raises as ``load_tools``."""
    return [_query(key, json.loads(text)) for key, text in _rows(site, field_texts_id, FieldTextKind.QUERIES)]


def _query(query_id: str, value: Mapping[str, Any]) -> RewrittenQuery:
    content = value["rewritten_query"]
    return RewrittenQuery(
        query_id,
        tuple(ToolNeed(**need) for need in content["tool_needs"]),
        tuple(Argument(name, text) for name, text in content["extracted_arguments"].items()),
        value["test_fold"],
    )


def _written(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _rows(site: Site, field_texts_id: str, kind: FieldTextKind) -> list[tuple[str, str]]:
    with site.database.reading() as session:
        record = mftr.field_texts(session, field_texts_id)
    if record.kind != kind:
        raise MftrError(f"the field texts {field_texts_id[:8]} are {record.kind}, not {kind}")
    frame = site.artifacts.get_frame(record.artifact).drop_nulls("fields")
    return list(frame.select("id", "fields").iter_rows())


@lru_cache(maxsize=4)
def tool_fields(site: Site, field_texts_id: str, target: RunTarget) -> ToolFields:
    """A stored set in the order of a benchmark's tools; the last few are kept."""
    return fields.tool_fields(load_tools(site, field_texts_id), target.tools)


@lru_cache(maxsize=4)
def query_fields(site: Site, field_texts_id: str, target: RunTarget) -> QueryFields:
    """A stored set in the order of a benchmark's queries; the last few are kept."""
    return fields.query_fields(load_queries(site, field_texts_id), target.queries)
