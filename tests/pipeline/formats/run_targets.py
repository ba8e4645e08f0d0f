"""Small benchmarks to read runs against, and the runs themselves in every format."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pipeline.formats.run_file import read_run
from pipeline.identifiers import IdTable
from pipeline.run import RunReading, RunTarget

#: query id → [(tool id, score)], best first.
Lists = Mapping[str, Sequence[tuple[str, float]]]


def make_target(
    queries: Sequence[str],
    tools: Sequence[str],
    truth: Mapping[str, Sequence[str]] | None = None,
    name: str = "small@1",
) -> RunTarget:
    """Tables sorted by bytes; without ``truth`` every query's label is the first tool."""
    ordered = sorted(queries, key=str.encode)
    table = IdTable.from_ids(sorted(tools, key=str.encode))
    labels = [list((truth or {}).get(query, [tools[0]])) for query in ordered]
    offsets = np.zeros(len(ordered) + 1, dtype=np.int64)
    np.cumsum([len(label) for label in labels], out=offsets[1:])
    flat = [tool for label in labels for tool in label]
    return RunTarget(name, IdTable.from_ids(ordered), table, offsets, table.find(flat))


def folder_target(folder: Path) -> RunTarget:
    """The target of a benchmark folder with .jsonl files."""

    def rows(name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]

    return make_target(
        [row["query_id"] for row in rows("queries.jsonl")],
        [row["tool_id"] for row in rows("tools.jsonl")],
        {row["query_id"]: row["tool_ids"] for row in rows("ground_truth.jsonl")},
        f"{folder.name}@1",
    )


def small_target(queries: int = 3, tools: int = 12) -> RunTarget:
    """``q1`` …, ``t01`` …; the label of every query is ``t01``."""
    return make_target([f"q{i}" for i in range(1, queries + 1)], [f"t{i:02}" for i in range(1, tools + 1)])


def full_lists(queries: int = 3, tools: int = 12) -> dict[str, list[tuple[str, float]]]:
    """Every tool for every query, scores falling, the label never on top."""
    return {
        f"q{q}": [(f"t{(i + q) % tools + 1:02}", 1 - i / 16 - q / 1000) for i in range(tools)]
        for q in range(1, queries + 1)
    }


def trec(lists: Lists, tag: str = "tag") -> bytes:
    return "".join(
        f"{query} Q0 {tool} {rank} {score!r} {tag}\n"
        for query, results in lists.items()
        for rank, (tool, score) in enumerate(results, 1)
    ).encode()


def nested(lists: Lists) -> dict[str, dict[str, float]]:
    return {query: dict(results) for query, results in lists.items()}


def delimited(lists: Lists, delimiter: str, header: bool) -> bytes:
    def cell(text: str) -> str:
        quoted = any(c in text for c in '",\t\n')
        return '"' + text.replace('"', '""') + '"' if quoted else text

    head = delimiter.join(("query_id", "tool_id", "score")) + "\n" if header else ""
    body = (f"{cell(q)}{delimiter}{cell(t)}{delimiter}{s!r}\n" for q, results in lists.items() for t, s in results)
    return (head + "".join(body)).encode()


def parquet(lists: Lists, **columns: Any) -> bytes:
    frame = pl.DataFrame(
        [(q, t, s) for q, results in lists.items() for t, s in results],
        schema={"query_id": pl.String, "tool_id": pl.String, "score": pl.Float64},
        orient="row",
    ).with_columns(**columns)
    out = io.BytesIO()
    frame.write_parquet(out)
    return out.getvalue()


#: Every format that carries scores: name of the reader → writer.
SCORED: dict[str, Callable[[Lists], bytes]] = {
    "trec": trec,
    "json": lambda lists: json.dumps(nested(lists)).encode(),
    "toolret-json": lambda lists: json.dumps({"task": nested(lists)}).encode(),
    "skillret-json": lambda lists: json.dumps(
        {"metrics": {"test": {"ndcg@10": 0.5}}, "k": [5, 10], "model": "m", "retrieval": {"test": nested(lists)}}
    ).encode(),
    "mteb-json": lambda lists: json.dumps(
        {"mteb_model_meta": {"model_name": "a/b", "revision": "r1"}, "default": {"test": nested(lists)}}
    ).encode(),
    "jsonl": lambda lists: b"\n".join(
        json.dumps({"query_id": q, "ranked_ids": [t for t, _ in r], "scores": [s for _, s in r]}).encode()
        for q, r in lists.items()
    ),
    "csv": lambda lists: delimited(lists, ",", header=True),
    "tsv": lambda lists: delimited(lists, "\t", header=False),
    "parquet": parquet,
}


def read(data: bytes | str, target: RunTarget, **options: Any) -> RunReading:
    """Read bytes as a file."""
    return read_run(io.BytesIO(data.encode() if isinstance(data, str) else data), target, **options)


def messages(reading: RunReading) -> str:
    return "\n".join(problem.message for problem in reading.report.problems)


def as_lists(reading: RunReading, target: RunTarget) -> dict[str, list[str]]:
    """Ranked tool ids a query."""
    run = reading.run
    assert run is not None, messages(reading)
    return {
        target.queries[q]: [target.tools[t] for t in run.tools[run.offsets[q] : run.offsets[q + 1]]]
        for q in range(len(target.queries))
        if run.offsets[q] < run.offsets[q + 1]
    }
