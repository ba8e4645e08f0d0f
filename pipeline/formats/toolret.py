"""ToolRet's rows, and those of Tool-DE/Tool-REX, which have the same shape.

A query row has ``id, query, instruction, labels, category``; ``labels`` is a list (often written as a JSON string) of
``{"id", "doc", "relevance"}``. Only its ids are used: ``doc`` is not the document of the corpus. A tool row has
``id, documentation`` and may have ``category``. ``source`` names the task; without it the task is the folder a query
file lies in and the category the folder a tool file lies in, as on the hub (``{task}/queries-00000-of-00001.parquet``,
``{category}/tools-00000-of-00001.parquet``). ``gt_ids``, where present, must name the same tools as ``labels``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from rapidfuzz import process

from pipeline.benchmark import Benchmark, BenchmarkInfo, Kind
from pipeline.errors import BenchmarkError
from pipeline.formats.benchmark_validation import validate_benchmark
from pipeline.formats.loose_rows import LooseRows, Row
from pipeline.formats.messages import listing, plural, quote
from pipeline.formats.source_table import ProblemList

_QUERY_KEYS = {"id", "query", "instruction", "labels", "category", "source", "gt_ids", "origin"}
_TOOL_KEYS = {"id", "documentation", "category", "source", "origin"}
_FILE_NAME = re.compile(r"(queries|tools)([-.].*)?\.(jsonl|jsonl\.gz|parquet)")


class ToolCorpus(StrEnum):
    """Which tools are searched when only some tasks are imported."""

    SOURCE = "source"
    CATEGORY = "category"
    ALL = "all"


@dataclass(frozen=True)
class ToolRetFiles:
    """The query and tool files of one data set."""

    queries: tuple[Path, ...]
    tools: tuple[Path, ...]


def find_toolret_files(*folders: Path) -> ToolRetFiles:
    """Files named ``queries…`` and ``tools…`` in each folder, or at most two folders deeper, sorted by path.

    Of each kind only those that lie least deep are taken.
    """
    found: dict[str, list[Path]] = {"queries": [], "tools": []}
    for folder in folders:
        seen: set[str] = set()
        for pattern in ("*", "*/*", "*/*/*"):
            here = [
                (match[1], path)
                for path in sorted(folder.glob(pattern))
                if (match := _FILE_NAME.fullmatch(path.name)) and path.is_file() and match[1] not in seen
            ]
            for kind, path in here:
                found[kind].append(path)
                seen.add(kind)
    return ToolRetFiles(tuple(found["queries"]), tuple(found["tools"]))


def read_toolret(
    files: ToolRetFiles,
    *,
    sources: Sequence[str] = (),
    corpus: ToolCorpus | str | None = None,
    slug: str | None = None,
    title: str | None = None,
    version: str | None = None,
    licence: str = "",
    origin: str = "",
    revision: str = "",
    notes: Sequence[str] = (),
) -> Benchmark:
    """Read ToolRet-shaped files into a benchmark.

    Args:
        files: see ``find_toolret_files``.
        sources: only queries of these tasks; all when empty.
        corpus: the tools that are searched: those of the kept tasks (``source``: by the ``source`` column, else by the
            part of the id before ``_tool_`` as far as labels use it), those of the kept queries' categories, or
            ``all``. Default: ``source`` when tasks were chosen and tools have a ``source`` column, else ``all``.
        slug: default: the one chosen task, else ``toolret``.
        title: default: the slug.
        version: default ``1``.
        licence: as the data set states it.
        origin: where the files come from, default their names; becomes part of ``source``.
        revision: the commit of the data set, if known.
        notes: what was noticed before.

    Raises:
        BenchmarkError: the rows are refused; every problem is named.
    """
    problems, found = ProblemList(), list(notes)
    queries = LooseRows(files.queries, "queries", problems)
    tools = LooseRows(files.tools, "tools", problems)
    queries.note_unknown(_QUERY_KEYS, found)
    tools.note_unknown(_TOOL_KEYS, found)
    query_rows = _of_sources(queries, sources, problems)
    labels = [_labels(queries, row) for row in query_rows]
    chosen = _chosen_corpus(corpus, sources, tools)
    tool_rows = _corpus_rows(tools, chosen, sources, queries, query_rows, labels)
    truth = LooseRows((), "ground_truth", problems)
    truth.names = queries.names
    tables = {
        "tools": tools.source_table(_tool_columns(tools, tool_rows), tool_rows),
        "queries": queries.source_table(_query_columns(queries, query_rows), query_rows),
    }
    query_ids = tables["queries"].frame["query_id"].to_list()
    tables["ground_truth"] = truth.source_table({"query_id": query_ids, "tool_ids": labels}, query_rows)
    problems.raise_if_any("The ToolRet-shaped rows cannot be read as they are:")
    _note_origins(query_rows, found)
    name = slug or (_slug(sources[0]) if len(sources) == 1 else "toolret")
    where = origin or ", ".join(dict.fromkeys([*queries.names[:3], *tools.names[:3]]))
    tasks = f"; tasks: {', '.join(sources)}" if sources else ""
    info = BenchmarkInfo(
        slug=name,
        title=title or name,
        kind=Kind.TOOL,
        version=version or "1",
        licence=licence,
        source=f"{where}{tasks}; tools searched: {chosen}",
        revision=revision,
    )
    return validate_benchmark(info, tables, found)


def _source(rows: LooseRows, row: Row) -> str:
    """The task a row belongs to: its ``source`` column, else the folder of a hub-style file, else ""."""
    value = rows.text(row, "source") if "source" in row.values else ""
    return value or _hub_folder(rows, row)


def _hub_folder(rows: LooseRows, row: Row) -> str:
    path = rows.files[row.file]
    return path.parent.name if re.fullmatch(r"(queries|tools)-\d+-of-\d+\..*", path.name) else ""


def _of_sources(queries: LooseRows, sources: Sequence[str], problems: ProblemList) -> list[Row]:
    if not sources:
        return queries.rows
    by_row = [_source(queries, row) for row in queries.rows]
    known = sorted(set(by_row))
    for source in sources:
        if source not in known:
            near = process.extractOne(source, known, score_cutoff=60)
            hint = f"; the nearest known is {quote(near[0])}" if near else ""
            problems.add(f"no query has the source {quote(source)}{hint}. Known are: {listing(known, 40)}", "queries")
    wanted = set(sources)
    return [row for row, source in zip(queries.rows, by_row, strict=True) if source in wanted]


def _labels(queries: LooseRows, row: Row) -> list[str]:
    """The ids of the relevant tools, in label order, repeats kept."""
    labels, given = row.values.get("labels"), queries.texts(row, "gt_ids")
    if labels is None:
        if not given:
            queries.refuse(row, "labels is missing; a query needs its ground truth")
        return given
    if isinstance(labels, str):
        try:
            labels = json.loads(labels)
        except (ValueError, RecursionError) as error:
            queries.refuse(row, f"labels is not valid JSON ({error}): {quote(str(labels))}")
            return []
    if not isinstance(labels, list):
        queries.refuse(row, f"labels must be a list, found {quote(repr(labels))}")
        return []
    ids = []
    for label in labels:
        identifier = label.get("id") if isinstance(label, dict) else None
        if not isinstance(identifier, str):
            queries.refuse(row, f'a label needs an "id" that is text, found {quote(json.dumps(label)[:200])}')
            return []
        relevance = label.get("relevance", 1)
        if isinstance(relevance, bool) or not isinstance(relevance, int | float):
            queries.refuse(row, f"relevance of label {quote(identifier)} is {quote(repr(relevance))}; write a number")
        elif relevance > 0:
            ids.append(identifier)
    if given and set(given) != set(ids):
        queries.refuse(row, f"gt_ids and labels name different tools: {listing(given)} against {listing(ids)}")
    return ids


def _chosen_corpus(corpus: ToolCorpus | str | None, sources: Sequence[str], tools: LooseRows) -> ToolCorpus:
    if corpus is None:
        by_source = sources and any(row.values.get("source") for row in tools.rows)
        return ToolCorpus.SOURCE if by_source else ToolCorpus.ALL
    try:
        return ToolCorpus(corpus)
    except ValueError:
        choices = ", ".join(ToolCorpus)
        raise BenchmarkError(f"Unknown corpus {quote(corpus)} for ToolRet-shaped rows; choose {choices}.") from None


def _corpus_rows(
    tools: LooseRows,
    corpus: ToolCorpus,
    sources: Sequence[str],
    queries: LooseRows,
    query_rows: list[Row],
    labels: list[list[str]],
) -> list[Row]:
    if corpus is ToolCorpus.ALL:
        return tools.rows
    if corpus is ToolCorpus.CATEGORY:
        categories = {queries.text(row, "category") for row in query_rows}
        return [row for row in tools.rows if _tool_category(tools, row) in categories]
    wanted = set(sources) or {_source(queries, row) for row in query_rows}
    if any(row.values.get("source") for row in tools.rows):
        return [row for row in tools.rows if tools.text(row, "source") in wanted]
    prefixes = {identifier.rpartition("_tool_")[0] for members in labels for identifier in members}
    return [row for row in tools.rows if tools.text(row, "id").rpartition("_tool_")[0] in prefixes]


def _tool_category(tools: LooseRows, row: Row) -> str:
    return tools.text(row, "category") or _hub_folder(tools, row)


def _query_columns(queries: LooseRows, rows: list[Row]) -> dict[str, list[Any]]:
    return {
        "query_id": [queries.text(row, "id", required=True) for row in rows],
        "text": [queries.text(row, "query", required=True) for row in rows],
        "instruction": [queries.text(row, "instruction") for row in rows],
        "domain": [queries.text(row, "category") for row in rows],
        "source": [_source(queries, row) for row in rows],
    }


def _tool_columns(tools: LooseRows, rows: list[Row]) -> dict[str, list[Any]]:
    ids = [tools.text(row, "id", required=True) for row in rows]
    documents = [tools.text(row, "documentation", required=True) for row in rows]
    return {
        "tool_id": ids,
        "documentation": documents,
        "name": [_name(document, identifier) for document, identifier in zip(documents, ids, strict=True)],
        "domain": [_tool_category(tools, row) for row in rows],
        "source": [tools.text(row, "source") for row in rows],
    }


def _name(documentation: str, identifier: str) -> str:
    """The document's ``name`` when it is an object that has one, else the id."""
    try:
        document = json.loads(documentation)
    except (ValueError, RecursionError):
        return identifier
    return str(document.get("name", identifier)) if isinstance(document, dict) else identifier


def _note_origins(rows: list[Row], notes: list[str]) -> None:
    origins = Counter(row.values["origin"] for row in rows if isinstance(row.values.get("origin"), str))
    if origins:
        counts = ", ".join(f"{quote(origin)} {count:,}" for origin, count in sorted(origins.items()))
        notes.append(f"origin of the {plural(origins.total(), 'query', 'queries')}: {counts}")


def _slug(source: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", source.lower()).strip("-._") or "toolret"
